"""Making replicas."""

from collections.abc import Sequence

import pytest
import torch
from torch import nn

from bridge import parallel_apply, replicate
from tests.python.spec.vectors import Case, Net, bits, cases, refusal, tensor


class Tied(nn.Module):
    """Two layers of one weight, a batch norm, a counter and a scratch buffer."""

    counter: torch.Tensor
    scratch: torch.Tensor

    def __init__(self) -> None:
        """Tie the weights of the layers."""
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("counter", torch.tensor(7))
        self.register_buffer("scratch", torch.ones(2), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layers."""
        output: torch.Tensor = self.norm(self.second(self.first(x)))
        return output


@cases("replicate")
def test_vectors(case: Case) -> None:
    """Refusals are those of the vectors. Spec: R4.1, R4.3, R4.9."""
    model, made = net(case, case["meta"]), case.get("factory")
    other = net(made) if isinstance(made, dict) else model
    with refusal(case):
        replicate(model, case["devices"], (lambda: other) if made else None)


def net(of: Case, meta: Sequence[str] = ()) -> Net:
    """Make a model of the parameters and buffers of a case."""
    return Net(
        **{
            kind: {
                name: tensor(value).to("meta" if name in meta else "cpu")
                for name, value in of[kind].items()
            }
            for kind in ("parameters", "buffers")
        }
    )


def test_replica_0_is_the_model() -> None:
    """An optimizer on the model's parameters stays valid. Spec: R4.1."""
    model = nn.Linear(2, 2)
    assert replicate(model, ["cpu"]) == [model]
    assert replicate(model, ["cpu"] * 3)[0] is model


def test_copies_have_the_same_state_and_storage_of_their_own() -> None:
    """No tensor of a copy, buffers included, shares storage with another replica's. Spec: R4.1."""
    replicas = replicate(Tied(), ["cpu"] * 3)
    states: list[dict[str, torch.Tensor]] = [
        dict([*replica.named_parameters(), *replica.named_buffers()]) for replica in replicas
    ]
    assert list(states[0]) == list(states[1]) == list(states[2])
    for name in states[0]:
        assert len({state[name].data_ptr() for state in states}) == 3, name
        assert len({bits(state[name]) for state in states}) == 1, name


def test_copies_have_no_gradients() -> None:
    """Gradients stay with the model. Spec: R4.2."""
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    copy = replicate(model, ["cpu"] * 2)[1]
    assert all(parameter.grad is None for parameter in copy.parameters())
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_frozen_parameters_stay_frozen() -> None:
    """``requires_grad`` is the original's. Spec: R4.2."""
    model = Tied()
    model.first.bias.requires_grad_(False)  # noqa: FBT003 - torch's name differs by version
    copy = replicate(model, ["cpu"] * 2)[1]
    flags = {name: parameter.requires_grad for name, parameter in copy.named_parameters()}
    assert [name for name, flag in flags.items() if not flag] == ["first.bias"]


def test_train_and_eval_stay_by_module() -> None:
    """Each module of a copy is in the mode of its original. Spec: R4.2."""
    model = Tied()
    model.norm.eval()
    copy = replicate(model, ["cpu"] * 2)[1]
    assert (copy.training, copy.first.training, copy.norm.training) == (True, True, False)


def test_tied_parameters_stay_tied() -> None:
    """One parameter in two places is one parameter in the copy. Spec: R4.2."""
    copy = replicate(Tied(), ["cpu"] * 2)[1]
    assert copy.first.weight is copy.second.weight


def test_buffers_that_are_not_persistent_are_checked() -> None:
    """A buffer elsewhere is refused, though no state dict has it. Spec: R4.3."""
    model = nn.Linear(1, 1)
    model.register_buffer("mask", torch.ones(1, device="meta"), persistent=False)
    with pytest.raises(ValueError, match="expected mask on cpu, got meta"):
        replicate(model, ["cpu", "cpu"])


def test_hooks_come_along() -> None:
    """A forward hook acts in every replica, on the replica's own module. Spec: R4.1."""
    model = Net({"w": torch.zeros(1)})
    seen: list[nn.Module] = []

    def hook(module: nn.Module, _: object, output: torch.Tensor) -> torch.Tensor:
        seen.append(module)
        return output + 1

    model.register_forward_hook(hook)  # type: ignore[arg-type]
    replicas = replicate(model, ["cpu"] * 2)
    results = parallel_apply(replicas, [torch.zeros(1)] * 2, workers=1)
    assert [result.item() for result in results] == [1, 1]
    assert seen == replicas


def test_replicating_changes_nothing() -> None:
    """The model is as before, and replicating again gives equal copies. Spec: R4.1."""
    model = Tied()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    replicate(model, ["cpu"] * 2)[1].first.weight.data.zero_()
    again = replicate(model, ["cpu"] * 2)[1]
    for name, value in again.state_dict().items():
        assert torch.equal(value, before[name]), name
        assert torch.equal(model.state_dict()[name], before[name]), name


def test_copies_train_independently() -> None:
    """A step on a copy leaves the model alone. Spec: R4.1."""
    model = nn.Linear(2, 1)
    copy = replicate(model, ["cpu"] * 2)[1]
    before = model.weight.detach().clone()
    copy(torch.ones(1, 2)).sum().backward()
    torch.optim.SGD(copy.parameters(), lr=1.0).step()
    assert torch.equal(model.weight, before)
    assert model.weight.grad is None
    assert torch.equal(copy.weight, before - 1)
