"""Every optimizer of C# gives the parameters that PyTorch's gives, on the same batches."""

from typing import Any

import pytest
import torch
from torch.nn import functional

import bridge
from bridge.dotnet import IsolatedHost
from bridge.models import SyncNet
from bridge.optim import create, reference
from bridge.parity.compare import Rule, compare
from tests.spec.generators.optimizers import FLAT, LATER, OPTIONS

pytestmark = pytest.mark.parity

SEED, STEPS = 5, 8
LATEST = LATER if reference() == "2.10" else {}
CASES: list[tuple[str, dict[str, Any]]] = [
    (name, {"lr": 1e-3, **options} if name == "sgd" else options)
    for name, table in OPTIONS.items()
    for options in [*table, *LATEST.get(name, [])]
    if options.get("eps") != FLAT["eps"]
]


@pytest.mark.parametrize(
    ("name", "options"), CASES, ids=[f"{name} {options}" for name, options in CASES]
)
def test_same_parameters(
    shared_host: IsolatedHost, rule: Rule, name: str, options: dict[str, Any]
) -> None:
    """After every step the parameters are identical. Spec: R9.2, R9.3, R9.5, R9.7."""
    for dtype in ("float64", "float32") if rule == "bitwise" else ("float64",):
        kind = getattr(torch, dtype)
        torch.manual_seed(SEED)
        own = SyncNet().to(kind)
        before = {key: value.clone() for key, value in own.named_parameters()}
        plain = {key: tuple(v) if isinstance(v, list) else v for key, v in options.items()}
        optimizer = create(name, own.parameters(), **plain)
        trainer = bridge.Trainer(own, optimizer, functional.cross_entropy, ["cpu"])
        with shared_host.trainer(
            "BridgeSharp.Models.SyncNet",
            optimizer=name,
            dtype=dtype,
            seed=SEED,
            threads=1,
            **options,
        ) as port:
            generator = torch.Generator().manual_seed(SEED)
            for step in range(STEPS):
                inputs = torch.randn(6, 8, generator=generator).to(kind)
                targets = torch.randint(0, 4, (6,), generator=generator)
                trainer.step(inputs, targets)
                port.step(inputs, targets)
                pairs = compare(trainer.state_dict(), port.state_dict(), rule)
                differing = [pair.name for pair in pairs if not pair.same]
                assert differing == [], f"{dtype} differs at step {step}"
        after = dict(own.named_parameters())
        assert any(not torch.equal(before[key], after[key]) for key in before)
