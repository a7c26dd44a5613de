"""Products in bfloat16, alone and in layers."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.amp.autocast_mode import autocast
from torch.nn import functional

import bridge
from bridge import bf16_linear, bf16_matmul, mixed_precision
from bridge.parallel import bf16
from tests.python.spec.vectors import Case, assert_close, assert_same, cases, refusal, tensor

LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(37, 19), (13, 37)),
    "linear of matrices": (lambda: nn.Linear(37, 19), (3, 5, 37)),
    "linear without a bias": (lambda: nn.Linear(130, 18, bias=False), (64, 130)),
    "conv1d": (lambda: nn.Conv1d(3, 5, 3, padding="same"), (4, 3, 11)),
    "conv2d": (lambda: nn.Conv2d(6, 8, 3, stride=2, padding=2, groups=2, dilation=2), (3, 6, 9, 8)),
    "conv2d of one sample": (lambda: nn.Conv2d(1, 20, 3), (1, 8, 8)),
    "conv3d": (lambda: nn.Conv3d(2, 4, (1, 2, 3), bias=False), (2, 2, 5, 6, 7)),
}


def gradients(output: torch.Tensor, leaves: list[torch.Tensor]) -> list[torch.Tensor]:
    """Differentiate an output by leaves, from a gradient that is the same again and again."""
    generator = torch.Generator().manual_seed(1)
    gradient = torch.randn(output.shape, generator=generator)
    return list(torch.autograd.grad(output, leaves, gradient))


def assert_as_autocast(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    """Compare bit for bit, but roughly where ``torch.autocast`` adds in bfloat16 itself."""
    relative = 0 if bf16.adds_in_float32("cpu") else 2**-6
    for one, other in zip(actual, expected, strict=True):
        assert_close(one.detach(), other.detach(), relative)


@cases("bf16")
def test_vectors(case: Case) -> None:
    """Products, gradients and refusals are those of the vectors. Spec: R18.1."""
    dtypes = case.get("dtypes", {})
    operands = {
        name: tensor(value, dtypes.get(name, "float32")).requires_grad_()
        for name, value in case["operands"].items()
    }
    with refusal(case):
        output = getattr(bridge, case["function"])(**operands)
        assert_same(output.detach(), tensor(case["expected"], "float32"))
        gradient, leaves = tensor(case["gradient"], "float32"), list(operands.values())
        actual = torch.autograd.grad(output, leaves, gradient)
        expected = [tensor(value, "float32") for value in case["gradients"].values()]
        assert_same(list(actual), expected)


@pytest.mark.parametrize("kind", LAYERS)
def test_bits_are_those_of_autocast(kind: str) -> None:
    """A layer gives the bits of ``torch.autocast`` on the CPU, cast to float32. Spec: R18.4."""
    torch.manual_seed(0)
    factory, shape = LAYERS[kind]
    layer, inputs = factory(), torch.randn(shape, requires_grad=True)
    leaves = [inputs, *layer.parameters()]
    with autocast("cpu", torch.bfloat16):
        output = layer(inputs)
    assert output.dtype == torch.bfloat16
    expected = [output.float(), *gradients(output.float(), leaves)]

    output = mixed_precision(layer)(inputs)

    assert_as_autocast([output, *gradients(output, leaves)], expected)


def test_functions_give_the_bits_of_autocast() -> None:
    """So do the functions, for matrices and for batches of them. Spec: R18.4."""
    torch.manual_seed(0)
    a, b = torch.randn(5, 7, 9, requires_grad=True), torch.randn(9, 4, requires_grad=True)
    c = torch.randn(4, requires_grad=True)
    with autocast("cpu", torch.bfloat16):
        matmul = torch.matmul(a, b).float()
        linear = functional.linear(a, b.t(), c).float()

    for expected, output in ((matmul, bf16_matmul(a, b)), (linear, bf16_linear(a, b.t(), c))):
        assert_as_autocast(
            [output, *gradients(output, [a, b])], [expected, *gradients(expected, [a, b])]
        )


@pytest.mark.parametrize("kind", LAYERS)
def test_sums_are_in_float32(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are in float32, also where torch itself would add in bfloat16. Spec: R18.1."""
    torch.manual_seed(0)
    factory, shape = LAYERS[kind]
    layer, inputs = factory(), torch.randn(shape)
    exact = copy.deepcopy(layer).bfloat16().double()(inputs.bfloat16().double()).detach()
    mixed_precision(layer)
    for native in {False, bf16.adds_in_float32("cpu")}:
        monkeypatch.setattr(bf16, "adds_in_float32", lambda _, native=native: native)
        assert_close(layer(inputs).detach().double(), exact, 2**-8)


def test_autocast_is_refused() -> None:
    """Under ``torch.autocast`` every product says that it must be off. Spec: R18.5."""
    model = mixed_precision(nn.Conv1d(1, 1, 1))
    text = "{name}: expected torch.autocast off, which C# does not have, got it on"
    with autocast("cpu", torch.bfloat16):
        with refusal({"raises": {"RuntimeError": text}}, name="conv1d"):
            model(torch.ones(1, 1, 1))
        with refusal({"raises": {"RuntimeError": text}}, name="bf16_matmul"):
            bf16_matmul(torch.ones(1, 1), torch.ones(1, 1))
