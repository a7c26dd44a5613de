"""Reducing gradients."""

import pytest
import torch
from torch import nn

from bridge import average, replicate
from tests.python.spec.vectors import Case, Net, assert_same, cases, number, refusal, tensor


def replicas_of(case: Case) -> list[Net]:
    """Make replicas whose parameters have the gradients of a case."""
    dtype = case.get("dtype", "float64")
    replicas = []
    for gradients in case["gradients"]:
        shapes = {name: value or _first(case, name) for name, value in gradients.items()}
        replica = Net({name: torch.zeros_like(tensor(v, dtype)) for name, v in shapes.items()})
        for name, parameter in replica.named_parameters():
            value = gradients[name]
            parameter.grad = None if value is None else tensor(value, dtype)
        replicas.append(replica)
    return replicas


def _first(case: Case, name: str) -> list[float]:
    """Find a gradient of a parameter, for its shape; one that has none anywhere has one value."""
    return next((g[name] for g in case["gradients"] if g[name] is not None), [0.0])


def gradients_of(replica: nn.Module) -> dict[str, torch.Tensor | None]:
    """List the gradients of a replica."""
    return {name: parameter.grad for name, parameter in replica.named_parameters()}


@cases("average")
def test_vectors(case: Case) -> None:
    """Gradients and refusals as in vectors. Spec: R5.1, R5.2, R5.3, R5.4, R5.5, R5.6, R5.7."""
    replicas = replicas_of(case)
    given = case.get("weights")
    weights = None if given is None else [number(weight) for weight in given]
    dtype = case.get("dtype", "float64")
    with refusal(case):
        average(
            replicas,
            weights,
            reduction=case.get("reduction", "weighted"),
            broadcast=case.get("broadcast", True),
        )
        expected = [
            {name: None if v is None else tensor(v, dtype) for name, v in gradients.items()}
            for gradients in case["expected"]
        ]
        assert_same([gradients_of(replica) for replica in replicas], expected)


def test_refusal_changes_nothing() -> None:
    """Gradients are as before where weights are refused. Spec: R5.5."""
    case = {"gradients": [{"w": [1.0]}, {"w": [3.0]}]}
    replicas = replicas_of(case)
    with refusal({"raises": {"ValueError": "average: expected a weight above 0, got only zeros"}}):
        average(replicas, [0, 0])
    assert [replica.get_parameter("w").grad for replica in replicas] == [1, 3]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_nothing_comes_from_a_weight_of_0(order: list[int]) -> None:
    """Not even NaN, the gradient of a mean over nothing. Spec: R5.1."""
    gradients = [{"w": [2.0]}, {"w": [float("nan")]}]
    replicas = replicas_of({"gradients": [gradients[index] for index in order]})
    average(replicas, [1 - index for index in order])
    assert [replica.get_parameter("w").grad for replica in replicas] == [2, 2]


def test_every_replica_gets_a_copy_of_its_own() -> None:
    """Changing one replica's result leaves the others'. Spec: R5.6."""
    replicas = replicas_of({"gradients": [{"w": [1.0]}, {"w": [3.0]}, {"w": [5.0]}]})
    average(replicas)
    grads = [replica.get_parameter("w").grad for replica in replicas]
    assert len({grad.data_ptr() for grad in grads if grad is not None}) == 3


def test_tied_parameter_is_reduced_once() -> None:
    """A parameter in two places counts once. Spec: R5.1."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    model[1].weight = model[0].weight
    replicas = replicate(model, ["cpu", "cpu"])
    for replica, gradient in zip(replicas, (1.0, 3.0), strict=True):
        replica[0].weight.grad = torch.tensor([[gradient]])
    average(replicas)
    assert [replica[1].weight.grad.tolist() for replica in replicas] == [[[2.0]], [[2.0]]]


def embedding_gradients(replicas: int, *, dtype: torch.dtype = torch.float64) -> list[nn.Embedding]:
    """Make replicas of an embedding with sparse gradients, of other rows each."""
    copies = replicate(nn.Embedding(5, 2, sparse=True).to(dtype), ["cpu"] * replicas)
    for index, replica in enumerate(copies):
        replica(torch.tensor([index, 4, index])).sum().backward()
    return copies


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_sparse_gradients_stay_sparse(dtype: torch.dtype) -> None:
    """The weighted mean of sparse gradients is sparse, on every replica. Spec: R5.7."""
    replicas = embedding_gradients(3, dtype=dtype)
    average(replicas, [1, 2, 1])
    for replica in replicas:
        grad = replica.weight.grad
        assert grad is not None
        assert grad.is_sparse
        assert grad.dtype == dtype
        assert grad.to_dense()[:, 0].tolist() == [0.5, 1, 0.5, 0, 1]


@pytest.mark.parametrize("dense", [0, 1])
def test_sparse_and_dense_gradients_add_up_to_a_dense_one(dense: int) -> None:
    """Where one replica's gradient is dense the sum is, in any order. Spec: R5.7."""
    replicas = embedding_gradients(2)
    grad = replicas[dense].weight.grad
    assert grad is not None
    replicas[dense].weight.grad = grad.to_dense()
    average(replicas, reduction="sum")
    result = replicas[1].weight.grad
    assert result is not None
    assert result.to_dense()[:, 0].tolist() == [2, 2, 0, 0, 2]


def test_frozen_parameters_are_left_alone() -> None:
    """A frozen parameter has no gradient afterwards either. Spec: R5.4."""
    model = nn.Linear(1, 1)
    model.bias.requires_grad_(False)  # noqa: FBT003 - torch's name differs by version
    replicas = replicate(model, ["cpu", "cpu"])
    for replica in replicas:
        replica(torch.ones(1, 1)).sum().backward()
    average(replicas)
    assert all(replica.bias.grad is None for replica in replicas)
    assert all(replica.weight.grad is not None for replica in replicas)


def test_graph_is_not_kept() -> None:
    """The result is outside every graph, also where gradients are inside one. Spec: R5.1."""
    replicas = replicas_of({"gradients": [{"w": [1.0]}, {"w": [3.0]}]})
    for replica in replicas:
        replica.get_parameter("w").grad = torch.ones(1, dtype=torch.float64, requires_grad=True) * 2
    average(replicas)
    grad = replicas[0].get_parameter("w").grad
    assert grad is not None
    assert grad.grad_fn is None
