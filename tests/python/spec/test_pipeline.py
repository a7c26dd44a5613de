"""A pipeline is the undivided model, only stage by stage."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from bridge import Pipeline, ReplicaError, SyncBatchNorm
from tests.python.spec.vectors import Case, assert_same, cases, refusal, tree

CPU = torch.device("cpu")


def linear(weight: float, bias: float) -> nn.Linear:
    """Make a linear layer of one feature."""
    layer = nn.Linear(1, 1).double()
    nn.init.constant_(layer.weight, weight)
    nn.init.constant_(layer.bias, bias)
    return layer


def network() -> list[nn.Module]:
    """Make three stages in float64."""
    torch.manual_seed(3)
    layers = [nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 6), nn.Sigmoid(), nn.Linear(6, 3)]
    return [
        part.double()
        for part in (nn.Sequential(*layers[:2]), layers[2], nn.Sequential(*layers[3:]))
    ]


@cases("pipeline")
def test_vectors(case: Case) -> None:
    """Outputs, gradients and refusals are those of the vectors. Spec: R24.1, R24.2, R24.3."""
    with refusal(case):
        stages = [linear(*numbers) for numbers in case["stages"]]
        pipeline = Pipeline(stages, ["cpu"] * case["devices"], case["micro_batches"])
        inputs = tree(case["inputs"]).requires_grad_()
        outputs = pipeline(inputs)
        outputs.backward(tree(case["upstream"]))
        assert_same(outputs.detach(), tree(case["expected"]))
        expected = {name: tree(value) for name, value in case["gradients"].items()}
        assert_same(inputs.grad, expected.pop("inputs"))
        assert_same({name: p.grad for name, p in pipeline.named_parameters()}, expected)


@pytest.mark.parametrize("micro_batches", [1, 2, 3, 7, 9])
def test_it_is_the_undivided_model(micro_batches: int) -> None:
    """Outputs and gradients are the undivided batch's, uneven micro-batches or not. Spec: R24.1."""
    plain = nn.Sequential(*copy.deepcopy(network()))
    pipeline = Pipeline(network(), [CPU] * 3, micro_batches)
    inputs = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    others = inputs.detach().clone().requires_grad_()
    targets = torch.arange(7) % 3
    functional.cross_entropy(pipeline(inputs), targets).backward()  # type: ignore[no-untyped-call]
    functional.cross_entropy(plain(others), targets).backward()  # type: ignore[no-untyped-call]
    pairs = [(inputs, others), *zip(pipeline.parameters(), plain.parameters(), strict=True)]
    for one, other in pairs:
        assert one.grad is not None
        assert other.grad is not None
        assert (one.grad - other.grad).abs().max() <= 1e-12 * other.grad.abs().max()


def test_same_bits_again() -> None:
    """The same inputs give the same bits, run after run. Spec: R24.1."""
    inputs = torch.randn(64, 4, dtype=torch.float64)
    gradients = []
    for _ in range(5):
        pipeline = Pipeline(network(), [CPU] * 3, 8)
        pipeline(inputs).square().sum().backward()
        gradients.append([parameter.grad for parameter in pipeline.parameters()])
    for other in gradients[1:]:
        assert_same(other, gradients[0])


def test_stages_hand_tuples_on() -> None:
    """A tuple that one stage returns is the arguments of the next. Spec: R24.2."""

    class Halves(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x[:, :1], x[:, 1:]

    class Product(nn.Module):
        def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
            return one * other

    halves, product = (
        Pipeline([Halves(), Product()], [CPU, CPU], 2),
        Pipeline([Product()], [CPU], 2),
    )
    pairs = torch.tensor([[2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
    assert halves(pairs).flatten().tolist() == [6.0, 20.0, 42.0]
    assert product(pairs[:, 0], pairs[:, 1]).tolist() == [6.0, 20.0, 42.0]


class Picky(nn.Module):
    """Refuses values above 9."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what is not above 9."""
        if bool((x > 9).any()):
            message = "too large"
            raise ValueError(message)
        return x


def test_failing_stage_is_named() -> None:
    """The error has the stage's index; the next batch runs. Spec: R24.3."""
    pipeline = Pipeline([nn.Identity(), Picky(), nn.Identity()], [CPU] * 3, 3)
    with pytest.raises(
        ReplicaError, match="in replica 1 on device cpu: ValueError: too la"
    ) as caught:
        pipeline(torch.tensor([1.0, 2.0, 10.0]))
    assert [failure.replica for failure in caught.value.failures] == [1]
    assert pipeline(torch.tensor([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]


def test_synchronizing_stages_are_refused() -> None:
    """Stages are no replicas of each other: they have no statistics to share. Spec: R24.3."""
    stages = [nn.Linear(2, 2), SyncBatchNorm(2)]
    expected = "^Pipeline: expected stages that do not synchronize, got stage 1$"
    with pytest.raises(ValueError, match=expected):
        Pipeline(stages, [CPU, CPU], 2)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_stages_are_on_their_gpus() -> None:
    """Each stage is on its GPU, and the outputs on the last. Spec: R24.1."""
    pipeline = Pipeline(network()[:2], ["cuda:0", "cuda:1"], 2)
    assert [p.device.index for p in pipeline.parameters()] == [0, 0, 1, 1]
    assert pipeline(torch.randn(4, 4).double()).device == torch.device("cuda:1")
