"""The trainers of both languages agree with every option, with draws and synchronization."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import bridge
from bridge.dotnet import IsolatedHost
from bridge.models import DropoutNet, SyncNet
from bridge.optim import create
from bridge.parity.compare import Rule, compare

pytestmark = pytest.mark.parity

SEED = 3
SIZES = (11, 6, 9, 2, 7, 8)
MODELS: dict[str, Callable[[], nn.Module]] = {"DropoutNet": DropoutNet, "SyncNet": SyncNet}
OPTIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "sums": {"reduction": "sum", "clip_norm": 0.5},
    "counts": {"reduction": "count", "accumulate": 2},
    "all": {"mode": "all", "clip_value": 0.0625, "buffers": "mean"},
    "scaled": {"scaling": {"factor": 4.0, "warm_up": 3}, "accumulate": 3, "buffers": "each"},
}


def loss_of(reduction: str) -> Callable[[torch.Tensor, torch.Tensor], Any]:
    """Make the loss that the host has."""
    if reduction == "mean":
        return functional.cross_entropy

    def loss(outputs: torch.Tensor, targets: torch.Tensor) -> Any:  # noqa: ANN401 - with a count or without
        total = functional.cross_entropy(outputs, targets, reduction="sum")
        return (total, (targets != -100).sum()) if reduction == "count" else total

    return loss


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_same_parameters(
    shared_host: IsolatedHost, rule: Rule, model: str, options: str, replicas: int
) -> None:
    """After every step states and losses are identical. Spec: R7.3, R7.5, R20.2, R22.1."""
    for dtype in ("float64", "float32") if rule == "bitwise" else ("float64",):
        kind = getattr(torch, dtype)
        torch.manual_seed(SEED)
        own = MODELS[model]().to(kind)
        given = dict(OPTIONS[options])
        if "scaling" in given:
            given["scaling"] = bridge.LinearScaling(**given["scaling"])
        trainer = bridge.Trainer(
            own,
            lambda parameters: create("adam", parameters, lr=0.05),
            loss_of(given.get("reduction", "mean")),
            ["cpu"] * replicas,
            **given,
        )
        with shared_host.trainer(
            f"BridgeSharp.Models.{model}", optimizer="adam", lr=0.05, replicas=replicas,
            dtype=dtype, seed=SEED, threads=1, training=OPTIONS[options],
        ) as port:  # fmt: skip
            for step, size in enumerate(SIZES):
                inputs, targets = batch_of(step, size, kind, given.get("reduction"))
                losses = trainer.step(inputs, targets), port.step(inputs, targets)
                pair = [{"loss": torch.tensor([loss], dtype=torch.float64)} for loss in losses]
                tensors = compare(trainer.state_dict(), port.state_dict(), rule)
                differing = [
                    c.name for c in (*compare(pair[0], pair[1], rule), *tensors) if not c.same
                ]
                assert differing == [], f"{dtype} differs at step {step}"


def batch_of(
    step: int, size: int, kind: torch.dtype, reduction: str | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a batch; where the loss counts, some targets are ignored."""
    generator = torch.Generator().manual_seed(step)
    inputs = torch.randn(size, 8, generator=generator).to(kind)
    targets = torch.randint(0, 4, (size,), generator=generator)
    if reduction == "count":
        targets[: size // 2] = -100
    return inputs, targets
