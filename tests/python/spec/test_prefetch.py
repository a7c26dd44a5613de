"""The loader's thread: how far it reads ahead, and how it ends."""

import _thread
import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import torch

from bridge.data import Loader
from tests.python.spec.vectors import bits

LONG = 60
ROOT = Path(__file__).parents[3]


class Recorded:
    """A data set that notes who reads when; each batch is its indices."""

    def __init__(self, count: int, read: Callable[[int], object] = lambda _: None) -> None:
        """Call ``read`` with the first index of each batch."""
        self.count, self.read = count, read
        self.done = [threading.Event() for _ in range(count + 1)]
        self.threads: list[threading.Thread] = []

    def __len__(self) -> int:
        """Count the samples."""
        return self.count

    def batch(self, indices: torch.Tensor) -> torch.Tensor:
        """Read a batch."""
        self.threads.append(threading.current_thread())
        place = int(indices[0])
        self.read(place)
        self.done[place + 1].set()
        return indices

    def ended(self) -> bool:
        """Tell whether the reader has ended, or is the caller."""
        reader = self.threads[0]
        return reader is threading.current_thread() or not reader.is_alive()


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_reads_as_far_ahead_as_it_may(prefetch: int) -> None:
    """One thread reads, as many ahead as it may, not more; without, the caller. Spec: R17.6."""
    taken, most = 0, 0

    def read(place: int) -> None:
        nonlocal most
        most = max(most, place - taken)

    data = Recorded(8, read)
    for batch in Loader(data, 1, shuffle=False, prefetch=prefetch):
        assert batch.tolist() == [taken]
        taken += 1
        assert data.done[min(8, taken + prefetch)].wait(LONG)
    assert most <= prefetch
    assert len(set(data.threads)) == 1
    assert (data.threads[0] is threading.current_thread()) == (prefetch == 0)


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_a_failure_comes_at_its_batch(prefetch: int) -> None:
    """A failure is raised as it was, and the position stays at its batch. Spec: R17.7."""

    def read(place: int) -> None:
        if place == 2 and not whole:
            message = "no third"
            raise LookupError(message)

    whole = False
    data = Recorded(4, read)
    loader = Loader(data, 1, shuffle=False, prefetch=prefetch)
    seen: list[float] = []
    with pytest.raises(LookupError, match=r"^no third$") as caught:
        seen.extend(batch.item() for batch in loader)
    assert [frame.name for frame in caught.traceback][-2:] == ["batch", "read"]
    assert (loader.position, data.ended()) == (2, True)
    whole = True
    assert [batch.item() for batch in loader] == [2, 3]


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, StopIteration])
def test_no_failure_is_swallowed(prefetch: int, error: type[BaseException]) -> None:
    """What a data set raises ends no iteration silently. Spec: R17.7."""

    def read(_: int) -> None:
        raise error

    # Generators turn StopIteration into a RuntimeError that names it as its cause.
    with pytest.raises(RuntimeError if error is StopIteration else error):
        list(Loader(Recorded(2, read), 1, prefetch=prefetch))


@pytest.mark.parametrize("way", ["end", "break", "raise", "close", "collect"])
def test_the_thread_ends_with_the_iteration(way: str) -> None:
    """No reader is left by an iteration that ended, in whatever way. Spec: R17.8."""
    data = Recorded(6)
    batches = iter(Loader(data, 1, prefetch=2))
    if way == "end":
        assert len(list(batches)) == 6
    elif way == "break":
        for _ in Loader(data, 1, prefetch=2):
            break
    elif way == "raise":
        with pytest.raises(LookupError):
            _raise_in(Loader(data, 1, prefetch=2))
    elif way == "close":
        with closing(batches):
            next(batches)
    else:
        next(batches)
        del batches
    assert data.ended()


def _raise_in(loader: Loader) -> None:
    """Fail in the body of an iteration."""
    for batch in loader:
        raise LookupError(batch)


def test_the_reader_may_collect_its_own_iteration() -> None:
    """A forgotten iteration that the reader itself collects ends all the same. Spec: R17.8."""
    forgotten = threading.Event()
    complaints: list[object] = []

    def read(place: int) -> None:
        if place == 2:
            assert forgotten.wait(LONG)
            gc.collect()

    data = Recorded(6, read)
    batches = iter(Loader(data, 1, shuffle=False, prefetch=2))
    next(batches)
    hook, sys.unraisablehook = sys.unraisablehook, complaints.append
    gc.disable()
    try:
        cycle: list[object] = [batches]
        cycle.append(cycle)
        del cycle, batches
        forgotten.set()
        data.threads[0].join(LONG)
    finally:
        gc.enable()
        sys.unraisablehook = hook
    assert data.ended()
    assert complaints == []
    assert len(data.threads) == 3


def test_ctrl_c_reaches_the_consumer() -> None:
    """Ctrl-C while a batch is awaited is raised there, and the reader ends. Spec: R17.7, R17.8."""
    data = Recorded(4, lambda place: _thread.interrupt_main() if place == 1 else None)
    loader = Loader(data, 1, shuffle=False, prefetch=1)
    with pytest.raises(KeyboardInterrupt):
        list(loader)
    assert data.ended()


def test_a_program_ends_with_an_iteration_open() -> None:
    """An iteration that is left open keeps no program from ending. Spec: R17.8."""
    program = (
        "from bridge.data import Loader\n"
        "batches = iter(Loader(range(9), 1, shuffle=False))\n"
        "print(next(batches).item())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


@pytest.mark.parametrize("prefetch", [0, 2])
def test_the_caller_stays_as_it_is(prefetch: int) -> None:
    """The caller's grad mode holds, and its random stream is left alone. Spec: R17.6."""
    before = torch.get_rng_state()
    weight = torch.ones(3, requires_grad=True)
    (batch,) = Loader(weight, 3, prefetch=prefetch)
    assert batch.requires_grad
    with torch.no_grad():
        (batch,) = Loader(weight, 3, prefetch=prefetch)
    assert not batch.requires_grad
    assert torch.is_grad_enabled()
    assert bits(torch.get_rng_state()) == bits(before)
