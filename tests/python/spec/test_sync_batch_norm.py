"""Batch normalization over the samples of all replicas."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from bridge import DataParallel, ReplicaError, SyncBatchNorm, Trainer
from tests.python.spec.vectors import assert_same

CPU = "cpu"


def model_of(norm: Any, seed: int, **options: Any) -> nn.Sequential:  # noqa: ANN401
    """Make a small network in float64, with two layers of normalization."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(3, 5), norm(5, **options), nn.Tanh(), nn.Linear(5, 4), norm(4, **options)
    ).double()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(2, 13), min_size=1, max_size=3),
    st.integers(1, 5),
    st.integers(0, 2**16),
    st.sampled_from([{}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}]),
)
def test_replicas_train_as_one_model(
    sizes: list[int], replicas: int, seed: int, options: dict[str, Any]
) -> None:
    """Gradients, weights and statistics are the undivided model's. Spec: R22.1."""
    models = [model_of(SyncBatchNorm, seed, **options), model_of(nn.BatchNorm1d, seed, **options)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in models]
    trainer = Trainer(models[0], optimizers[0], functional.mse_loss, [CPU] * replicas)
    for step, size in enumerate(sizes):
        generator = torch.Generator().manual_seed(seed + step)
        inputs = torch.randn(size, 3, generator=generator, dtype=torch.float64)
        targets = torch.randn(size, 4, generator=generator, dtype=torch.float64)
        loss = trainer.step(inputs, targets)
        optimizers[1].zero_grad(set_to_none=True)
        whole = functional.mse_loss(models[1](inputs), targets)
        whole.backward()  # type: ignore[no-untyped-call]
        optimizers[1].step()
        gradients = [[p.grad for p in model.parameters()] for model in models]
        largest = max(float(g.abs().max()) for g in gradients[1] if g is not None)
        if size > 2:  # With two samples the gradients are differences of nearly equal numbers.
            for one, other in zip(*gradients, strict=True):
                assert one is not None
                assert other is not None
                assert float((one - other).abs().max()) <= 1e-12 * max(largest, 1e-3)
            assert abs(loss - whole.item()) <= 1e-12
        for name, value in models[1].named_buffers():
            difference = models[0].get_buffer(name) - value
            assert float(difference.abs().max()) <= 1e-12 * max(1, float(value.abs().max()))
        models[1].load_state_dict(models[0].state_dict())
    for replica in trainer.replicas:
        assert_same(dict(replica.state_dict()), dict(models[0].state_dict()))


@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 2), (5, 3, 2, 2), (4, 3, 2, 2, 2)])
def test_any_number_of_dimensions(shape: tuple[int, ...]) -> None:
    """Statistics are per channel, over samples and places. Spec: R22.1."""
    inputs = torch.randn(shape, dtype=torch.float64)
    kinds = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
    whole = kinds[len(shape)](3).double()
    wrapped = DataParallel(SyncBatchNorm(3).double(), [CPU] * 2)
    assert float((wrapped(inputs) - whole(inputs)).detach().abs().max()) <= 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_alone_and_in_evaluation_it_is_pytorchs(dtype: torch.dtype) -> None:
    """Outputs, gradients and statistics have the same bits. Spec: R22.2."""
    torch.manual_seed(0)
    own, other = SyncBatchNorm(3).to(dtype), nn.BatchNorm1d(3).to(dtype)
    for training in (True, True, False):
        results = []
        inputs = torch.randn(5, 3, dtype=dtype)
        for layer in (own, other):
            layer.train(training)
            layer.zero_grad(set_to_none=True)
            leaf = inputs.clone().requires_grad_()
            outputs = layer(leaf)
            outputs.square().sum().backward()
            grads = [leaf.grad, layer.weight.grad, layer.bias.grad]
            results.append([outputs.detach(), *grads, *layer.state_dict().values()])
        assert_same(*results)


def test_evaluation_of_replicas_is_pytorchs() -> None:
    """Predictions use running statistics, and change none. Spec: R22.2."""
    model = model_of(SyncBatchNorm, 0)
    single = model_of(nn.BatchNorm1d, 0).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, optimizer, functional.mse_loss, [CPU] * 3)
    inputs = torch.randn(7, 3).double()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert float((trainer.predict(inputs) - single(inputs)).detach().abs().max()) <= 1e-14
    assert_same(dict(model.state_dict()), before)


def test_threads_do_not_matter() -> None:
    """One thread per replica, however many torch may use: the same bits. Spec: R22.3."""
    before = torch.get_num_threads()
    states = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        model = model_of(SyncBatchNorm, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        trainer = Trainer(model, optimizer, functional.mse_loss, [CPU] * 4)
        for size in (8, 5, 3):
            inputs = torch.linspace(-1, 1, size * 3).double().reshape(size, 3)
            trainer.step(inputs, inputs[:, [0, 1, 2, 0]])
        states.append(dict(model.state_dict()))
    torch.set_num_threads(before)
    assert_same(*states)


def test_a_batch_of_one_value_per_channel_is_refused() -> None:
    """As PyTorch refuses it; one sample per replica is fine. Spec: R22.1, R22.2."""
    model = SyncBatchNorm(2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, optimizer, functional.mse_loss, [CPU] * 2)
    trainer.step(torch.randn(2, 2), torch.randn(2, 2))
    with pytest.raises(ReplicaError, match="Expected more than 1 value per channel"):
        trainer.step(torch.randn(1, 2), torch.randn(1, 2))
    with pytest.raises(
        ReplicaError, match=r"SyncBatchNorm: expected an input .*, got shape \(1,\)"
    ):
        trainer.step(torch.randn(2), torch.randn(2))


def test_half_precision_is_normalized_in_single() -> None:
    """Outputs are bfloat16, within its rounding of float32's. Spec: R22.1."""
    inputs = torch.randn(64, 3).to(torch.bfloat16)
    wrapped = DataParallel(SyncBatchNorm(3), [CPU] * 2)
    outputs = wrapped(inputs)
    assert outputs.dtype == torch.bfloat16
    expected = nn.BatchNorm1d(3)(inputs.float())
    assert float((outputs - expected).detach().abs().max()) <= 2**-6
