"""Running every replica on its shard."""

import threading
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import nn

from bridge import ReplicaError, parallel_apply
from tests.python.spec.vectors import Case, assert_same, cases, refusal, tree


class Adder(nn.Module):
    """Adds a number to its first argument times its second."""

    def __init__(self, addend: float) -> None:
        """Keep the number."""
        super().__init__()
        self.addend = addend

    def forward(self, x: torch.Tensor, factor: float = 1) -> torch.Tensor:
        """Calculate."""
        return x * factor + self.addend


def failing(*replicas: int) -> list[Callable[[int], int]]:
    """Make four functions, of which some fail."""

    def run(index: int) -> int:
        if index in replicas:
            message = f"boom {index}\nand more"
            raise KeyError(message)
        return index

    return [run] * 4


@cases("parallel_apply")
def test_vectors(case: Case) -> None:
    """Results and refusals are those of the vectors. Spec: R3.1, R3.2, R3.5."""
    replicas = [Adder(addend) for addend in case["addends"]]
    shards, workers = tree(case["shards"]), case.get("workers")
    devices = ["cpu"] * case["devices"] if "devices" in case else None
    kwargs = [tree(named) for named in case["kwargs"]] if "kwargs" in case else None
    with refusal(case):
        results = parallel_apply(replicas, shards, kwargs, devices, workers=workers)
        assert_same(results, tree(case["results"]))


@pytest.mark.parametrize("workers", [1, 2, 3, None])
def test_each_replica_runs_once_on_its_own_shard(workers: int | None) -> None:
    """Every replica sees its shard, once, however many run at a time. Spec: R3.1, R3.4."""
    calls: list[tuple[int, int]] = []

    def run(replica: int, shard: int) -> int:
        calls.append((replica, shard))
        return 10 * shard

    replicas = [partial(run, index) for index in range(3)]
    assert parallel_apply(replicas, [7, 8, 9], workers=workers) == [70, 80, 90]
    assert sorted(calls) == [(0, 7), (1, 8), (2, 9)]


def test_workers_run_at_once() -> None:
    """With as many workers as replicas all run at the same time. Spec: R3.4."""
    barrier = threading.Barrier(3, timeout=30)
    assert sorted(parallel_apply([barrier.wait] * 3, [()] * 3, workers=3)) == [0, 1, 2]


@pytest.mark.parametrize("workers", [1, 4])
def test_every_failure_is_reported(workers: int) -> None:
    """Two failures of four come in one error, with index, device and stack each. Spec: R3.3."""
    with pytest.raises(ReplicaError) as caught:
        parallel_apply(failing(1, 3), [0, 1, 2, 3], workers=workers)
    text = str(caught.value)
    assert text.startswith("parallel_apply: 2 of 4 replicas failed\nin replica 1 on device cpu: ")
    assert "\nin replica 3 on device cpu: " in text
    assert "replica 0" not in text
    assert text.count("test_parallel_apply.py") == 2
    assert [failure.replica for failure in caught.value.failures] == [1, 3]
    assert [failure.device for failure in caught.value.failures] == [torch.device("cpu")] * 2
    assert caught.value.__cause__ is caught.value.failures[0].error


def test_summary_of_a_failure_is_one_line() -> None:
    """A failure's summary is the type and the first line of its message. Spec: R3.3."""
    with pytest.raises(ReplicaError, match=r"and more") as caught:
        parallel_apply([failing()[0], _raise], [0, 0])
    assert caught.value.failures[0].summary == "ValueError: first line"


def _raise(_: int) -> None:
    """Fail with a message of two lines."""
    message = "first line\nand more"
    raise ValueError(message)


@pytest.mark.parametrize("workers", [1, 4])
def test_all_run_to_their_end(workers: int) -> None:
    """A failure of the first does not keep the others from running. Spec: R3.3."""
    done: list[int] = []

    def run(index: int) -> None:
        if index == 0:
            raise ValueError
        done.append(index)

    with pytest.raises(ReplicaError, match="1 of 4 replicas failed"):
        parallel_apply([run] * 4, [0, 1, 2, 3], workers=workers)
    assert sorted(done) == [1, 2, 3]


@pytest.mark.parametrize("workers", [1, 2])
def test_grad_mode_is_the_callers(workers: int) -> None:
    """Replicas build graphs where the caller does, also on threads of their own. Spec: R3.4."""
    weight = torch.ones(1, requires_grad=True)
    replicas = [lambda x: x * weight] * 2
    shards = [torch.ones(1), torch.ones(1)]
    with torch.no_grad():
        plain = parallel_apply(replicas, shards, workers=workers)
    graph = parallel_apply(replicas, shards, workers=workers)
    assert [result.requires_grad for result in plain + graph] == [False, False, True, True]


def test_any_number_of_workers_gives_the_same_bits() -> None:
    """The results do not depend on how many replicas run at once. Spec: R3.4."""
    torch.manual_seed(1)
    replicas = [nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 5)) for _ in range(5)]
    shards = [torch.randn(3 + index, 20) for index in range(5)]
    alone = parallel_apply(replicas, shards, workers=1)
    for workers in (2, 3, 8, None):
        assert_same(parallel_apply(replicas, shards, workers=workers), alone)
