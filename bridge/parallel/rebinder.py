"""Lets the functions of a copied model lead to the copy."""

import copy
from collections import deque
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, MethodType
from typing import Any
from weakref import ref

import torch

from bridge.parallel.object_graph import ObjectGraph
from bridge.parallel.object_links import CONSTANTS, contents, hooks, links

POINTERS = (FunctionType, BuiltinFunctionType, ref)
"""What ``copy.deepcopy`` takes for a constant, though it may lead to the model."""


class Rebinder:
    """Lets the functions and weak references of a copied model lead to the copy.

    Args:
        graph: what the model leads to.
        memo: that of ``copy.deepcopy``: the copies by the ids of the originals.

    Spec: R4.5
    """

    def __init__(self, graph: ObjectGraph, memo: dict[int, Any]) -> None:
        """Start with nothing mended."""
        self._copied = {id(node.value) for node in graph.copied}
        self._memo = memo
        self._mended: dict[int, tuple[object, Any]] = {}
        for node in graph.shared:
            self._keep(node.value, node.value)
        self._pointers: dict[int, Any] = {}
        self._cells: dict[int, CellType] = {}

    def mend(self, value: Any) -> Any:  # noqa: ANN401 - any attribute
        """Put functions that lead to the copy in the place of those that lead to the model.

        Args:
            value: what the copy holds; containers and attributes are changed in place.

        Returns:
            The value, or what stands for it.
        """
        if type(value) in POINTERS:
            return self._pointer(value) if self._leads(value) else value
        if isinstance(value, CONSTANTS):
            return value
        if id(value) not in self._mended:
            self._keep(value, value)
            self._keep(value, self._rebuilt(value))
        return self._mended[id(value)][1]

    def dress(self, tensor: torch.Tensor) -> None:
        """Give the copy of a tensor the attributes and the hooks of the original."""
        own = self._memo[id(tensor)]
        vars(own).update({name: self._renewed(item) for name, item in vars(tensor).items()})
        for register, hook in hooks(tensor):
            own.requires_grad = True  # as it was when the hook was registered
            getattr(own, register)(self._renewed(hook))
            own.requires_grad = tensor.requires_grad

    def _keep(self, value: object, result: object) -> None:
        """Note what stands for an object; that it lives keeps its id its own."""
        self._mended[id(value)] = (value, result)

    def _rebuilt(self, value: Any) -> Any:  # noqa: ANN401 - anything but a function
        """Mend what an object holds; one that cannot change is made anew."""
        if isinstance(value, dict):
            self._mend_dict(value)
        elif isinstance(value, list | set | deque):
            self._mend_items(value)
        elif isinstance(value, tuple):
            parts = [self.mend(part) for part in value]
            make = getattr(value, "_make", type(value))
            return value if _same(parts, value) else make(parts)
        elif type(value) is partial:
            function, arguments, keywords = map(self.mend, (value.func, value.args, value.keywords))
            return partial(function, *arguments, **keywords)
        elif type(value) is MethodType:
            return MethodType(self.mend(value.__func__), self.mend(value.__self__))
        self.mend(getattr(value, "__dict__", None))
        return value

    def _mend_dict(self, value: dict[Any, Any]) -> None:
        """Mend the values of a dict."""
        for key, item in list(value.items()):
            renewed = self.mend(item)
            if renewed is not item:
                value[key] = renewed

    def _mend_items(self, value: list[Any] | set[Any] | deque[Any]) -> None:
        """Mend the items of a list, a set or a deque."""
        items = list(value)
        renewed = [self.mend(item) for item in items]
        if not _same(renewed, items):
            value.clear()
            for item in renewed:
                value.add(item) if isinstance(value, set) else value.append(item)

    def _renewed(self, value: Any) -> Any:  # noqa: ANN401 - anything captured
        """Find what stands in the copy for an object of the original, or the shared object."""
        if id(value) not in self._copied or type(value) in POINTERS:
            return self.mend(value)
        return self.mend(copy.deepcopy(value, self._memo))

    def _leads(self, value: object) -> bool:
        """Tell whether a function or a weak reference leads to something that is copied."""
        return any(id(link.target) in self._copied for link in links(value))

    def _pointer(self, value: Any) -> Any:  # noqa: ANN401 - a function or a weak reference
        """Return the function or weak reference that leads to the copy."""
        if id(value) in self._pointers:
            return self._pointers[id(value)]
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, ref):
            pointer: Any = ref(self._renewed(value()), value.__callback__)
        else:
            pointer = getattr(self._renewed(value.__self__), value.__name__)
        self._pointers[id(value)] = pointer
        return pointer

    def _function(self, value: FunctionType) -> FunctionType:
        """Make a function of the same code that captures what stands in the copy."""
        cells = tuple(self._cell(cell) for cell in value.__closure__ or ())
        made = FunctionType(value.__code__, value.__globals__, value.__name__, None, cells)
        self._pointers[id(value)] = made
        for name in ("__doc__", "__module__", "__qualname__", "__annotations__"):
            setattr(made, name, getattr(value, name))
        vars(made).update(vars(value))
        made.__defaults__ = self._renewed(value.__defaults__)
        made.__kwdefaults__ = self._renewed(value.__kwdefaults__)
        for cell, own in zip(value.__closure__ or (), cells, strict=True):
            if own is not cell:
                own.cell_contents = self._renewed(cell.cell_contents)
        return made

    def _cell(self, cell: CellType) -> CellType:
        """Return the cell of a closure itself where it leads elsewhere, else a new one."""
        if id(contents(cell)) not in self._copied:
            return cell
        return self._cells.setdefault(id(cell), CellType())


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401 - sequences of anything
    """Tell whether two sequences hold the same objects."""
    return all(a is b for a, b in zip(one, other, strict=True))
