"""Updating the parameters of all replicas."""

import pytest
import torch
from torch import nn

from bridge import average, replicate, step
from tests.python.spec.vectors import Case, Net, assert_same, cases, refusal, tensor


@cases("step")
def test_vectors(case: Case) -> None:
    """Values and refusals are those of the vectors. Spec: R7.1, R7.2, R7.3."""
    replicas = [Net({"w": tensor(value)}) for value in case["values"]]
    for replica, gradient in zip(replicas, case["gradients"], strict=True):
        replica.get_parameter("w").grad = None if gradient is None else tensor(gradient)
    chosen = case["optimizer"]
    made = [torch.optim.SGD(replica.parameters(), lr=case["lr"]) for replica in replicas]
    with refusal(case):
        step(replicas, [made[i] for i in chosen] if isinstance(chosen, list) else made[chosen])
        actual = [replica.get_parameter("w").detach() for replica in replicas]
        assert_same(actual, [tensor(value) for value in case["expected"]])


def test_no_replica_is_refused() -> None:
    """At least one replica is expected. Spec: R7.1."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    with pytest.raises(ValueError, match=r"^step: expected at least 1 replica, got 0$"):
        step([], optimizer)
    with pytest.raises(ValueError, match=r"^step: expected at least 1 replica, got 0$"):
        step([], [])


def test_refusal_changes_nothing() -> None:
    """No optimizer steps where one of them is refused. Spec: R7.2."""
    replicas = [Net({"w": torch.ones(1)}) for _ in range(2)]
    for replica in replicas:
        replica.get_parameter("w").grad = torch.ones(1)
    optimizers = [torch.optim.SGD(replicas[0].parameters(), lr=1.0)] * 2
    with pytest.raises(ValueError, match="replica 1"):
        step(replicas, optimizers)
    assert [float(replica.get_parameter("w")) for replica in replicas] == [1, 1]


def test_a_parameter_twice_is_refused() -> None:
    """The optimizer would move it twice in one step. Spec: R7.2."""
    model = nn.Linear(2, 1)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = torch.optim.SGD([*model.parameters(), model.weight], lr=1.0)
    expected = "step: expected an optimizer that has every parameter once, got 1 of 3 again"
    with refusal({"raises": {"ValueError": expected}}):
        step([model], optimizer)


def test_modes_leave_the_same_parameters() -> None:
    """One optimizer per replica and one for all give the same bits. Spec: R7.1, R7.3."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).double()
    results = []
    for mode in ("master", "all"):
        replicas = replicate(replicate(model, ["cpu"] * 2)[1], ["cpu"] * 3)
        made = [torch.optim.Adam(replica.parameters(), lr=0.05) for replica in replicas]
        generator = torch.Generator().manual_seed(4)
        for _ in range(5):
            for replica in replicas:
                x = torch.randn(3, 4, generator=generator, dtype=torch.float64)
                replica.zero_grad(set_to_none=True)
                replica(x).square().sum().backward()
            average(replicas)
            step(replicas, made[0] if mode == "master" else made)
        results += [dict(replica.state_dict()) for replica in replicas]
    for state in results[1:]:
        assert_same(state, results[0])


def test_parameters_that_the_optimizer_lacks_stay() -> None:
    """An optimizer may have some of replica 0's parameters. Spec: R7.2."""
    model = nn.Linear(2, 1)
    replicas = replicate(model, ["cpu", "cpu"])
    model(torch.ones(1, 2)).sum().backward()
    bias = model.bias.detach().clone()
    step(replicas, torch.optim.SGD([model.weight], lr=1.0))
    assert torch.equal(model.bias, bias)
    assert torch.equal(replicas[1].weight, model.weight)
