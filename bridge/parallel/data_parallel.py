"""The drop-in module: forward over several replicas, loss outside, backward through gather."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from bridge.parallel.average import average
from bridge.parallel.buffer_snapshot import BufferSnapshot
from bridge.parallel.devices import as_devices
from bridge.parallel.follow import follow
from bridge.parallel.gather import gather
from bridge.parallel.leaves import tensors, with_tensors
from bridge.parallel.parallel_apply import parallel_apply
from bridge.parallel.random_states import RandomStates, draws
from bridge.parallel.replicate import replicate
from bridge.parallel.scatter import scatter_kwargs


class DataParallel(nn.Module):
    """Runs a module on several replicas as if it were one, on CPU devices too.

    The forward scatters the batch, runs the replicas and gathers the outputs on one device; the
    backward of a loss of these outputs adds the gradients of all replicas, in replica order, to
    those of the module. So a training loop stays as it is. Batch normalization sees its shard, and
    the module keeps the statistics of replica 0.

    Args:
        module: the model, on ``devices[0]``; its parameters are those to optimize.
        devices: one per replica.
        output_device: where the outputs are gathered; ``devices[0]`` by default.
        dim: the dimension that counts samples.
        factory: makes a fresh module, for one that cannot be copied, as in :func:`replicate`.

    Spec: R25.1, R25.2, R25.3. Source: torch/nn/parallel/data_parallel.py
    """

    def __init__(
        self,
        module: nn.Module,
        devices: Sequence[str | torch.device],
        output_device: str | torch.device | None = None,
        dim: int = 0,
        factory: Callable[[], nn.Module] | None = None,
    ) -> None:
        """Replicate the module."""
        super().__init__()
        self.module = module
        self.devices = as_devices("DataParallel", devices)
        self.output_device = torch.device(output_device or self.devices[0])
        self.dim = dim
        # A list in a tuple hides the replicas from PyTorch: they are no part of this module.
        self._replicas = (replicate(module, self.devices, factory),)
        self._states = RandomStates(self.devices)
        self._anchor = torch.empty(0, requires_grad=True)
        self._drew: bool | None = None

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any tree
        """Run the replicas on their shards and gather their outputs.

        Args:
            inputs: positional arguments of the module, trees of tensors ``(N, *)``.
            kwargs: its keyword arguments.

        Returns:
            The outputs ``(N, *)`` on ``output_device``.

        Raises:
            ValueError: a batch that cannot be split.
            ReplicaError: at least one replica failed.
        """
        replicas = self._replicas[0]
        if not torch.is_grad_enabled():
            return self._join(self._run(inputs, kwargs))
        given = tensors((inputs, kwargs))
        leaves = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in given]
        joined = self._join(self._run(*with_tensors((inputs, kwargs), leaves)))
        tied: tuple[torch.Tensor, ...] = _Backward.apply(
            (replicas, leaves, tensors(joined)), self._anchor, *given
        )
        return with_tensors(joined, tied)

    def _run(self, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Bring the replicas up to date and run them: in turn where the module draws, or may."""
        replicas = self._replicas[0]
        follow(replicas)
        shards, named = scatter_kwargs(inputs, kwargs, self.devices, self.dim)
        known = draws(self.module)
        in_turn = known or self._drew is not False
        random, buffers = self._states.snapshot(), BufferSnapshot(replicas)
        states = self._states if in_turn else None
        outputs = parallel_apply(replicas, shards, named, self.devices, states=states)
        drew = self._states.moved(random)
        self._drew = (drew and not known) or bool(self._drew)
        if drew and not in_turn and len(shards) > 1:
            # It drew for the first time while its replicas ran at once: undone; now in turn.
            self._states.restore(random)
            buffers.restore()
            outputs = self._run(inputs, kwargs)
        return outputs

    def _join(self, outputs: list[Any]) -> Any:  # noqa: ANN401 - any tree
        """Gather the outputs."""
        return gather(outputs, self.output_device, self.dim)


class _Backward(torch.autograd.Function):
    """Ties the gathered outputs to the replicas, and reduces their gradients in replica order."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,  # noqa: ANN401 - torch has no type for it
        held: tuple[list[nn.Module], list[torch.Tensor], list[torch.Tensor]],
        anchor: torch.Tensor,  # noqa: ARG004 - it makes the outputs require gradients
        *inputs: torch.Tensor,  # noqa: ARG004 - their gradients are those of the leaves
    ) -> tuple[torch.Tensor, ...]:
        """Return the outputs, cut off from the graphs of the replicas."""
        ctx.held = held
        outputs = tuple(output.detach() for output in held[2])
        ctx.mark_non_differentiable(*(o for o in outputs if not o.is_floating_point()))
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:  # noqa: ANN401
        """Differentiate the replicas' graphs, and add their gradients to the module's.

        Raises:
            RuntimeError: a backward whose gradients are to be differentiated again.
        """
        if torch.is_grad_enabled():
            message = "DataParallel: expected a backward without create_graph, got it on"
            raise RuntimeError(message)
        replicas, leaves, outputs = ctx.held
        for replica in replicas[1:]:
            replica.zero_grad(set_to_none=True)
        pairs = [(o, g) for o, g in zip(outputs, gradients, strict=True) if o.requires_grad]
        with torch.enable_grad():
            torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        average(replicas, reduction="sum", broadcast=False)
        return (None, None, *(leaf.grad for leaf in leaves))
