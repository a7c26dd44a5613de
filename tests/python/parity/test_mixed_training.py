"""Mixed precision trains to the same parameters in both languages."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch
from torch.nn import functional

import bridge
from bridge.dotnet import DotnetError, IsolatedHost
from bridge.models import MLP, LeNet
from bridge.optim import create

pytestmark = pytest.mark.parity

MODELS: dict[str, tuple[type[torch.nn.Module], tuple[int, ...]]] = {
    "MLP": (MLP, (1024,)),
    "LeNet": (LeNet, (1, 28, 28)),
}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"lr": 0.1, "momentum": 0.9},
    "adam": {"lr": 0.001},
}
SAME_BUILD = torch.__version__.startswith("2.10.")
Losses = list[tuple[float, float]]
States = list[Mapping[str, torch.Tensor]]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Give Python as many threads as C#: one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def train(
    host: IsolatedHost, model: str, optimizer: str, replicas: int, steps: int
) -> tuple[Losses, States]:
    """Train both sides from one seed; the states are the first one, Python's and C#'s."""
    factory, shape = MODELS[model]
    options = OPTIMIZERS[optimizer]
    torch.manual_seed(3)
    own = bridge.mixed_precision(factory())
    kind = f"BridgeSharp.Models.{model}"
    trainer = bridge.Trainer(
        own,
        create(optimizer, own.parameters(), **options),
        functional.cross_entropy,
        ["cpu"] * replicas,
    )
    first = {name: value.clone() for name, value in trainer.state_dict().items()}
    losses = []
    with host.trainer(
        kind,
        optimizer=optimizer,
        replicas=replicas,
        seed=3,
        threads=1,
        mixed_precision=True,
        **options,
    ) as port:
        for _ in range(steps):
            inputs, targets = torch.randn(12, *shape), torch.randint(0, 10, (12,))
            losses.append((trainer.step(inputs, targets), port.step(inputs, targets)))
        return losses, [first, trainer.state_dict(), port.state_dict()]


@pytest.mark.skipif(not SAME_BUILD, reason=f"PyTorch {torch.__version__} is another build")
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_same_bits(shared_host: IsolatedHost, model: str, optimizer: str, replicas: int) -> None:
    """Within PyTorch 2.10 all losses and parameters have the same bits. Spec: R18.6."""
    losses, (first, python, csharp) = train(shared_host, model, optimizer, replicas, 4)
    assert all(own == other for own, other in losses)
    for name, value in python.items():
        assert torch.equal(value, csharp[name]), name
        assert not torch.equal(value, first[name]), name


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("model", MODELS)
def test_same_within_a_rounding(shared_host: IsolatedHost, model: str, replicas: int) -> None:
    """With any PyTorch a step of SGD agrees within 2 ulps of bfloat16. Spec: R18.6."""
    losses, (first, python, csharp) = train(shared_host, model, "sgd", replicas, 1)
    assert losses[0][0] == pytest.approx(losses[0][1], rel=2**-8)
    for name, value in python.items():
        move = float((value - first[name]).abs().max())
        ulp = 2.0 ** (math.floor(math.log2(move)) - 7)
        assert float((value - csharp[name]).abs().max()) <= 2 * ulp, name


def test_refusal_arrives(shared_host: IsolatedHost) -> None:
    """What mixed precision refuses in C# is an error in Python. Spec: R18.3."""
    with pytest.raises(DotnetError, match=r"expected conv1\.weight of float32, got float64"):
        shared_host.trainer("BridgeSharp.Models.LeNet", dtype="float64", mixed_precision=True)
