"""Making replicas by a factory."""

import threading

import pytest
import torch
from torch import nn
from torch.nn import functional

from bridge import DataParallel, Trainer, replicate
from tests.python.spec.holder import Holder
from tests.python.spec.test_replicate import Tied


class Marked(nn.Module):
    """May have a buffer that no state dict has, and a child without state."""

    def __init__(self, mark: torch.Tensor | None = None, *, child: bool = False) -> None:
        """Register what is asked for."""
        super().__init__()
        if mark is not None:
            self.register_buffer("mark", mark, persistent=False)
        if child:
            self.child = nn.ReLU()


def test_state_and_flags_are_taken() -> None:
    """A factory's model takes state and flags, and draws nothing. Spec: R4.9, R4.10."""
    model = Tied()
    model.scratch.fill_(5)
    model.first.bias.requires_grad = False
    model.norm.eval()
    random = torch.get_rng_state()
    replicas = replicate(model, ["cpu"] * 3, Tied)
    assert torch.equal(torch.get_rng_state(), random)
    assert replicas[0] is model
    assert len(set(replicas)) == 3
    for copy in replicas[1:]:
        for name, tensor in copy.state_dict().items():
            assert torch.equal(tensor, model.state_dict()[name]), name
        assert torch.equal(copy.scratch, model.scratch)
        assert (copy.first.bias.requires_grad, copy.second.bias.requires_grad) == (False, True)
        assert (copy.training, copy.first.training, copy.norm.training) == (True, True, False)


def test_what_cannot_be_copied_is_made() -> None:
    """A factory makes replicas of what cannot be copied. Spec: R4.8, R4.9."""
    model = Holder(threading.Lock())
    copy = replicate(model, ["cpu", "cpu"], lambda: Holder(threading.Lock()))[1]
    assert torch.equal(copy.layer.weight, model.layer.weight)
    assert copy.layer is not model.layer


def test_trainer_and_data_parallel_take_a_factory() -> None:
    """What cannot be copied trains as one model does. Spec: R4.9, R8.1, R25.1."""
    torch.manual_seed(2)
    inputs = torch.randn(5, 2, dtype=torch.float64)
    model = Holder(threading.Lock()).double()
    plain = nn.Linear(2, 2).double()
    plain.load_state_dict(model.layer.state_dict())

    def factory() -> Holder:
        return Holder(threading.Lock()).double()

    plain(inputs).square().mean().backward()
    net = DataParallel(model, ["cpu"] * 3, factory=factory)
    net(inputs).square().mean().backward()
    for one, other in zip(model.parameters(), plain.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.allclose(one.grad, other.grad, rtol=0, atol=1e-12)
    optimizers = [torch.optim.SGD(own.parameters(), lr=0.5) for own in (model, plain)]
    targets = torch.zeros_like(inputs)
    trainer = Trainer(model, optimizers[0], functional.mse_loss, ["cpu"] * 3, factory=factory)
    trainer.step(inputs, targets)
    optimizers[1].step()
    for replica in trainer.replicas:
        for one, other in zip(replica.parameters(), plain.parameters(), strict=True):
            assert torch.allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "other", "text"),
    [
        (Marked(torch.ones(2)), Marked(torch.ones(1)), "shape (1,) and dtype float32"),
        (Marked(torch.ones(2)), Marked(), "none"),
    ],
)
def test_other_buffers_are_refused(model: Marked, other: Marked, text: str) -> None:
    """Another buffer is refused by name, though no state dict has it. Spec: R4.9."""
    with pytest.raises(ValueError, match="replicate") as caught:
        replicate(model, ["cpu", "cpu"], lambda: other)
    wanted = "expected buffer mark of shape (2,) and dtype float32 from factory"
    assert str(caught.value) == f"replicate: {wanted}, got {text}"


def test_other_modules_are_refused() -> None:
    """A model without one of the modules is refused by the module's name. Spec: R4.9."""
    with pytest.raises(ValueError, match="replicate") as caught:
        replicate(Marked(child=True), ["cpu", "cpu"], Marked)
    assert str(caught.value) == "replicate: expected module child from factory, got none"
