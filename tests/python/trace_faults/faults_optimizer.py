"""Faults of optimizers: formulas and options that the configuration does not show."""

# mypy: disable-error-code="no-any-return"
# ruff: noqa: D102 - a fault is told by its class

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from tests.python.trace_faults.bed import Loop


@dataclass(frozen=True)
class At:
    """What an update is computed from; steps count from 1."""

    p: torch.Tensor
    g: torch.Tensor
    state: dict[str, Any]
    lr: float
    step: int


Formula = Callable[[At], torch.Tensor]


class Rewritten(torch.optim.Optimizer):
    """An optimizer with a formula of its own and the options of another."""

    def __init__(self, healthy: torch.optim.Optimizer, formula: Formula) -> None:
        """Take the options over."""
        super().__init__(healthy.param_groups, healthy.defaults)
        self.formula = formula

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # noqa: ANN401, ARG002
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                at = state["step"] = state.get("step", 0) + 1
                change = self.formula(At(parameter, parameter.grad, state, group["lr"], at))
                parameter.add_(change)
                if not isinstance(self, AdamLike):
                    del state["step"]


class AdamLike(Rewritten):
    """One that counts its steps."""


class Sgd(Loop):
    """A healthy loop with momentum and decay."""

    options: ClassVar[dict[str, Any]] = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}
    shape: ClassVar[type[Rewritten]] = Rewritten

    def formula(self, at: At) -> torch.Tensor:
        """Compute an update."""
        raise NotImplementedError

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        healthy = super().optimizer(model)
        return healthy if self.says is None else self.shape(healthy, self.formula)


class Adam(Sgd):
    """A healthy loop with Adam."""

    kind = "Adam"
    options: ClassVar[dict[str, Any]] = {"lr": 0.01, "weight_decay": 0.1}
    shape: ClassVar[type[Rewritten]] = AdamLike


def momentum(
    state: dict[str, Any], d: torch.Tensor, share: float, new: float = 1.0
) -> torch.Tensor:
    """Update a momentum buffer."""
    old = state.get("momentum_buffer")
    state["momentum_buffer"] = d.clone() if old is None else share * old + new * d
    result: torch.Tensor = state["momentum_buffer"]
    return result


def moments(
    state: dict[str, Any], d: torch.Tensor, b1: float = 0.9, b2: float = 0.999
) -> tuple[torch.Tensor, torch.Tensor]:
    """Update the moments of Adam."""
    zero = torch.zeros_like(d)
    state["exp_avg"] = b1 * state.get("exp_avg", zero) + (1 - b1) * d
    state["exp_avg_sq"] = b2 * state.get("exp_avg_sq", zero) + (1 - b2) * d * d
    return state["exp_avg"], state["exp_avg_sq"]


# fmt: off
class Dampened(Sgd):
    """The gradient is dampened in the buffer."""

    says, at = "momentum dampening", (1, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        return -at.lr * momentum(at.state, at.g + 0.01 * at.p, 0.9, 0.1)


class OtherMomentum(Sgd):
    """The momentum is another."""

    says, at = "momentum coefficient", (1, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        return -at.lr * momentum(at.state, at.g + 0.01 * at.p, 0.8)


class Nesterov(Sgd):
    """The update looks ahead."""

    says, at = "Nesterov momentum", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        d = at.g + 0.01 * at.p
        return -at.lr * (d + 0.9 * momentum(at.state, d, 0.9))


class NoDecay(Sgd):
    """The weights do not decay."""

    says, at = "weight decay", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        return -at.lr * momentum(at.state, at.g, 0.9)


class DecoupledSgd(Sgd):
    """The weights decay beside the momentum."""

    says, at = "decay coupled or decoupled", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        return -at.lr * momentum(at.state, at.g, 0.9) - at.lr * 0.01 * at.p


class RateTwice(Sgd):
    """The learning rate is multiplied twice."""

    says, at = "learning rate twice", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        return -at.lr * at.lr * momentum(at.state, at.g + 0.01 * at.p, 0.9)


class HiddenRate(Sgd):
    """The update is 0.1 % too large."""

    says, at = "learning-rate ratio", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        return -1.001 * at.lr * momentum(at.state, at.g + 0.01 * at.p, 0.9)


class Uphill(Sgd):
    """The update has the other sign."""

    says, at = "sign of the update", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        return at.lr * momentum(at.state, at.g + 0.01 * at.p, 0.9)


class NoUpdate(Sgd):
    """Nothing is updated."""

    says, at = "no update", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        momentum(at.state, at.g + 0.01 * at.p, 0.9)
        return torch.zeros_like(at.p)


class EpsInside(Adam):
    """Adam's eps is under the root."""

    says, at = "eps placement", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        m, v = moments(at.state, at.g + 0.1 * at.p)
        return -at.lr * m / (1 - 0.9**at.step) / (v / (1 - 0.999**at.step) + 1e-8).sqrt()


class EpsUncorrected(Adam):
    """Adam's eps comes before the correction of the bias."""

    says, at = "eps placement", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        m, v = moments(at.state, at.g + 0.1 * at.p)
        return -at.lr * m / (1 - 0.9**at.step) / ((v.sqrt() + 1e-8) / (1 - 0.999**at.step) ** 0.5)


class OtherEps(Adam):
    """Adam's eps is another."""

    says, at = "eps value", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        m, v = moments(at.state, at.g + 0.1 * at.p)
        return -at.lr * m / (1 - 0.9**at.step) / ((v / (1 - 0.999**at.step)).sqrt() + 1e-7)


class Uncorrected(Adam):
    """Adam's moments are not corrected."""

    says, at = "bias correction missing", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        m, v = moments(at.state, at.g + 0.1 * at.p)
        return -at.lr * m / (v.sqrt() + 1e-8)


class OtherBeta(Adam):
    """Adam forgets the gradient sooner."""

    says, at = "beta", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        m, v = moments(at.state, at.g + 0.1 * at.p, b1=0.8)
        return -at.lr * m / (1 - 0.8**at.step) / ((v / (1 - 0.999**at.step)).sqrt() + 1e-8)


class OtherBeta2(Adam):
    """Adam forgets the square of the gradient sooner."""

    says, at = "beta", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        m, v = moments(at.state, at.g + 0.1 * at.p, b2=0.99)
        return -at.lr * m / (1 - 0.9**at.step) / ((v / (1 - 0.99**at.step)).sqrt() + 1e-8)


class Decoupled(Adam):
    """The decay is beside Adam."""

    says, at = "decay coupled or decoupled", (0, "step", "fc1.weight")

    def formula(self, at: At) -> torch.Tensor:
        m, v = moments(at.state, at.g)
        step_size = -at.lr * m / (1 - 0.9**at.step)
        return step_size / ((v / (1 - 0.999**at.step)).sqrt() + 1e-8) - at.lr * 0.1 * at.p
