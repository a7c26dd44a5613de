"""The modules and the states that the rules of state dicts are tried on."""

import torch
from torch import nn

State = dict[str, torch.Tensor]


def net() -> nn.Sequential:
    """Make the module that most rules are tried on."""
    module = nn.Sequential()
    module.add_module("first", nn.Linear(3, 2))
    module.add_module("norm", nn.BatchNorm1d(2))
    return module


class Holder(nn.Module):
    """Holds a list of layers."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 2), nn.Linear(2, 1)])


def tied() -> nn.Sequential:
    """Hold one layer under two names."""
    layer, module = nn.Linear(2, 2), nn.Sequential()
    module.add_module("one", layer)
    module.add_module("two", layer)
    return module


def with_buffer(*, persistent: bool) -> nn.Sequential:
    """Add a buffer to the module."""
    module = net()
    module.register_buffer("extra", torch.ones(2), persistent=persistent)
    return module


def given() -> State:
    """Make a state of the net's own form, of other values."""
    return {name: torch.full_like(value, 2) for name, value in net().state_dict().items()}


def replaced(name: str, value: torch.Tensor) -> State:
    """Replace or add one tensor."""
    return {**given(), name: value}


def without(name: str) -> State:
    """Leave one tensor out."""
    return {key: value for key, value in given().items() if key != name}


def renamed() -> State:
    """Give the first layer another name."""
    return {name.replace("first", "head"): value for name, value in given().items()}
