"""Takes down the gradients of what comes out of layers."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from bridge.trace.keeper import Entry, Keeper
from bridge.trace.record import Record


class OutputGradients:
    """Takes down the gradients of what comes out of layers, for each replica on its own.

    They are put in one order in both languages, of the last output first: a gradient comes after
    all that it depends on. A forward that came before another, with a loss of its own, comes before
    it.

    Args:
        replicas: how many replicas there are.
        keeper: takes the tensors down.

    Spec: R33.4
    """

    def __init__(self, replicas: int, keeper: Keeper) -> None:
        """Begin with none."""
        self._keeper = keeper
        self._taken: list[list[tuple[int, int, Entry]]] = [[] for _ in range(replicas)]
        self._outputs = [0] * replicas
        self._forward = 0

    def watch(self, output: Record, tensor: torch.Tensor) -> None:
        """Take down the gradient of an output when the backward comes there.

        Args:
            output: the record of the output.
            tensor: the output.
        """
        if tensor.requires_grad:
            seen = self._seen(output, self._outputs[output.replica])
            self._outputs[output.replica] += 1
            register(tensor, seen)

    def next_forward(self) -> None:
        """Say that what is observed from here on belongs to another forward."""
        self._forward += 1

    def take(self) -> list[Entry]:
        """Return and forget the gradients so far."""
        taken = [
            entry
            for own in self._taken
            for _, _, entry in sorted(own, key=lambda item: (item[0], -item[1]))
        ]
        for own in self._taken:
            own.clear()
        return taken

    def _seen(self, output: Record, number: int) -> Callable[[torch.Tensor], None]:
        """Make what is shown the gradient of an output."""
        forward = self._forward
        record = replace(output, phase="backward", kind="gradient")

        def seen(gradient: torch.Tensor) -> None:
            entry = self._keeper.entry(record, gradient)
            self._taken[output.replica].append((forward, number, entry))

        return seen


def register(tensor: torch.Tensor, seen: Callable[[torch.Tensor], None]) -> None:
    """Show the gradient of a tensor as it is now, also where it is changed in place afterwards.

    Before PyTorch 2.0 a hook of a tensor that was changed in place stays with what it was before:
    the function that made it has the hook.
    """
    if tensor.grad_fn is None:
        tensor.register_hook(seen)  # type: ignore[no-untyped-call]
        return
    number = tensor.output_nr

    def hook(_: object, gradients: Sequence[torch.Tensor | None]) -> None:
        gradient = gradients[number]
        if gradient is not None:
            seen(gradient)

    tensor.grad_fn.register_hook(hook)
