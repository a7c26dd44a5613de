"""Two GPUs go through the same code as CPU devices do."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from bridge import DataParallel, SyncBatchNorm, Trainer, gather, parallel_apply, replicate, scatter
from tests.python.spec.trainers import largest_difference

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="no two GPUs here")

DEVICES = ["cuda:0", "cuda:1"]


def network(norm: Any = nn.Identity) -> nn.Sequential:  # noqa: ANN401 - a class
    """Make a network in float64 on the first GPU."""
    torch.manual_seed(3)
    layers = nn.Linear(4, 6), norm(6), nn.Tanh(), nn.Linear(6, 3)
    return nn.Sequential(*layers).double().to(DEVICES[0])


def batch(size: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a batch on the CPU: scatter takes it to the GPUs."""
    generator = torch.Generator().manual_seed(size)
    inputs = torch.randn(size, 4, generator=generator, dtype=torch.float64)
    return inputs, torch.arange(size) % 3


def test_verbs_go_to_their_devices() -> None:
    """Replicas, shards and outputs are on the device of each. Spec: R1.1, R2.1, R3.1, R4.1."""
    model = network()
    replicas = replicate(model, DEVICES)
    assert [str(next(replica.parameters()).device) for replica in replicas] == DEVICES
    shards = scatter(batch()[0], DEVICES)
    assert [str(shard.device) for shard in shards] == DEVICES
    outputs = parallel_apply(replicas, shards, devices=DEVICES)
    assert [str(output.device) for output in outputs] == DEVICES
    joined = gather(outputs, DEVICES[1])
    assert str(joined.device) == DEVICES[1]
    expected = model(batch()[0].to(DEVICES[0]))
    assert largest_difference([joined.cpu()], [expected.cpu()]) <= 1e-12


@pytest.mark.parametrize("mode", ["master", "all"])
@pytest.mark.parametrize("norms", [(nn.Identity, nn.Identity), (SyncBatchNorm, nn.BatchNorm1d)])
def test_a_trainer_leaves_one_models_parameters(mode: Any, norms: tuple[Any, Any]) -> None:  # noqa: ANN401
    """In both modes, with synchronized batch norm too. Spec: R7.1, R7.3, R8.1, R22.1."""
    model, plain = network(norms[0]), network(norms[1])

    def make(parameters: Any) -> torch.optim.Optimizer:  # noqa: ANN401
        return torch.optim.SGD(parameters, lr=0.1)

    trainer = Trainer(model, make, functional.cross_entropy, DEVICES, mode=mode)
    optimizer = make(plain.parameters())
    for size in (7, 2, 8):
        inputs, targets = batch(size)
        trainer.step(inputs, targets)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(plain(inputs.to(DEVICES[0])), targets.to(DEVICES[0]))
        torch.autograd.backward(loss)
        optimizer.step()
    for replica in trainer.replicas:
        own = [parameter.cpu() for parameter in replica.parameters()]
        expected = [parameter.cpu() for parameter in plain.parameters()]
        assert largest_difference(own, expected) <= 1e-12


def test_data_parallel_leaves_one_models_gradients() -> None:
    """They come back to the first GPU through gather. Spec: R25.1."""
    module = network()
    plain = copy.deepcopy(module)
    inputs, targets = (part.to(DEVICES[0]) for part in batch())
    for net in (DataParallel(module, DEVICES), plain):
        torch.autograd.backward(functional.cross_entropy(net(inputs), targets))
    for one, other in zip(module.parameters(), plain.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert str(one.grad.device) == DEVICES[0]
        assert largest_difference([one.grad], [other.grad]) <= 1e-12
