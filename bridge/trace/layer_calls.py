"""Takes down what goes into the layers of a model, and what comes out."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from inspect import signature
from typing import Any

import torch
from torch import nn

from bridge.parallel.leaves import tensors
from bridge.trace.call_site import call_site
from bridge.trace.keeper import Entry, Keeper
from bridge.trace.output_gradients import OutputGradients
from bridge.trace.record import Record


class LayerCalls:
    """Takes down the calls of layers, in the order of execution, for each replica on its own.

    The hooks of the layers call :meth:`enter` and :meth:`leave`; whatever else sees a layer run may
    do so too. It holds no module, so that a copy of a layer keeps calling it, and is not known.

    Args:
        replicas: the modules.
        keeper: takes the tensors down.
        gradients: take down the gradients of what comes out, too.

    Spec: R30.4, R33.4
    """

    def __init__(self, replicas: Sequence[nn.Module], keeper: Keeper, *, gradients: bool) -> None:
        """Know the layers by their names."""
        self._places = {
            id(layer): (index, name)
            for index, replica in enumerate(replicas)
            for name, layer in replica.named_modules()
        }
        self._keeper = keeper
        self._forward: list[list[Entry]] = [[] for _ in replicas]
        self._backward = OutputGradients(len(replicas), keeper) if gradients else None
        self._counts: Counter[int] = Counter()
        self._sites: dict[tuple[int, int], str | None] = {}
        self.step: int | None = None
        """The step whose calls are taken down, or None while none are."""

    def attach(self, replicas: Sequence[nn.Module], stack: ExitStack) -> None:
        """Hook every layer, until the stack is closed."""
        # PyTorch 1.13 shows no keyword arguments to hooks.
        named = "with_kwargs" in signature(nn.Module.register_forward_pre_hook).parameters
        keywords: dict[str, Any] = {"with_kwargs": True} if named else {}
        for layer in [layer for replica in replicas for layer in replica.modules()]:
            stack.callback(layer.register_forward_pre_hook(self._before, **keywords).remove)
            stack.callback(layer.register_forward_hook(self._after).remove)

    def enter(self, layer: nn.Module, inputs: object) -> None:
        """Take down the inputs of a layer that is about to run."""
        if self.step is not None and id(layer) in self._places:
            self._sites[self._call(layer)] = call_site()
            for record, tensor in self._records(layer, "input", inputs):
                self._forward[record.replica].append(self._keeper.entry(record, tensor))

    def leave(self, layer: nn.Module, outputs: object) -> None:
        """Take down the outputs of a layer that has run."""
        if self.step is None or id(layer) not in self._places:
            return
        for record, tensor in self._records(layer, "activation", outputs):
            self._forward[record.replica].append(self._keeper.entry(record, tensor))
            if self._backward is not None:
                self._backward.watch(record, tensor)
        self._counts[id(layer)] += 1

    def take(self) -> list[Entry]:
        """Return and forget the calls so far: those of replica 0, then of 1 and so on."""
        taken = [entry for entries in self._forward for entry in entries]
        for entries in self._forward:
            entries.clear()
        if self._backward is not None:
            self._backward.next_forward()
        return taken

    def take_gradients(self) -> list[Entry]:
        """Return and forget the gradients of outputs so far, in the same order."""
        return [] if self._backward is None else self._backward.take()

    def unseen(self, replica: int) -> Iterator[str]:
        """List the layers of a replica that were not called in this step."""
        for layer, (index, name) in self._places.items():
            if index == replica and not self._counts[layer]:
                yield name

    def reset(self) -> None:
        """Forget the step."""
        self.take()
        self.take_gradients()
        self._counts.clear()
        self._sites.clear()

    def _before(self, layer: nn.Module, args: object, kwargs: object = None) -> None:
        self.enter(layer, (args, kwargs))

    def _after(self, layer: nn.Module, _: object, outputs: object) -> None:
        self.leave(layer, outputs)

    def _call(self, layer: nn.Module) -> tuple[int, int]:
        return id(layer), self._counts[id(layer)]

    def _records(
        self, layer: nn.Module, kind: str, values: object
    ) -> Iterator[tuple[Record, torch.Tensor]]:
        """Pair the tensors of a tree with records of a call."""
        replica, name = self._places[id(layer)]
        step = self.step or 0
        for part, tensor in enumerate(tensors(values)):
            yield (
                Record(
                    step, "forward", replica, kind, name, self._counts[id(layer)], str(part),
                    at=self._sites.get(self._call(layer)),
                ),
                tensor,
            )  # fmt: skip
