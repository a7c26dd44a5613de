"""What a case gave: tensors and texts, by the names of what they are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from bridge.parity.digest import dtype_name


@dataclass
class Outcome:
    """Tensors and texts, by the names of what they are, in order."""

    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: object) -> list[torch.Tensor]:
        """Add a tensor, a number, or each part of a tuple or a list.

        Returns:
            The tensors that were added, as they came.
        """
        flat = list(_flatten(value))
        for place, tensor in enumerate(flat):
            self.tensors[f"{name}.{place}"] = keep(tensor)
        return flat

    def differentiate(
        self, outputs: Iterable[torch.Tensor], leaves: Mapping[str, torch.Tensor]
    ) -> None:
        """Add the gradients of a weighted sum of the outputs that have one."""
        losses = [_weighted(output) for output in outputs if output.requires_grad]
        if not losses:
            return
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        total.backward()  # type: ignore[no-untyped-call]
        for name, leaf in leaves.items():
            if leaf.grad is not None:
                self.tensors[f"gradient.{name}"] = keep(leaf.grad)


def keep(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor; a complex one as pairs of real numbers."""
    dense = tensor.to_dense() if tensor.is_sparse else tensor
    real = torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense
    return real.detach().clone().contiguous()


def _weighted(output: torch.Tensor) -> torch.Tensor:
    """Weigh an output by fixed eighths and sum it; the gradient at the output is the weights."""
    real = torch.view_as_real(output) if output.is_complex() else output
    places = torch.arange(real.numel(), dtype=real.dtype).mul(5).remainder(11)
    return real.mul(places.sub(4).div(8).reshape(real.shape)).sum()


def describe(state: Mapping[str, torch.Tensor]) -> str:
    """Describe the tensors of a state: names, dtypes and shapes, in order."""
    return ", ".join(
        f"{name} {dtype_name(tensor.dtype)}[{', '.join(map(str, tensor.shape))}]"
        for name, tensor in state.items()
    )


def _flatten(value: Any) -> Iterable[torch.Tensor]:  # noqa: ANN401 - whatever PyTorch returns
    """List the tensors of a result; numbers become tensors."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, bool):
        yield torch.tensor(value)
    elif isinstance(value, int | float):
        yield torch.tensor(value, dtype=torch.int64 if isinstance(value, int) else torch.float64)
    elif value is not None:
        for part in value:
            yield from _flatten(part)
