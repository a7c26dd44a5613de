"""Runs a port that is written in Python, for a replay."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from bridge.parallel.leaves import tensors
from bridge.trace.nudge import twin
from bridge.trace.replay import Answer, Array
from bridge.trace.teacher import LayerCall, UpdateCall
from bridge.trace.training_state import optimizer_state


class PythonRunner:
    """Runs the layers and the optimizer of a Python port, on a copy.

    Args:
        model: of the port; it is left as it is.
        optimizer: makes the optimizer for parameters; without, updates are not replayed.

    Spec: R35.7
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] | None = None,
    ) -> None:
        """Copy the model."""
        self._model = twin(model)
        self._optimizer = optimizer

    def layer(self, call: LayerCall) -> Answer:
        """Run a layer on tensors as positional arguments.

        Spec: R35.7
        """
        model = self._with(call.state)
        layer = model.get_submodule(call.name)
        inputs = [torch.from_numpy(np.array(value)) for value in call.inputs]
        with torch.random.fork_rng(devices=[]):
            outputs = list(tensors(layer(*inputs)))
        found = {("activation", call.name, str(i)): _array(t) for i, t in enumerate(outputs)}
        return found | self._gradients(call, layer, outputs)

    def update(self, call: UpdateCall) -> Answer:
        """Step a new optimizer that has the state of the reference's.

        Spec: R35.7
        """
        if self._optimizer is None:
            return {}
        model = self._with(call.parameters)
        named = dict(model.named_parameters())
        optimizer = self._optimizer(model.parameters())
        for number, group in enumerate(optimizer.param_groups):
            group["lr"] = call.rates.get(f"group{number}", group["lr"])
        for name, parameter in named.items():
            gradient = call.gradients.get(name)
            parameter.grad = None if gradient is None else torch.from_numpy(np.array(gradient))
        for (name, key), value in call.state.items():
            own = (
                torch.tensor(float(value))
                if isinstance(value, int)
                else torch.from_numpy(np.array(value))
            )
            optimizer.state[named[name]][key] = own
        optimizer.step()
        found = {("parameter", name, ""): _array(p) for name, p in named.items()}
        for name, key, value in optimizer_state(optimizer, model):
            if isinstance(value, torch.Tensor):
                found["optimizer state", name, key] = _array(value)
        return found

    def _with(self, state: Mapping[str, Array]) -> nn.Module:
        """Give the copy a state."""
        own = dict(self._model.named_parameters()) | dict(self._model.named_buffers())
        with torch.no_grad():
            for name, value in state.items():
                if name in own:
                    own[name].copy_(torch.from_numpy(np.array(value)))
        return self._model

    @staticmethod
    def _gradients(call: LayerCall, layer: nn.Module, outputs: list[torch.Tensor]) -> Answer:
        """Differentiate, where the gradients of what comes out are known."""
        known = [(t, call.gradients.get(str(i))) for i, t in enumerate(outputs)]
        pairs = [(t, g) for t, g in known if g is not None and t.requires_grad]
        named = [(n, p) for n, p in layer.named_parameters(recurse=False) if p.requires_grad]
        if not pairs or not named:
            return {}
        found = torch.autograd.grad(
            [t for t, _ in pairs], [p for _, p in named],
            [torch.from_numpy(np.array(g)) for _, g in pairs], allow_unused=True,
        )  # fmt: skip
        prefix = f"{call.name}." if call.name else ""
        return {
            ("gradient", f"{prefix}{name}", ""): _array(gradient)
            for (name, _), gradient in zip(named, found, strict=True)
            if gradient is not None
        }


def _array(tensor: torch.Tensor) -> Array:
    """Copy a tensor for numpy."""
    array: Array = tensor.detach().cpu().numpy().copy()
    return array
