"""A Python training job and its C# twin, step by step side by side."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from bridge.dotnet.calls import result
from bridge.dotnet.host import Host
from bridge.dotnet.run import Run
from bridge.optim import reference
from bridge.parity.compare import Comparison, Rule, compare
from bridge.recipes import FashionLeNet, Options, StepResult

State = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Divergence:
    """The first thing that differs: the step, and the tensor, ``batch`` or ``loss``."""

    step: int
    parameter: str
    max_abs_difference: float | None = None
    max_ulp32: float | None = None


@dataclass(frozen=True)
class TwinStep:
    """One step of both sides, and how their states compare after it."""

    python: StepResult
    csharp: StepResult
    tensors: list[Comparison]

    @property
    def identical(self) -> bool:
        """Tell whether every value is identical by the rule."""
        return all(tensor.same for tensor in self.tensors)

    @property
    def max_abs_difference(self) -> float:
        """The largest difference between two values."""
        return max(tensor.max_abs_difference for tensor in self.tensors)

    @property
    def max_ulp32(self) -> float:
        """The largest difference in ulps of float32."""
        return max(tensor.max_ulp32 for tensor in self.tensors)


@dataclass
class Twins:
    """Trains the same job in Python and in C#, each from its own data, weights and order.

    Nothing is fed across: only losses, states and digests of the batches are compared.

    Args:
        options: the job.
        host: where C# runs.
        rule: by which two values count as identical.

    Spec: R15.1, R15.2, R15.3
    """

    options: Options
    host: Host
    rule: Rule
    first_divergence: Divergence | None = field(default=None, init=False)
    latest: list[Comparison] = field(init=False)

    def __post_init__(self) -> None:
        """Set both sides up at the same time, and compare their initial states."""
        creation = Run.create_async(self.host, self.options, reference())
        self.python = FashionLeNet(self.options)
        self.csharp = Run(self.host, result(creation))
        self.start = _copy(self.python.trainer.state_dict())
        self.csharp_start = self.csharp.state_dict()
        self.csharp_state = self.csharp_start
        self.latest = compare(self.start, self.csharp_start, self.rule)
        self._note_tensors(0)

    def step(self) -> TwinStep:
        """Train both sides on their next batch at the same time, and compare.

        Returns:
            Both results and the comparison of the states after the step.

        Raises:
            DotnetError: C# failed.
        """
        pending = self.csharp.step_async()
        python = self.python.step()
        csharp = result(pending)
        self.csharp_state = self.csharp.state_dict()
        self.latest = compare(self.python.trainer.state_dict(), self.csharp_state, self.rule)
        self._note_batch(python, csharp)
        self._note_tensors(python.number)
        return TwinStep(python, csharp, self.latest)

    def evaluate(self, count: int | None = None) -> tuple[float, float]:
        """Measure the accuracy of both sides at the same time, Python's first."""
        pending = self.csharp.evaluate_async(count)
        python = self.python.evaluate(count)
        return python, result(pending)

    def moved(self) -> dict[str, bool]:
        """Tell of each trainable tensor whether both sides have moved it from its start."""
        state = self.python.trainer.model.named_parameters()
        return {
            name: not torch.equal(self.start[name], parameter.detach())
            and not torch.equal(self.csharp_start[name], self.csharp_state[name])
            for name, parameter in state
            if parameter.requires_grad
        }

    def _note_batch(self, python: StepResult, csharp: StepResult) -> None:
        """Note the step if the batches or the losses differ."""
        if python.batch != csharp.batch:
            self._note(Divergence(python.number, "batch"))
        losses = [torch.tensor([side.loss], dtype=torch.float64) for side in (python, csharp)]
        both = compare({"loss": losses[0]}, {"loss": losses[1]}, self.rule)[0]
        if not both.same:
            difference = abs(python.loss - csharp.loss)
            known = difference if math.isfinite(difference) else None
            self._note(Divergence(python.number, "loss", known, both.max_ulp32))

    def _note_tensors(self, step: int) -> None:
        """Note the first tensor that differs after a step."""
        for tensor in self.latest:
            if not tensor.same:
                difference, ulp = tensor.max_abs_difference, tensor.max_ulp32
                self._note(Divergence(step, tensor.name, difference, ulp))

    def _note(self, divergence: Divergence) -> None:
        """Keep the first divergence."""
        if self.first_divergence is None:
            self.first_divergence = divergence


def _copy(state: State) -> dict[str, torch.Tensor]:
    """Copy a state."""
    return {name: tensor.detach().clone() for name, tensor in state.items()}
