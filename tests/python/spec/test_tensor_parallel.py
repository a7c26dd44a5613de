"""A layer in parts is the whole layer."""

import copy
from collections.abc import Sequence

import pytest
import torch
from torch import nn

from bridge import ChannelParallelConv2d, ColumnParallelLinear, RowParallelLinear, whole_state
from tests.python.spec.vectors import Case, assert_close, assert_same, cases, refusal, tree

KINDS = (ColumnParallelLinear, RowParallelLinear, ChannelParallelConv2d)
Kind = type[ColumnParallelLinear | RowParallelLinear | ChannelParallelConv2d]


def whole_of(case: Case) -> nn.Module:
    """Make the whole layer of a case."""
    weight, bias = tree(case["weight"]), tree(case["bias"])
    count, width = weight.shape[0], weight.shape[1]
    groups = case.get("groups", 1)
    layer: nn.Linear | nn.Conv2d = nn.Linear(width, count, bias=bias is not None)
    if weight.dim() > 2:
        layer = nn.Conv2d(width * groups, count, 1, groups=groups, bias=bias is not None)
    layer.weight = nn.Parameter(weight)
    if bias is not None:
        layer.bias = nn.Parameter(bias)
    return layer


@cases("tensor_parallel")
def test_vectors(case: Case) -> None:
    """Parts, outputs, gradients and refusals are those of the vectors.

    Spec: R24.4, R24.5, R24.6
    """
    kind = next(kind for kind in KINDS if kind.__name__ == case["layer"])
    whole = whole_of(case)
    with refusal(case):
        layer = kind(whole, ["cpu"] * case["devices"])
        assert [part.weight.shape[layer.dim] for part in layer.parts] == case["sizes"]
        assert_same(whole_state(layer), dict(whole.state_dict()))
        inputs = tree(case["inputs"]).requires_grad_()
        outputs = layer(inputs)
        outputs.backward(tree(case["upstream"]))
        assert_same(outputs.detach(), tree(case["expected"]))
        expected = {name: tree(value) for name, value in case["gradients"].items()}
        assert_same(inputs.grad, expected.pop("inputs"))
        assert_same(whole_state(layer, gradients=True), expected)


def networks(devices: Sequence[str]) -> tuple[nn.Sequential, nn.Sequential]:
    """Make a network in float64, and the same with its layers split."""
    torch.manual_seed(3)
    first = nn.Conv2d(3, 7, 3, stride=2, padding=2, dilation=2, padding_mode="reflect")
    second = nn.Conv2d(7, 5, 3, padding="same", bias=False)
    third, last = nn.Linear(80, 11, bias=False), nn.Linear(11, 5)
    layers = [first, nn.BatchNorm2d(7), second, nn.Flatten(), third, nn.Tanh(), last]
    whole = nn.Sequential(*layers).double()
    split = copy.deepcopy(whole)
    split[0], split[2] = (ChannelParallelConv2d(layer, devices) for layer in (first, second))
    split[4], split[6] = ColumnParallelLinear(third, devices), RowParallelLinear(last, devices)
    return whole, split


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_network_is_the_undivided_one(parts: int) -> None:
    """Outputs, gradients and state, under their names and in order, are the whole's.

    Spec: R24.4, R24.6
    """
    whole, split = networks(["cpu"] * parts)
    assert_same(whole_state(split), dict(whole.state_dict()))
    inputs = torch.randn(4, 3, 8, 8, dtype=torch.float64, requires_grad=True)
    others = inputs.detach().clone().requires_grad_()
    for net, x in ((split, inputs), (whole, others)):
        net(x).square().sum().backward()
    actual, expected = (whole_state(net, gradients=True) for net in (split, whole))
    assert list(actual) == list(expected)
    actual["inputs"], expected["inputs"] = inputs.grad, others.grad  # type: ignore[assignment]
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        assert (actual[name] - gradient).abs().max() <= 1e-12 * largest, name


def test_whole_layer_stays_as_it_is() -> None:
    """Parts are copies, frozen where the whole is, and nothing is drawn. Spec: R24.6."""
    linear, image = nn.Linear(4, 6).double(), nn.Conv2d(2, 3, 3).double()
    for kind, whole in zip(KINDS, (linear, copy.deepcopy(linear), image), strict=True):
        whole.weight.requires_grad = False
        before, random = copy.deepcopy(whole.state_dict()), torch.get_rng_state()
        layer = kind(whole, ["cpu", "cpu"])
        assert torch.equal(torch.get_rng_state(), random)
        for name, parameter in layer.named_parameters():
            assert parameter.requires_grad == name.endswith("bias")
            parameter.detach().zero_()
        assert_same(whole.state_dict(), before)


def test_one_sample_and_more_dimensions() -> None:
    """Images without N, and inputs of any rank, are taken as by the whole layer. Spec: R24.4."""
    linear, image = nn.Linear(4, 6).double(), nn.Conv2d(2, 3, 3).double()
    devices = ["cpu", "cpu"]
    for whole, layer, shape in (
        (linear, ColumnParallelLinear(linear, devices), (2, 3, 4)),
        (linear, RowParallelLinear(linear, devices), (4,)),
        (image, ChannelParallelConv2d(image, devices), (2, 5, 5)),
    ):
        x = torch.randn(shape, dtype=torch.float64)
        assert_close(layer(x).detach(), whole(x).detach(), 1e-12)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_parts_are_on_their_gpus() -> None:
    """Each part is on its GPU, and the outputs on the first. Spec: R24.4."""
    for kind in (ColumnParallelLinear, RowParallelLinear):
        layer = kind(nn.Linear(4, 6), ["cuda:0", "cuda:1"])
        assert [part.weight.device.index for part in layer.parts] == [0, 1]
        assert layer(torch.randn(3, 4, device="cuda:0")).device == torch.device("cuda:0")
