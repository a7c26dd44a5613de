"""The C# trainer trains as the Python trainer does, from the same seed on the same batches."""

from typing import Any

import pytest
import torch
from torch.nn import functional

import bridge
from bridge.dotnet import IsolatedHost
from bridge.models import MLP, LeNet
from bridge.optim import create
from bridge.parity.compare import Rule, compare
from bridge.parity.digest import digest

pytestmark = pytest.mark.parity

STEPS, SEED = 4, 3
MODELS: dict[str, tuple[type[torch.nn.Module], tuple[int, ...]]] = {
    "MLP": (MLP, (1024,)),
    "LeNet": (LeNet, (1, 28, 28)),
}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
    "sgd nesterov": {"lr": 0.05, "momentum": 0.5, "nesterov": True},
    "adam": {"lr": 0.001, "weight_decay": 0.01},
    "adam amsgrad": {"lr": 0.002, "betas": (0.8, 0.99), "amsgrad": True},
}
BATCHES = {"even": (12, 12), "uneven": (7, 11), "one sample": (1, 5)}


def test_rule_of_this_leg(rule: Rule) -> None:
    """PyTorch 2.10 and TorchSharp's libtorch are one build family. Spec: R12.2."""
    if not torch.__version__.startswith("2.10."):
        pytest.skip(f"PyTorch {torch.__version__} is another build: rule {rule}, float64 only")
    assert rule == "bitwise"


@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_same_parameters(  # noqa: PLR0913, PLR0917 - one argument per dimension
    shared_host: IsolatedHost,
    rule: Rule,
    model: str,
    optimizer: str,
    replicas: int,
    batches: str,
) -> None:
    """After every step the parameters of both languages are identical. Spec: R15.1, R9.2, R9.3."""
    for dtype in ("float64", "float32") if rule == "bitwise" else ("float64",):
        train_and_compare(shared_host, rule, dtype, model, optimizer, replicas, BATCHES[batches])


def train_and_compare(  # noqa: PLR0913, PLR0917
    host: IsolatedHost,
    rule: Rule,
    dtype: str,
    model: str,
    optimizer: str,
    replicas: int,
    sizes: tuple[int, ...],
) -> None:
    """Train both sides from one seed, and compare after every step."""
    factory, shape = MODELS[model]
    name, options = optimizer.split(maxsplit=1)[0], OPTIMIZERS[optimizer]
    kind = getattr(torch, dtype)
    torch.manual_seed(SEED)
    own = factory().to(kind)
    trainer = bridge.Trainer(
        own,
        create(name, own.parameters(), **options),
        functional.cross_entropy,
        ["cpu"] * replicas,
    )
    with host.trainer(
        f"BridgeSharp.Models.{model}",
        optimizer=name,
        replicas=replicas,
        dtype=dtype,
        seed=SEED,
        threads=1,
        **options,
    ) as port:
        before = {key: value.clone() for key, value in trainer.state_dict().items()}
        assert all(c.bit_equal == c.values for c in compare(before, port.state_dict(), rule))
        generator = torch.Generator().manual_seed(SEED)
        for step in range(STEPS):
            count = sizes[step % 2]
            inputs = torch.randn(count, *shape, generator=generator).to(kind)
            targets = torch.randint(0, 10, (count,), generator=generator)
            losses = trainer.step(inputs, targets), port.step(inputs, targets)
            pair = [{"loss": torch.tensor([loss], dtype=torch.float64)} for loss in losses]
            assert all(c.same for c in compare(pair[0], pair[1], rule)), (
                f"losses differ at step {step}"
            )
            tensors = compare(trainer.state_dict(), port.state_dict(), rule)
            assert [c.name for c in tensors if not c.same] == [], (
                f"parameters differ at step {step}"
            )
        after = trainer.state_dict()
        assert all(not torch.equal(before[key], after[key]) for key in before)


def test_digest_is_one_function(shared_host: IsolatedHost) -> None:
    """The digest of one state is the same in both languages. Spec: R11.1."""
    with shared_host.trainer("BridgeSharp.Models.LeNet", seed=SEED) as port:
        assert port.digest() == digest(port.state_dict().items())
