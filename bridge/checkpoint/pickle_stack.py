"""The stack, marks and memo of an interpreter of pickles."""

from typing import Any


class PickleStack:
    """Values that a pickle makes; what does not fit raises IndexError, KeyError or TypeError.

    Spec: R26.10. Source: Lib/pickle.py
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._values: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def push(self, value: Any) -> None:  # noqa: ANN401 - any value
        """Put a value on top."""
        self._values.append(value)

    def mark(self) -> None:
        """Remember the place."""
        self._marks.append(len(self._values))

    def pop(self, count: int) -> list[Any]:
        """Take values from the top, not beyond the last mark."""
        if len(self._values) - self._floor() < count:
            raise IndexError(count)
        start = len(self._values) - count
        taken = self._values[start:]
        del self._values[start:]
        return taken

    def pop_mark(self) -> list[Any]:
        """Take the values since the last mark."""
        start = self._marks.pop()
        taken = self._values[start:]
        del self._values[start:]
        return taken

    def put(self, index: int) -> None:
        """Keep the value on top for later."""
        self._memo[index] = self._top()

    def get(self, index: int) -> None:
        """Put a kept value on top."""
        self.push(self._memo[index])

    def extend(self, values: list[Any]) -> None:
        """Append to the list on top."""
        target = self._top()
        if not isinstance(target, list):
            raise TypeError(target)
        target.extend(values)

    def update(self, values: list[Any]) -> None:
        """Set items of the dict on top."""
        target = self._top()
        if not isinstance(target, dict) or len(values) % 2:
            raise TypeError(target)
        for key, value in zip(values[::2], values[1::2], strict=True):
            if type(key) not in {str, int}:
                raise TypeError(key)
            target[key] = value

    def end(self) -> Any:  # noqa: ANN401 - any value
        """Take the one value that is left."""
        (value,) = self._values
        if self._marks:
            raise IndexError(len(self._marks))
        return value

    def _floor(self) -> int:
        """Return the place of the last mark."""
        return self._marks[-1] if self._marks else 0

    def _top(self) -> Any:  # noqa: ANN401 - any value
        """Look at the value on top."""
        if len(self._values) == self._floor():
            raise IndexError(len(self._values))
        return self._values[-1]
