"""What layers that are split inside have in common."""

from collections.abc import Sequence

import torch
from torch import nn

from bridge.parallel.gather import gather


class SplitLayer(nn.Module):
    """A layer in parts, each a layer on a device of its own.

    Args:
        parts: the parts, on their devices.
        devices: one per part; the outputs are on the first.
        dim: along which the parts' weights make the whole.
    """

    def __init__(
        self, parts: Sequence[nn.Module], devices: Sequence[torch.device], dim: int
    ) -> None:
        """Keep the parts."""
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.devices = list(devices)
        self.dim = dim

    def _run(self, shards: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Run each part on its shard, started in order: GPUs run at once."""
        calls = zip(self.parts, shards, self.devices, strict=True)
        return [part(shard.to(device)) for part, shard, device in calls]


def whole_state(module: nn.Module, *, gradients: bool = False) -> dict[str, torch.Tensor]:
    """Return the state of a module with split layers, under the names of the undivided module.

    Args:
        module: the module, or a split layer itself.
        gradients: take the gradients of its parameters instead, those that are there.

    Returns:
        Names and tensors, in the order of the undivided module: what was joined is fresh, on the
        device of part 0; other tensors are the module's own.

    Spec: R24.6
    """
    splits = {
        f"{name}.parts.".removeprefix("."): layer.dim
        for name, layer in module.named_modules(remove_duplicate=False)
        if isinstance(layer, SplitLayer)
    }
    named = module.state_dict()
    if gradients:
        named = {n: p.grad for n, p in module.named_parameters() if p.grad is not None}
    parts: dict[tuple[str, int], list[torch.Tensor]] = {}
    for name, tensor in named.items():
        prefix = next((known for known in splits if name.startswith(known)), None)
        last = name.rpartition(".")[2]
        whole = name if prefix is None else prefix.removesuffix("parts.") + last
        dim = splits[prefix] if prefix is not None and last == "weight" else 0
        parts.setdefault((whole, dim), []).append(tensor)
    return {
        name: tensors[0] if len(tensors) == 1 else gather(tensors, tensors[0].device, dim)
        for (name, dim), tensors in parts.items()
    }


def shares(name: str, count: int, what: str, parts: int) -> list[int]:
    """Share out features or channels: the sizes differ by at most one, the larger ones first.

    Raises:
        ValueError: more parts than there are features or channels.

    Spec: R24.5
    """
    if parts > count:
        message = f"{name}: expected at least {parts} {what} for {parts} devices, got {count}"
        raise ValueError(message)
    return [(count + parts - 1 - index) // parts for index in range(parts)]


def own(slice_: torch.Tensor | None, device: torch.device) -> nn.Parameter | None:
    """Copy a slice of a parameter to a device; a frozen one stays frozen."""
    if slice_ is None:
        return None
    return nn.Parameter(slice_.detach().to(device, copy=True), slice_.requires_grad)
