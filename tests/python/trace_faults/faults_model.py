"""Faults of models: layers, weights, dtypes, buffers."""

# mypy: disable-error-code="operator,union-attr,assignment,arg-type,no-any-return"
# ruff: noqa: D102 - a fault is told by its name, and its methods are those of the model

import math
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional

from tests.python.trace_faults.bed import Loop
from tests.python.trace_faults.models import Attention, ConvNet, Lstm, Mlp


class Conv(Loop):
    """A healthy loop with a convolutional net, whose tensors are kept."""

    net, full = ConvNet, "*"


class Attend(Loop):
    """A healthy loop with attention, whose tensors are kept."""

    net, full = Attention, "*"


class Kept(Loop):
    """A healthy loop whose tensors are kept."""

    full = "*"


class Changed(Loop):
    """A healthy loop whose model may be changed once it is made."""


class Transposed(Loop):
    """A weight is read by columns."""

    says, at = "transposed weight", (0, "init", "fc1.weight")

    def model(self) -> nn.Module:
        model = super().model()
        model.fc1.weight.data = model.fc1.weight.data.t().contiguous()
        return model


class TransposedUse(Kept):
    """A layer multiplies by its weight, not by its transpose."""

    says, at = "transposed weight", (0, "forward", "fc2")

    def model(self) -> nn.Module:
        model = super().model()
        layer = model.fc2
        layer.forward = lambda x: functional.linear(x, layer.weight.t(), layer.bias)
        return model


class NoBias(Loop):
    """A layer has no bias."""

    says, at = "missing bias", (0, "init", "fc2.bias")

    def model(self) -> nn.Module:
        model = super().model()
        model.fc2.bias = None
        return model


class IgnoredBias(Loop):
    """A layer does not add its bias."""

    says, at = "missing bias", (0, "forward", "fc2")

    def model(self) -> nn.Module:
        model = super().model()
        layer = model.fc2
        layer.forward = lambda x: functional.linear(x, layer.weight)
        return model


class OtherSeed(Loop):
    """The weights come from another seed."""

    says, at = "different seed", (0, "init", "fc1.weight")
    seed = 6


class OtherInit(Loop):
    """A weight is initialized otherwise."""

    says, at = "different initialization", (0, "init", "fc1.weight")

    def model(self) -> nn.Module:
        model = super().model()
        nn.init.normal_(model.fc1.weight, std=1.0)
        return model


class Single(Loop):
    """The model is float32."""

    says, at = "other dtype", (0, "init", "fc1.weight")

    def model(self) -> nn.Module:
        return super().model().float()

    def batches(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [(x.float(), y) for x, y in super().batches()]


class Gelu(Kept):
    """An activation is another one."""

    says, at = "wrong activation", (0, "forward", "act")

    def model(self) -> nn.Module:
        model = super().model()
        model.act.forward = functional.gelu
        return model


class NoActivation(Loop):
    """An activation is left out between two layers."""

    says, at = "missing layer", (0, "forward", "fc2")

    class Net(Mlp):
        """The model with the fault."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden = self.fc1(x)
            result: torch.Tensor = self.head(self.join(hidden, torch.relu(self.fc2(hidden))))
            return result

    net = Net


class NoResidual(Loop):
    """The residual is left out."""

    says, at = "missing residual", (0, "forward", "head")

    class Net(Mlp):
        """The model with the fault."""

        def join(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
            return after

    net = Net


class NoScale(Attend):
    """Scores are not divided by the root of the width."""

    says, at = "missing scale", (0, "forward", "soft")

    class Net(Attention):
        """The model with the fault."""

        def scores(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
            return super().scores(query, key) * math.sqrt(query.shape[-1])

    net = Net


class OtherSoftmax(Attend):
    """The softmax is over queries."""

    says, at = "softmax over another dimension", (0, "forward", "soft")

    def model(self) -> nn.Module:
        model = super().model()
        model.soft.dim = -2
        return model


class OtherEpsilon(Attend):
    """Layer normalization adds another constant."""

    says, at = "eps of the normalization", (0, "forward", "norm")

    def model(self) -> nn.Module:
        model = super().model()
        model.norm.eps = 1e-3
        return model


class OtherPadding(Conv):
    """The border is padded by copies."""

    says, at = "wrong padding", (0, "forward", "conv")

    def model(self) -> nn.Module:
        model = super().model()
        layer = model.conv
        layer.forward = lambda x: functional.conv2d(
            functional.pad(x, (1, 1, 1, 1), mode="replicate"), layer.weight, layer.bias
        )  # fmt: skip
        return model


class Momentum(Conv):
    """Batch normalization takes its momentum for the share of the old value."""

    says, at, full = "batch-norm momentum convention", (0, "step", "norm.running_mean"), None

    def model(self) -> nn.Module:
        model = super().model()
        model.norm.momentum = 0.9
        return model


class Biased(Conv):
    """Batch normalization keeps the biased variance."""

    says, at, full = "biased variance in batch norm", (0, "step", "norm.running_var"), None

    def model(self) -> nn.Module:
        model = super().model()
        norm = model.norm

        def forward(x: torch.Tensor) -> torch.Tensor:
            old = norm.running_var.clone()
            result = nn.BatchNorm2d.forward(norm, x)
            count = x.numel() / x.shape[1]
            norm.running_var = 0.9 * old + (norm.running_var - 0.9 * old) * (count - 1) / count
            return result

        norm.forward = forward
        return model


class NormEvaluates(Conv):
    """Batch normalization is in evaluation mode."""

    says, at, full = "layer in another mode", (0, "forward", "norm"), None

    def model(self) -> nn.Module:
        model = super().model()
        model.norm.eval()
        return model


class Drops(Conv):
    """A dropout that should do nothing drops."""

    says, at, full = "dropout active", (0, "forward", "drop"), None

    def model(self) -> nn.Module:
        model = super().model()
        model.drop.p = 0.5
        return model


class Float32Constant(Loop):
    """A tensor passes float32 in a float64 model."""

    says, at = "float32 in a float64 model", (0, "forward", "fc1")

    def model(self) -> nn.Module:
        model = super().model()
        layer = model.fc1
        layer.forward = lambda x: functional.linear(x, layer.weight, layer.bias).float().double()
        return model


class Frozen(Loop):
    """A parameter is not trained."""

    says, at = "frozen parameter", (0, "step", "fc1.weight")

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        some = [p for name, p in model.named_parameters() if name != "fc1.weight"]
        return torch.optim.SGD(some, lr=0.05)


class ExtraLayer(Loop):
    """A layer runs twice."""

    says, at = "extra layer", (0, "forward", "fc1")

    class Net(Mlp):
        """The model with the fault."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(self.act(x))

    net = Net


class Recurrent(Loop):
    """A healthy loop with a recurrent layer."""

    net = Lstm


class Reset(Recurrent):
    """The head takes the first output, not the last."""

    says, at = "no signature", (0, "forward", "head")

    class Net(Lstm):
        """The model with the fault."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.head(self.rnn(x)[0][:, 0])
            return result

    net: ClassVar[type[nn.Module]] = Net
