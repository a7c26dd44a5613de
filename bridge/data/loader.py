"""The data loader."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any, Literal

import torch

from bridge.data.order import order
from bridge.data.prefetch import ahead
from bridge.data.samples import source


class Loader:
    """Reads a data set in batches, in the same order in both languages and in another each epoch.

    An iteration gives what is left of the epoch; a thread reads ahead. Breaking off loses nothing:
    the next iteration goes on with the next batch, and so does a loader that takes the state.

    Args:
        dataset: an object with a length and ``batch(indices)``, which returns a batch for an int64
            tensor ``(N,)``; a tensor ``(N, *)``, or a tuple or dict of tensors ``(N, *)`` and lists
            of N samples; or a sequence of samples.
        batch_size: samples per batch; the last of an epoch may have fewer.
        shuffle: whether each epoch has an order of its own, else it is that of the data set.
        seed: of the orders.
        drop_last: whether a last batch of fewer samples is left out.
        prefetch: how many batches a thread reads ahead; with 0 the caller reads.
        collate: ``"stack"`` stacks samples part by part, as ``default_collate`` of PyTorch does (a
            tuple stays one); ``"list"`` keeps a list of samples, which may have any lengths.

    Raises:
        TypeError: not a data set.
        ValueError: an option out of range, or a data set without a batch.

    Spec: R17.1, R17.2, R17.3, R17.4, R17.5, R17.6, R17.7, R17.8
    """

    def __init__(  # noqa: PLR0913 - one argument per option
        self,
        dataset: Any,  # noqa: ANN401 - see R17.4
        batch_size: int,
        *,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        prefetch: int = 2,
        collate: Literal["stack", "list"] = "stack",
    ) -> None:
        """Count the batches; nothing is read yet."""
        _check_least("batch_size", batch_size, 1)
        _check_least("seed", seed, 0)
        _check_least("prefetch", prefetch, 0)
        self._count, self._read = source(dataset, collate)
        self._length = self._count // batch_size if drop_last else -(-self._count // batch_size)
        if self._length == 0:
            expected = f"at least {batch_size} samples, one batch, with drop_last"
            message = f"Loader: expected {expected}, got {self._count}"
            raise ValueError(message)
        self._batch_size = batch_size
        self._shuffle = shuffle
        self._prefetch = prefetch
        self._seed = seed
        self._epoch = self._position = 0
        self._iteration = object()

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, from 0."""
        return self._epoch

    @property
    def position(self) -> int:
        """The place of the next batch in its epoch, from 0."""
        return self._position

    def __len__(self) -> int:
        """Count the batches of an epoch."""
        return self._length

    def __iter__(self) -> Generator[Any, None, None]:
        """Give the batches that are left of the epoch.

        Raises:
            RuntimeError: a later iteration, or a loaded state, has ended this one.

        Spec: R17.1, R17.2, R17.3
        """
        self._iteration = iteration = object()
        with closing(ahead(self._read, self._indices(), self._prefetch)) as batches:
            for batch in batches:
                if self._iteration is not iteration:
                    message = "Loader: expected the latest iteration, got one that has been ended"
                    raise RuntimeError(message)
                self._position += 1
                if self._position == self._length:
                    self._epoch, self._position = self._epoch + 1, 0
                yield batch

    def state_dict(self) -> dict[str, int]:
        """Return where the loader is: the epoch and the position of the next batch, and the seed.

        Returns:
            A fresh dict of ``epoch``, ``position`` and ``seed``, the same in both languages.

        Spec: R17.3
        """
        return {"epoch": self._epoch, "position": self._position, "seed": self._seed}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on where another loader on the same data, with the same options, was.

        Args:
            state: ``epoch``, ``position`` and ``seed``.

        Raises:
            ValueError: other keys, or a number out of range.

        Spec: R17.3, R17.5
        """
        if set(state) != {"epoch", "position", "seed"}:
            got = ", ".join(state) or "nothing"
            message = f"Loader: expected a state of epoch, position and seed, got {got}"
            raise ValueError(message)
        _check_least("epoch", state["epoch"], 0)
        _check_least("seed", state["seed"], 0)
        if not 0 <= state["position"] < self._length:
            expected = f"position from 0 to {self._length - 1}"
            message = f"Loader: expected {expected}, got {state['position']}"
            raise ValueError(message)
        self._epoch, self._position, self._seed = state["epoch"], state["position"], state["seed"]
        self._iteration = object()

    def _indices(self) -> Iterator[torch.Tensor]:
        """Yield the indices of each batch that is left of the epoch."""
        if self._shuffle:
            indices = order(self._count, self._seed, self._epoch)
        else:
            indices = torch.arange(self._count)
        places = range(self._position * self._batch_size, self._count, self._batch_size)
        for start in places[: self._length - self._position]:
            yield indices[start : start + self._batch_size]


def _check_least(name: str, value: int, least: int) -> None:
    """Refuse a number that is not whole, or too small."""
    if value % 1 != 0:
        message = f"Loader: expected {name} to be a whole number, got {value}"
        raise ValueError(message)
    if value < least:
        message = f"Loader: expected {name} of at least {least}, got {value}"
        raise ValueError(message)
