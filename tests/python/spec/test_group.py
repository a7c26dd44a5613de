"""Replicas that run together: what they exchange, whose turn it is, and what breaks them."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from bridge import BrokenGroupError, RandomStates, exchange
from bridge.parallel.group import Group

COUNTS = pytest.mark.parametrize("count", [2, 3, 4])
TURNS = pytest.mark.parametrize("in_turn", [False, True])


def run(functions: list[Callable[[], Any]], *, in_turn: bool = False) -> list[Any]:
    """Run a group and return results, or errors in their place."""
    outcomes = Group(len(functions), in_turn=in_turn).run(functions)
    return [result if error is None else error for result, error in outcomes]


def test_a_caller_alone_is_one_replica() -> None:
    """Outside a group the caller gets its own value. Spec: R19.1."""
    assert exchange(5) == [5]


@COUNTS
@TURNS
def test_every_replica_gets_the_values_of_all(count: int, in_turn: bool) -> None:  # noqa: FBT001
    """In replica order, in round after round. Spec: R19.1."""

    def work(index: int) -> list[list[int]]:
        return [exchange(10 * number + index) for number in range(20)]

    results = run([lambda i=i: work(i) for i in range(count)], in_turn=in_turn)  # type: ignore[misc]
    rounds = [[10 * number + index for index in range(count)] for number in range(20)]
    assert results == [rounds] * count


@COUNTS
@TURNS
def test_a_failing_replica_breaks_the_exchange(count: int, in_turn: bool) -> None:  # noqa: FBT001
    """Those who wait fail too, and nothing hangs, time after time. Spec: R19.2."""
    for repetition in range(200):
        failing = repetition % count

        def work(index: int, failing: int = failing) -> None:
            exchange(0)
            if index == failing:
                message = "own failure"
                raise ValueError(message)
            exchange(1)

        results = run([lambda i=i: work(i) for i in range(count)], in_turn=in_turn)  # type: ignore[misc]
        assert str(results.pop(failing)) == "own failure"
        text = f"exchange: expected every replica, but replica {failing} failed"
        assert [(type(error), str(error)) for error in results] == [(BrokenGroupError, text)] * (
            count - 1
        )


@COUNTS
@TURNS
def test_a_replica_that_ends_early_breaks_the_exchange(count: int, in_turn: bool) -> None:  # noqa: FBT001
    """One that never comes is not waited for. Spec: R19.2."""
    for repetition in range(200):
        ending = repetition % count

        def work(index: int, ending: int = ending) -> object:
            return "early" if index == ending else exchange(index)

        results = run([lambda i=i: work(i) for i in range(count)], in_turn=in_turn)  # type: ignore[misc]
        assert results.pop(ending) == "early"
        text = f"exchange: expected every replica, but replica {ending} ended without coming to it"
        assert [str(error) for error in results] == [text] * (count - 1)


def test_a_replica_may_go_on_after_a_broken_exchange() -> None:
    """It goes on in its turn, and every later exchange is broken too. Spec: R19.2, R19.3."""
    running: list[int] = []

    def work(index: int) -> str:
        if index == 2:
            message = "own failure"
            raise ValueError(message)
        with pytest.raises(BrokenGroupError):
            exchange(index)
        running.append(index)
        time.sleep(0.01)
        assert running == [index]
        running.remove(index)
        with pytest.raises(BrokenGroupError):
            exchange(index)
        return "on"

    results = run([lambda i=i: work(i) for i in range(3)], in_turn=True)  # type: ignore[misc]
    assert results[:2] == ["on", "on"]


def test_in_turn_one_replica_runs_at_a_time() -> None:
    """The first that can go on does, and one that waits hands the turn on. Spec: R19.3."""
    order: list[str] = []

    def work(index: int) -> None:
        for part in "abc":
            order.append(f"{index}{part}")
            exchange(None)

    run([lambda i=i: work(i) for i in range(3)], in_turn=True)  # type: ignore[misc]
    assert order == ["0a", "1a", "2a", "0b", "1b", "2b", "0c", "1c", "2c"]


def test_each_replica_draws_on_its_own_stream() -> None:
    """Across exchanges too: what others draw in between does not count. Spec: R19.3, R20.1."""
    torch.manual_seed(3)
    states = RandomStates([torch.device("cpu")] * 3)

    def work() -> list[float]:
        drawn = []
        for _ in range(3):
            drawn.append(float(torch.rand(())))
            exchange(None)
        return drawn

    outcomes = Group(3, states, in_turn=True).run([work] * 3)
    for index, (drawn, _) in enumerate(outcomes):
        generator = torch.Generator().manual_seed(3 + index)
        assert drawn == [float(torch.rand((), generator=generator)) for _ in range(3)]


def test_an_interrupt_in_a_replica_is_the_callers() -> None:
    """No ordinary error: it breaks the group, and is raised when all have ended. Spec: R19.2."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Group(2).run([lambda: exchange(0), interrupted])
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("replica-")]
