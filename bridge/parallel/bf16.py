"""Products in bfloat16 whose operands and results are float32."""

from collections.abc import Callable
from functools import cache, partial
from typing import cast

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.conv import _ConvNd


def bf16_matmul(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:  # noqa: A002 - PyTorch's name
    """Multiply matrices in bfloat16, as ``torch.matmul`` does.

    Both are rounded to bfloat16, and so is the product, which is float32 again; the same holds for
    the gradients on their way back.

    Args:
        input: float32, of any shape that ``torch.matmul`` takes.
        other: the same.

    Returns:
        The product, float32, fresh.

    Raises:
        ValueError: another dtype.
        RuntimeError: ``torch.autocast`` is on.

    Spec: R18.1, R18.5
    """
    return _in_bf16("bf16_matmul", torch.matmul, input=input, other=other)


def bf16_linear(
    input: torch.Tensor,  # noqa: A002 - PyTorch's name
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """Apply a linear map in bfloat16, as ``torch.nn.functional.linear`` does.

    Args:
        input: float32 ``(*, K)``.
        weight: float32 ``(M, K)``.
        bias: float32 ``(M,)``.

    Returns:
        ``(*, M)``, float32, fresh.

    Raises:
        ValueError: another dtype.
        RuntimeError: ``torch.autocast`` is on.

    Spec: R18.1, R18.5
    """
    return _in_bf16("bf16_linear", functional.linear, input=input, weight=weight, bias=bias)


class Bf16Linear(nn.Linear):
    """A linear layer whose product is in bfloat16."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - PyTorch's name
        """Apply the layer as ``bf16_linear`` does."""
        return bf16_linear(input, self.weight, self.bias)


class Bf16Conv1d(nn.Conv1d):
    """A convolution over one dimension whose product is in bfloat16."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - PyTorch's name
        """Apply the layer."""
        return _convolve(functional.conv1d, self, input)


class Bf16Conv2d(nn.Conv2d):
    """A convolution over two dimensions whose product is in bfloat16."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - PyTorch's name
        """Apply the layer."""
        return _convolve(functional.conv2d, self, input)


class Bf16Conv3d(nn.Conv3d):
    """A convolution over three dimensions whose product is in bfloat16."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - PyTorch's name
        """Apply the layer."""
        return _convolve(functional.conv3d, self, input)


def _convolve(
    operation: Callable[..., torch.Tensor],
    layer: _ConvNd,
    input: torch.Tensor,  # noqa: A002 - PyTorch's name
) -> torch.Tensor:
    """Convolve in bfloat16; what a padding mode copies is copied in float32."""
    padding: object = layer.padding
    if layer.padding_mode != "zeros":
        margins = layer._reversed_padding_repeated_twice  # noqa: SLF001 - no other name for it
        input, padding = functional.pad(input, margins, layer.padding_mode), 0  # noqa: A001
    options = {"stride": layer.stride, "dilation": layer.dilation, "groups": layer.groups}
    product = partial(operation, padding=padding, **options)
    name = f"conv{len(layer.kernel_size)}d"
    return _in_bf16(name, product, input=input, weight=layer.weight, bias=layer.bias)


def _in_bf16(
    name: str,
    operation: Callable[..., torch.Tensor],
    input: torch.Tensor,  # noqa: A002 - PyTorch's name
    **others: torch.Tensor | None,
) -> torch.Tensor:
    """Round the operands to bfloat16, run the operation, and return its result in float32.

    Sums are in float32. Where torch would add in bfloat16, products of the rounded operands are
    calculated in float32 and rounded: the same rule, at another speed.
    """
    if _autocasts():
        message = f"{name}: expected torch.autocast off, which C# does not have, got it on"
        raise RuntimeError(message)
    operands: dict[str, torch.Tensor | None] = {"input": input, **others}
    for operand, value in operands.items():
        if value is not None and value.dtype != torch.float32:
            kind = str(value.dtype).removeprefix("torch.")
            message = f"{name}: expected {operand} of float32, got {kind}"
            raise ValueError(message)
    rounded = [None if value is None else value.bfloat16() for value in operands.values()]
    if adds_in_float32(input.device.type):
        return operation(*rounded).float()
    exact = [None if value is None else value.float() for value in rounded]
    return operation(*exact).bfloat16().float()


@cache
def adds_in_float32(device: str) -> bool:
    """Tell whether torch adds products of bfloat16 in float32: PyTorch 1.13 does not everywhere."""
    row = torch.tensor([[256.0, 1, 1, 1, 1]], dtype=torch.bfloat16, device=device)
    sums: list[float] = (row @ torch.ones(5, 2, dtype=row.dtype, device=device))[0].tolist()
    return sums == [260, 260]


def _autocasts() -> bool:
    """Tell whether ``torch.autocast`` is on."""
    enabled = cast("Callable[..., bool]", torch.is_autocast_enabled)
    try:
        return enabled("cpu") or enabled("cuda")
    except TypeError:  # PyTorch 1.13 has a function for each.
        return enabled() or torch.is_autocast_cpu_enabled()
