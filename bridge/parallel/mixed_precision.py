"""Mixed precision: the products of a model in bfloat16, all else in float32."""

import re
from collections.abc import Iterator
from typing import TypeVar

import torch
from torch import nn

from bridge.parallel.bf16 import Bf16Conv1d, Bf16Conv2d, Bf16Conv3d, Bf16Linear

Model = TypeVar("Model", bound=nn.Module)

BF16: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: Bf16Linear,
    nn.Conv1d: Bf16Conv1d,
    nn.Conv2d: Bf16Conv2d,
    nn.Conv3d: Bf16Conv3d,
}
"""The layers whose product is in bfloat16, and what they become."""

FLOAT32 = frozenset({
    "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Identity",
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "ReLU", "ReLU6", "RReLU", "SELU", "SiLU",
    "Sigmoid", "Softmax", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink",
    "Threshold",
    "AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "FractionalMaxPool", "LPPool", "MaxPool",
    "MaxUnpool",
    "BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "LocalResponseNorm",
    "AlphaDropout", "Dropout", "FeatureAlphaDropout", "Embedding", "EmbeddingBag",
    "ConstantPad", "ReflectionPad", "ReplicationPad", "ZeroPad",
    "ChannelShuffle", "Flatten", "Fold", "PixelShuffle", "PixelUnshuffle", "Unflatten", "Unfold",
    "Upsample",
    "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "HuberLoss", "KLDivLoss", "L1Loss",
    "MSELoss", "NLLLoss", "SmoothL1Loss",
})  # fmt: skip
"""The layers without a product, which stay float32; in any number of dimensions."""

INSIDE = frozenset({
    "GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell", "MultiheadAttention",
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer", "Bilinear", "ConvTranspose",
})  # fmt: skip
"""The layers whose products cannot be in bfloat16 in both languages; in any dimensions."""

_BASES = {"Module", "_BatchNorm"}


def mixed_precision(model: Model) -> Model:
    """Compute the products of a model's layers in bfloat16, and all else in float32.

    ``Linear``, ``Conv1d``, ``Conv2d`` and ``Conv3d`` round their input, weight and bias to
    bfloat16, and their result is float32 again. Parameters, gradients and optimizers stay float32,
    names of parameters stay what they are. Functions that a forward of the user's own calls stay
    float32: ``bf16_matmul`` and ``bf16_linear`` are for those. Again is harmless.

    Args:
        model: float32; it is changed in place, before it is replicated.

    Returns:
        The model itself.

    Raises:
        ValueError: a layer that is on neither list, another dtype, or no product at all.

    Spec: R18.2, R18.3, R18.4
    """
    layers = [layer for name, layer in model.named_modules() if _is_cast(name, layer)]
    if not layers:
        message = (
            "mixed_precision: expected at least 1 layer of "
            f"{', '.join(kind.__name__ for kind in BF16)}, got 0"
        )
        raise ValueError(message)
    for name, tensor in _tensors(model):
        if tensor.is_floating_point() and tensor.dtype != torch.float32:
            kind = str(tensor.dtype).removeprefix("torch.")
            message = f"mixed_precision: expected {name} of float32, got {kind}"
            raise ValueError(message)
    for layer in layers:
        layer.__class__ = BF16.get(type(layer), type(layer))
    return model


def _tensors(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """List parameters and buffers by name."""
    yield from model.named_parameters()
    yield from model.named_buffers()


def _is_cast(name: str, layer: nn.Module) -> bool:
    """Tell whether a layer is of those in bfloat16, and refuse one that is on neither list."""
    kind = type(layer)
    if kind in BF16 or kind in BF16.values():
        return True
    base = next(own for own in kind.__mro__ if own.__module__.startswith("torch."))
    family = re.sub(r"[1-3]d$", "", base.__name__)
    if family in FLOAT32 or family in _BASES:
        return False
    reason = (
        "whose products cannot be in bfloat16 in both languages"
        if family in INSIDE
        else "which is on no list of what is bfloat16 and what float32"
    )
    own = "" if base is kind else f", derived from {base.__name__}"
    message = (
        f"mixed_precision: expected layers of known precision, got {name or 'the model'} "
        f"of type {kind.__name__}{own}, {reason}"
    )
    raise ValueError(message)
