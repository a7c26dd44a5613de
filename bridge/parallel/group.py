"""Replicas that run together: what they exchange, and whose turn it is."""

import threading
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, TypeVar

from bridge.parallel.interrupts import held_back
from bridge.parallel.random_states import RandomStates

T = TypeVar("T")
Outcome = tuple[Any, BaseException | None]
_own = threading.local()


class BrokenGroupError(RuntimeError):
    """A replica waited for another that failed, or that ended without coming to the exchange."""


class _Status(Enum):
    """What a replica is at."""

    READY = auto()
    RUNNING = auto()
    WAITING = auto()
    ENDED = auto()


class Group:
    """Runs one function per replica, each on a thread of its own, and lets them exchange values.

    In turn, one replica runs at a time, the first that can go on: one that waits in an exchange
    hands the turn on. Otherwise all run at once.

    Args:
        count: the number of replicas.
        states: the random states; each replica runs on its own.
        in_turn: whether the replicas run in turn, as they must where they draw.

    Spec: R19.1, R19.2, R19.3
    """

    def __init__(
        self, count: int, states: RandomStates | None = None, *, in_turn: bool = False
    ) -> None:
        """Start with every replica ready."""
        self._changed = threading.Condition()
        self._states = states
        self._in_turn = in_turn
        self._status = [_Status.READY] * count
        self._values: list[Any] = [None] * count
        self._results: list[Any] = []
        self._round = 0
        self._broken: str | None = None

    def run(self, functions: Sequence[Callable[[], Any]]) -> list[Outcome]:
        """Run one function per replica and return results and failures in replica order."""
        outcomes: list[Outcome] = [(None, None)] * len(functions)

        def work(index: int) -> None:
            outcomes[index] = self._work(index, functions[index])

        threads = [
            threading.Thread(target=work, args=(index,), name=f"replica-{index}", daemon=True)
            for index in range(len(functions))
        ]
        try:
            with held_back():
                for thread in threads:
                    thread.start()
            for thread in threads:
                thread.join()
        except BaseException:  # Ctrl-C, or no thread to be had: no replica outlives the step.
            self._break("the caller was interrupted")
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise
        for _, error in outcomes:
            if error is not None and not isinstance(error, Exception):
                raise error
        return outcomes

    def exchange(self, index: int, value: T) -> list[T]:
        """Give a value and wait for those of all replicas, in replica order.

        Raises:
            BrokenGroupError: another replica failed, or ended without coming here.
        """
        with self._changed:
            number = self._round
            self._values[index] = value
            self._leave(index, _Status.WAITING)
            self._changed.wait_for(lambda: self._round != number or self._broken is not None)
            results = self._results
            arrived = self._round != number
            self._enter(index)
            if not arrived:
                message = f"exchange: expected every replica, but {self._broken}"
                raise BrokenGroupError(message)
            return results

    def _work(self, index: int, function: Callable[[], Any]) -> Outcome:
        """Run one replica to its end."""
        _own.place = (self, index)
        with self._changed:
            self._enter(index)
        try:
            outcome = outcome_of(function)
        except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
            outcome = None, error
        with self._changed:
            if outcome[1] is not None:
                self._break(f"replica {index} failed")
            self._leave(index, _Status.ENDED)
        return outcome

    def _break(self, reason: str) -> None:
        """Let those who wait fail, for the first reason that there is."""
        with self._changed:
            self._broken = self._broken or reason
            self._changed.notify_all()

    def _enter(self, index: int) -> None:
        """Wait for the turn, where there are turns, and take up the random state."""
        self._status[index] = _Status.READY
        if self._in_turn:
            self._changed.wait_for(lambda: self._next() == index)
        if self._states is not None:
            self._states.enter(index)
        self._status[index] = _Status.RUNNING

    def _leave(self, index: int, status: _Status) -> None:
        """Put the random state away, and let the others go on."""
        if self._states is not None and self._status[index] is _Status.RUNNING:
            self._states.leave(index)
        self._status[index] = status
        waiting = [at is _Status.WAITING for at in self._status]
        if all(waiting):
            self._results = list(self._values)
            self._status = [_Status.READY] * len(self._status)
            self._round += 1
        elif any(waiting) and _Status.ENDED in self._status:
            self._break(f"replica {self._status.index(_Status.ENDED)} ended without coming to it")
        self._changed.notify_all()

    def _next(self) -> int | None:
        """Name the replica whose turn it is: nobody's while one is running."""
        if _Status.RUNNING in self._status or _Status.READY not in self._status:
            return None
        return self._status.index(_Status.READY)


def outcome_of(function: Callable[[], Any]) -> Outcome:
    """Call a function and keep its result or its failure."""
    try:
        return function(), None
    except Exception as error:  # noqa: BLE001 - reported with its replica by the caller
        return None, error


def exchange(value: T) -> list[T]:
    """Give a value to the group of this thread and return those of all replicas, in order.

    Outside a group there is one replica: the caller.

    Raises:
        BrokenGroupError: another replica failed, or ended without coming to the exchange.

    Spec: R19.1
    """
    place = getattr(_own, "place", None)
    if place is None:
        return [value]
    group, index = place
    results: list[T] = group.exchange(index, value)
    return results
