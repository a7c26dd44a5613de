"""The data loader: batches, states, samples."""

import json
from collections import namedtuple
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from bridge import Trainer
from bridge.data import FashionMnist, Loader, order
from tests.python.spec.files import write_split
from tests.python.spec.vectors import Case, assert_same, cases, refusal, tree

Point = namedtuple("Point", "x y")  # noqa: PYI024 - the older form, which has no annotations


@cases("loader")
@pytest.mark.parametrize("prefetch", [0, 1, 2, 9])
def test_order_vectors(case: Case, prefetch: int) -> None:
    """Epochs have the batches of PyTorch's loader, read ahead or not. Spec: R17.1, R17.2, R17.6."""
    loader = Loader(range(case["count"]), **case["options"], prefetch=prefetch)
    assert len(loader) == len(case["epochs"][0])
    epochs = [[batch.tolist() for batch in loader] for _ in case["epochs"]]
    assert epochs == case["epochs"]
    assert (loader.epoch, loader.position) == (len(epochs), 0)


@cases("loader")
def test_a_state_goes_on_after_any_batch(case: Case) -> None:
    """From any batch's state another loader gives exactly what was left. Spec: R17.2, R17.3."""
    loader = Loader(range(case["count"]), **case["options"], prefetch=3)
    for taken in range(2 * len(loader) + 1):
        state = loader.state_dict()
        assert list(state) == ["epoch", "position", "seed"]
        epoch, position = divmod(taken, len(loader))
        assert (loader.epoch, loader.position) == (epoch, position)
        assert (state["epoch"], state["position"]) == (epoch, position)
        options: Case = {**case["options"], "seed": 99, "prefetch": taken % 3}
        other = Loader(range(case["count"]), **options)
        other.load_state_dict(json.loads(json.dumps(state)))
        assert [batch.tolist() for batch in other] == case["epochs"][epoch][position:]
        next(iter(loader))


@given(
    count=st.integers(1, 20),
    batch_size=st.integers(1, 8),
    prefetch=st.integers(0, 4),
    breaks=st.lists(st.integers(1, 5), max_size=4),
)
def test_breaking_off_loses_nothing(
    count: int, batch_size: int, prefetch: int, breaks: list[int]
) -> None:
    """Iterations that end early go on where they were, into the next epoch. Spec: R17.2, R17.8."""
    loader = Loader(range(count), batch_size, seed=4, prefetch=prefetch)
    seen: list[int] = []
    for length in breaks:
        for _, batch in zip(range(length), loader, strict=False):
            seen += batch.tolist()
            if loader.position == 0:
                break
    seen += [number for batch in loader for number in batch.tolist()]
    epochs = [order(count, 4, epoch).tolist() for epoch in range(loader.epoch)]
    assert seen == list(chain(*epochs))


@cases("loader_data")
@pytest.mark.parametrize("prefetch", [0, 2])
def test_data_vectors(case: Case, prefetch: int) -> None:
    """Data sets of every kind are read or refused. Spec: R17.1, R17.3, R17.4, R17.5."""
    options: Case = {"shuffle": False, "prefetch": prefetch, **case["options"]}
    with refusal(case):
        loader = Loader(tree(case["dataset"]), **options)
        if "state" in case:
            loader.load_state_dict(case["state"])
        batches = list(loader)
        assert_same(batches, [tree(batch) for batch in case["batches"]])


def test_one_iteration_at_a_time() -> None:
    """An iteration that a later one, or a state, has ended says so. Spec: R17.2, R17.3."""
    loader = Loader(range(5), 2, shuffle=False)
    first, second = iter(loader), iter(loader)
    assert [next(first).tolist(), next(second).tolist()] == [[0, 1], [2, 3]]
    text = "^Loader: expected the latest iteration, got one that has been ended$"
    with pytest.raises(RuntimeError, match=text):
        next(first)
    loader.load_state_dict({"epoch": 4, "position": 1, "seed": 3})
    with pytest.raises(RuntimeError, match=text):
        next(second)
    assert [batch.tolist() for batch in loader] == [[2, 3], [4]]
    assert loader.state_dict() == {"epoch": 5, "position": 0, "seed": 3}


def test_a_part_of_a_sample_is_refused() -> None:
    """Batches have whole numbers of samples. Spec: R17.5."""
    expected = "Loader: expected batch_size to be a whole number, got 2.5"
    with refusal({"raises": {"ValueError": expected}}):
        Loader(range(5), 2.5)  # type: ignore[arg-type]


def test_a_state_that_is_refused_changes_nothing() -> None:
    """A loader that refuses a state goes on as before. Spec: R17.5."""
    loader = Loader(range(3), 1, shuffle=False)
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError, match="position from 0 to 2, got 3"):
        loader.load_state_dict({"epoch": 1, "position": 3, "seed": 1})
    assert next(batches).tolist() == [1]


class Squares(Dataset[Any]):
    """A data set of PyTorch, which reads one sample at a time."""

    def __len__(self) -> int:
        """Count the samples."""
        return 3

    def __getitem__(self, index: int) -> Point:
        """Read one sample."""
        return Point(np.full(2, index, dtype=np.float32), {"square": np.int64(index**2)})


def test_other_data_sets_are_read(tmp_path: Path) -> None:
    """PyTorch's data sets, NumPy's samples and Fashion-MNIST are read as they are. Spec: R17.4."""
    first, last = Loader(Squares(), 2, shuffle=False)
    assert isinstance(first, Point)
    assert_same(first.x, torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
    assert_same(last.y, {"square": torch.tensor([4])})
    pairs = TensorDataset(torch.arange(4.0), torch.arange(4))
    (batch,) = Loader(pairs, 4, shuffle=False)
    assert_same(batch, (torch.arange(4.0), torch.arange(4)))
    write_split(tmp_path, "train", torch.arange(5 * 784).reshape(5, 28, 28) % 256, range(5))
    data = FashionMnist(tmp_path, train=True, dtype=torch.float32)
    read = list(Loader(data, 3, seed=2))
    assert_same(read[0], data.batch(order(5, 2, 0)[:3]))


@pytest.mark.parametrize("dataset", [iter([1, 2]), {1, 2}, (np.ones(2), torch.ones(2))])
def test_what_is_no_data_set_is_refused(dataset: object) -> None:
    """What cannot be read by index is refused before it is read. Spec: R17.5."""
    with pytest.raises(TypeError, match=r"^Loader: expected "):
        Loader(dataset, 1)


def test_a_trainer_fits_a_loader() -> None:
    """A trainer goes over a loader as over the batches themselves. Spec: R17.1, R17.2."""
    data = (torch.arange(10.0).reshape(5, 2) / 8, torch.arange(5.0).reshape(5, 1) / 4)
    trained = []
    for fitted in (True, False):
        torch.manual_seed(0)
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        trainer = Trainer(model, optimizer, nn.functional.mse_loss, ["cpu", "cpu"])
        if fitted:
            trainer.fit(Loader(data, 2, seed=3), epochs=2)
        else:
            for epoch in (0, 1):
                for indices in torch.split(order(5, 3, epoch), 2):
                    trainer.step(data[0][indices], data[1][indices])
        trained.append(model.weight)
    assert_same(*trained)
