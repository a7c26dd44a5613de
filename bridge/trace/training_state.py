"""What a trace says of models and optimizers: configuration, state, learning rates."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from bridge.parallel.registered import registered

OPTIONS = (
    "lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize", "betas", "eps",
    "amsgrad", "alpha", "centered", "lr_decay", "rho", "initial_accumulator_value",
)  # fmt: skip
"""The options of optimizers that change what they compute."""

Named = tuple[str, str, Any]
"""A name, a part and a value."""


def configuration(model: nn.Module, optimizers: Sequence[Optimizer]) -> Iterator[Named]:
    """List the types and modes of layers, the flags of parameters, and the options of optimizers.

    Spec: R30.1
    """
    for name, layer in model.named_modules():
        yield name, "type", type(layer).__name__
        yield name, "training", layer.training
    for name, parameter in model.named_parameters():
        yield name, "requires_grad", parameter.requires_grad
    for index, optimizer in enumerate(optimizers):
        name = f"optimizer{index}"
        yield name, "type", type(optimizer).__name__
        for number, group in enumerate(optimizer.param_groups):
            for option in OPTIONS:
                if option in group:
                    yield name, f"group{number}.{option}", _plain(group[option])


def tensors(model: nn.Module) -> Iterator[tuple[str, str, torch.Tensor]]:
    """List the parameters and the buffers of a model, with their kinds."""
    known = {name for name, _ in model.named_parameters()}
    for name, tensor in registered(model):
        yield ("parameter" if name in known else "buffer"), name, tensor


def learning_rates(optimizers: Sequence[Optimizer]) -> Iterator[Named]:
    """List the learning rates of all groups of all optimizers."""
    for index, optimizer in enumerate(optimizers):
        for number, group in enumerate(optimizer.param_groups):
            yield f"optimizer{index}", f"group{number}", _plain(group["lr"])


def optimizer_state(optimizer: Optimizer, model: nn.Module) -> Iterator[Named]:
    """List the state of an optimizer under the names of the model's parameters."""
    for name, parameter in model.named_parameters():
        for key, value in sorted(optimizer.state.get(parameter, {}).items()):
            if key == "step":
                yield name, key, int(value)
            elif value is not None:
                yield name, key, value


def _plain(value: Any) -> Any:  # noqa: ANN401 - an option can be anything
    """Write an option as JSON does: tensors and numbers as floats, pairs as lists."""
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return float(value)
