"""Copies a model deeply."""

import copy
from traceback import walk_tb
from typing import Any, NoReturn, TypeVar
from weakref import ProxyTypes

import torch
from torch import nn

from bridge.parallel.object_graph import ObjectGraph
from bridge.parallel.rebinder import Rebinder
from bridge.parallel.tensor_copier import TensorCopier, is_plain

Model = TypeVar("Model", bound=nn.Module)


def copy_module(model: Model, source: torch.device, target: torch.device) -> Model:
    """Copy a module deeply from one device to another: attributes, containers, closures, ties.

    ``copy.deepcopy`` does most. Alone it shares functions, whose closures then lead to the
    original; it copies what a bound method belongs to, even where that is the caller's; it refuses
    tensors that a forward left behind, drops the hooks and attributes of parameters, and lets
    gradients of TorchScript flow into the original.

    Args:
        model: the module.
        source: its device.
        target: the device of the copy.

    Returns:
        The copy, without gradients.

    Raises:
        TypeError: something that cannot be copied; the message names it.
    """
    graph = ObjectGraph(model)
    for node in graph.copied:
        if type(node.value) in ProxyTypes:
            _refuse(node.path, node.value, "which is a weak proxy")
    own = [node.value for node in graph.copied]
    plain = [value for value in own if is_plain(value)]
    copier = TensorCopier(plain, source, target)
    memo: dict[int, Any] = {id(node.value): node.value for node in graph.shared}
    memo |= {id(tensor): copier.copy(tensor) for tensor in plain}
    memo |= {id(item): copier.generator(item) for item in own if isinstance(item, torch.Generator)}
    rebinder = Rebinder(graph, memo)
    try:
        with torch.no_grad():
            replica = copy.deepcopy(model, memo)
            rebinder.mend(replica)
            for value in own:
                if isinstance(value, torch.Tensor) and id(value) in memo:
                    rebinder.dress(value)
    except Exception as error:
        _name(graph, error)
        raise
    _check(graph, replica)
    # TorchScript copies its own tensors, and forgets which of them are trained.
    parameters = dict(replica.named_parameters())
    for name, parameter in model.named_parameters():
        parameters[name].requires_grad = parameter.requires_grad
    return replica.to(target)


def _check(graph: ObjectGraph, replica: nn.Module) -> None:
    """Refuse a copy that still leads to a module or a parameter of the original."""
    reached = ObjectGraph(replica, without={id(node.value) for node in graph.shared})
    for node in graph.copied:
        path = reached.path(node.value)
        if isinstance(node.value, nn.Module | nn.Parameter) and path is not None:
            _refuse(path, node.value, "which is still the model's own")


def _name(graph: ObjectGraph, error: Exception) -> None:
    """Name the innermost object of the model that ``copy.deepcopy`` failed at."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    tried = [frame.f_locals["x"] for frame in frames if frame.f_code is copy.deepcopy.__code__]
    for value in reversed(tried):
        path = graph.path(value)
        if path is not None:
            _refuse(path, value, f"which cannot be copied ({error})", error)


def _refuse(path: str, value: object, reason: str, cause: Exception | None = None) -> NoReturn:
    """Say what cannot be copied, and what to do."""
    message = (
        f"replicate: expected a model that can be copied, got {path} of type "
        f"{type(value).__name__}, {reason}: give a factory"
    )
    raise TypeError(message) from cause
