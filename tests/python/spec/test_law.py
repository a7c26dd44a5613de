"""The first law: any number of replicas and any shard sizes train as one undivided model."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from bridge import Trainer, average, gather, parallel_apply, replicate, scatter
from tests.python.spec.vectors import assert_same, bits

sizes, replicas_of = st.integers(1, 17), st.integers(1, 5)
seeds = st.integers(0, 2**16)


def model_of(seed: int) -> nn.Sequential:
    """Make a small network in float64."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(6, 11), nn.Tanh(), nn.Linear(11, 7), nn.ReLU(), nn.Linear(7, 4)
    ).double()


def batch_of(seed: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a batch for it."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(size, 6, generator=generator, dtype=torch.float64)
    return inputs, torch.randint(0, 4, (size,), generator=generator)


def gradients_of(model: nn.Module) -> list[torch.Tensor]:
    """List the gradients of a model."""
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def undivided(model: nn.Module, size: int, seed: int) -> list[torch.Tensor]:
    """Calculate the gradients of one model on the whole batch."""
    inputs, targets = batch_of(seed, size)
    model.zero_grad(set_to_none=True)
    functional.cross_entropy(model(inputs), targets).backward()  # type: ignore[no-untyped-call]
    return [gradient.clone() for gradient in gradients_of(model)]


@settings(max_examples=60, deadline=None)
@given(sizes, replicas_of, seeds)
def test_gradients_agree(size: int, count: int, seed: int) -> None:
    """Gradients agree within 1e-12 of the largest; one replica's are equal. Spec: R8.1, R5.1."""
    model = model_of(seed)
    expected = undivided(model, size, seed)
    replicas = replicate(model, ["cpu"] * count)
    shards = scatter(batch_of(seed, size), ["cpu"] * count)
    for replica in replicas:
        replica.zero_grad(set_to_none=True)
    for replica, (inputs, targets) in zip(replicas, shards, strict=False):
        functional.cross_entropy(replica(inputs), targets).backward()  # type: ignore[no-untyped-call]
    average(replicas[: len(shards)], [len(targets) for _, targets in shards])
    actual = gradients_of(model)
    if count == 1:
        assert_same(actual, expected)
    largest = max(float(gradient.abs().max()) for gradient in expected)
    for one, other in zip(actual, expected, strict=True):
        assert float((one - other).abs().max()) <= 1e-12 * largest


@settings(max_examples=25, deadline=None)
@given(st.lists(sizes, min_size=1, max_size=4), replicas_of, seeds)
def test_training_agrees(counts: list[int], count: int, seed: int) -> None:
    """Several steps leave the parameters of a plain loop, one replica its bits. Spec: R8.1."""
    models = [model_of(seed), model_of(seed)]
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in models]
    trainer = Trainer(models[0], optimizers[0], functional.cross_entropy, ["cpu"] * count)
    for step, size in enumerate(counts):
        inputs, targets = batch_of(seed + step, size)
        optimizers[1].zero_grad(set_to_none=True)
        loss = functional.cross_entropy(models[1](inputs), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizers[1].step()
        assert abs(trainer.step(inputs, targets) - loss.item()) <= 1e-12
    states = [dict(model.state_dict()) for model in models]
    if count == 1:
        assert_same(states[0], states[1])
    for name, value in states[1].items():
        assert float((states[0][name] - value).abs().max()) <= 1e-12
        assert all(bits(r.state_dict()[name]) == bits(states[0][name]) for r in trainer.replicas)


@settings(max_examples=30, deadline=None)
@given(sizes, replicas_of, seeds)
def test_outputs_agree(size: int, count: int, seed: int) -> None:
    """Scatter, forward and gather give the outputs of one model. Spec: R1.1, R2.1, R3.1."""
    model = model_of(seed)
    inputs, _ = batch_of(seed, size)
    shards = scatter(inputs, ["cpu"] * count)
    joined = gather(parallel_apply(replicate(model, ["cpu"] * count), shards))
    assert float((joined - model(inputs)).detach().abs().max()) <= 1e-13
