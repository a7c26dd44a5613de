"""Reading ahead."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Thread, current_thread
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


def ahead(read: Callable[[T], R], items: Iterable[T], limit: int) -> Generator[R, None, None]:
    """Yield what ``read`` makes of each item; a thread reads at most ``limit`` of them ahead.

    With 0 the caller's thread reads. The caller's grad mode holds. A failure is raised at its item,
    as it was. The thread ends with the iteration: at its end, failed, closed or collected.

    Spec: R17.6, R17.7, R17.8
    """
    if limit == 0:
        for item in items:
            yield read(item)
        return
    grad = torch.is_grad_enabled()
    readers: list[Thread] = []

    def begin() -> None:
        readers.append(current_thread())
        torch.set_grad_enabled(grad)

    pool = ThreadPoolExecutor(1, "loader", begin)
    try:
        rest = iter(items)
        pending = deque(pool.submit(read, item) for item in islice(rest, limit))
        while pending:
            pending.extend(pool.submit(read, item) for item in islice(rest, 1))
            yield pending.popleft().result()
    finally:
        # The reader may be who collects a forgotten iteration, and cannot wait for itself.
        pool.shutdown(wait=current_thread() not in readers, cancel_futures=True)
