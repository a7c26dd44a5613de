"""How arguments reach a module."""

from collections.abc import Mapping

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

from bridge import DataParallel, ReplicaError, Trainer, gather, parallel_apply, scatter
from tests.python.spec.vectors import Case, assert_same, cases, refusal, tree


class Affine(nn.Module):
    """Scales its first argument by its second, and adds its third where there is one."""

    def forward(
        self, x: torch.Tensor, factor: torch.Tensor, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Calculate."""
        return x * factor if shift is None else x * factor + shift


class Summed(nn.Module):
    """Adds two values of a dict."""

    def forward(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Calculate."""
        return batch["x"] + batch["factor"]


class Weighted(nn.Module):
    """Scales its one argument by a weight, and by its other."""

    def __init__(self) -> None:
        """Start with a weight of one."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, dtype=torch.float64))

    def forward(self, x: torch.Tensor, **scales: torch.Tensor) -> torch.Tensor:
        """Calculate."""
        return self.weight * x * scales["scale"]


@cases("keyword_arguments")
def test_vectors(case: Case) -> None:
    """Arguments reach forward by position and by name, or are named. Spec: R3.5."""
    inputs, kwargs = tree(case["inputs"]), {k: tree(v) for k, v in case["kwargs"].items()}
    if "fails" not in case:
        assert_same(parallel_apply([Affine()], [inputs], [kwargs]), [tree(case["result"])])
        return
    with pytest.raises(ReplicaError) as caught:
        parallel_apply([Affine()], [inputs], [kwargs])
    with refusal({"raises": case["fails"]}):
        raise caught.value.failures[0].error


def test_dicts_are_keyword_arguments() -> None:
    """Where a key names one of several parameters, a dict is taken apart. Spec: R3.5."""
    shards = scatter({"factor": torch.tensor([3, 4]), "x": torch.tensor([1, 2])}, ["cpu", "cpu"])
    assert gather(parallel_apply([Affine()] * 2, shards)).tolist() == [3, 8]
    assert gather(parallel_apply([Summed()] * 2, shards)).tolist() == [4, 6]
    assert parallel_apply([len], [{"x": 1}]) == [1]
    with pytest.raises(ReplicaError, match="keywords must be strings"):
        parallel_apply([Affine()], [{"x": torch.ones(1), 1: torch.ones(1)}])


def test_other_dicts_are_one_argument() -> None:
    """A dict whose keys name no parameter reaches the first as it is. Spec: R3.5."""

    class Flagged(Summed):
        def forward(
            self, batch: Mapping[str, torch.Tensor], *, negative: bool = False
        ) -> torch.Tensor:
            return -super().forward(batch) if negative else super().forward(batch)

    batch = {"factor": torch.tensor([3]), "x": torch.tensor([1])}
    assert parallel_apply([Flagged()], [batch])[0].tolist() == [4]
    assert parallel_apply([Flagged()], [batch], [{"negative": True}])[0].tolist() == [-4]


def test_trainer_takes_keyword_arguments() -> None:
    """A batch that is a dict trains and predicts as one model does. Spec: R3.5, R8.1."""
    model = Weighted()
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), 0.25), mse_loss, ["cpu"] * 2)
    batch = {"scale": torch.tensor([2.0, 3, 4]), "x": torch.tensor([1.0, 2, 0.5])}
    assert trainer.step(batch, torch.zeros(3, dtype=torch.float64)) == pytest.approx(44 / 3)
    assert model.weight.item() == pytest.approx(1 - 0.25 * 2 * 44 / 3)
    assert trainer.predict(batch).tolist() == (model.weight * torch.tensor([2, 6, 2])).tolist()


def test_data_parallel_takes_keyword_arguments() -> None:
    """By name alone, and beside positional ones, inputs get their gradients. Spec: R3.5, R25.1."""
    net = DataParallel(Affine(), ["cpu", "cpu"])
    x, factor = torch.tensor([1.0, 2, 3], requires_grad=True), torch.tensor([4.0, 5, 6])
    assert net(x=x, factor=factor).tolist() == [4, 10, 18]
    net(x, factor=factor, shift=x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [5, 6, 7]
