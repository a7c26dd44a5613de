"""Split a layer inside: parts of its weight on devices of their own."""

from collections.abc import Sequence

import torch
from torch import nn

from bridge.parallel.devices import as_devices
from bridge.parallel.gather import gather
from bridge.parallel.split_layer import SplitLayer, own, shares


class ColumnParallelLinear(SplitLayer):
    """A linear layer split by its outputs: each part has all inputs, and some of the outputs.

    Shapes: ``(*, in_features)`` to ``(*, out_features)``.

    Args:
        layer: the whole layer; it is copied from, and not changed.
        devices: one per part; the outputs are gathered on the first.

    Raises:
        ValueError: no device, or more than there are output features.

    Spec: R24.4, R24.5, R24.6. Source: Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053
    """

    def __init__(self, layer: nn.Linear, devices: Sequence[str | torch.device]) -> None:
        """Split the layer."""
        name = type(self).__name__
        places = as_devices(name, devices)
        sizes = shares(name, layer.out_features, "output features", len(places))
        weights, biases = torch.split(layer.weight, sizes), _biases(layer, sizes)
        parts = zip(weights, biases, places, strict=True)
        super().__init__([_linear(*part) for part in parts], places, dim=0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give every part all inputs, and put their outputs side by side."""
        outputs: torch.Tensor = gather(self._run([x] * len(self.parts)), self.devices[0], -1)
        return outputs


class RowParallelLinear(SplitLayer):
    """A linear layer split by its inputs: each part has some of the inputs, and all outputs.

    The outputs are added in the order of the parts; part 0 has the bias.

    Shapes: ``(*, in_features)`` to ``(*, out_features)``.

    Args:
        layer: the whole layer; it is copied from, and not changed.
        devices: one per part; the outputs are added on the first.

    Raises:
        ValueError: no device, or more than there are input features.

    Spec: R24.4, R24.5, R24.6. Source: Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053
    """

    def __init__(self, layer: nn.Linear, devices: Sequence[str | torch.device]) -> None:
        """Split the layer."""
        name = type(self).__name__
        places = as_devices(name, devices)
        sizes = shares(name, layer.in_features, "input features", len(places))
        biases = [layer.bias, *[None] * (len(sizes) - 1)]
        parts = zip(torch.split(layer.weight, sizes, 1), biases, places, strict=True)
        super().__init__([_linear(*part) for part in parts], places, dim=1)
        self.sizes = sizes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give every part its inputs, and add their outputs.

        Raises:
            ValueError: another number of input features.
        """
        if x.dim() == 0 or x.shape[-1] != sum(self.sizes):
            expected = f"inputs of {sum(self.sizes)} features"
            message = f"RowParallelLinear: expected {expected}, got shape {tuple(x.shape)}"
            raise ValueError(message)
        total, *others = self._run(torch.split(x, self.sizes, -1))
        for output in others:
            total = total + output.to(self.devices[0])
        return total


class ChannelParallelConv2d(SplitLayer):
    """A convolution split by its output channels: each part sees the whole image.

    Shapes: ``(N, in_channels, H, W)`` to ``(N, out_channels, H', W')``, both also without N.

    Args:
        layer: the whole layer, of one group; it is copied from, and not changed.
        devices: one per part; the outputs are gathered on the first.

    Raises:
        ValueError: no device, more than there are output channels, or a layer of several groups.

    Spec: R24.4, R24.5, R24.6. Source: Krizhevsky 2014, https://arxiv.org/abs/1404.5997
    """

    def __init__(self, layer: nn.Conv2d, devices: Sequence[str | torch.device]) -> None:
        """Split the layer."""
        name = type(self).__name__
        places = as_devices(name, devices)
        if layer.groups != 1:
            message = f"{name}: expected a convolution of 1 group, got {layer.groups}"
            raise ValueError(message)
        sizes = shares(name, layer.out_channels, "output channels", len(places))
        parts = zip(torch.split(layer.weight, sizes), _biases(layer, sizes), places, strict=True)
        super().__init__([_convolution(layer, *part) for part in parts], places, dim=0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give every part the image, and stack their channels."""
        outputs: torch.Tensor = gather(self._run([x] * len(self.parts)), self.devices[0], -3)
        return outputs


def _biases(layer: nn.Linear | nn.Conv2d, sizes: list[int]) -> Sequence[torch.Tensor | None]:
    """Split the bias, where there is one."""
    if layer.bias is None:
        return [None] * len(sizes)
    return torch.split(layer.bias, sizes)


def _linear(weight: torch.Tensor, bias: torch.Tensor | None, device: torch.device) -> nn.Linear:
    """Make a part of a linear layer; on ``meta`` nothing is drawn."""
    part = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    part.register_parameter("weight", own(weight, device))
    part.register_parameter("bias", own(bias, device))
    return part


def _convolution(
    layer: nn.Conv2d, weight: torch.Tensor, bias: torch.Tensor | None, device: torch.device
) -> nn.Conv2d:
    """Make a part of a convolution, with its options."""
    part = nn.Conv2d(
        layer.in_channels,
        weight.shape[0],
        layer.kernel_size,  # type: ignore[arg-type] # torch has a tuple of any length
        layer.stride,  # type: ignore[arg-type]
        layer.padding,  # type: ignore[arg-type]
        layer.dilation,  # type: ignore[arg-type]
        bias=False,
        padding_mode=layer.padding_mode,
        device="meta",
    )
    part.register_parameter("weight", own(weight, device))
    part.register_parameter("bias", own(bias, device))
    return part
