"""Steps that fail: everything is as before, and the next step works."""

import _thread
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler

import bridge
from bridge import ReplicaError, SyncBatchNorm, Trainer
from tests.python.spec.trainers import Snapshot, equal, everything

CPU = "cpu"
STAGES = ("forward", "loss", "backward", "average", "clip", "optimizer", "resync", "scheduler")


class Broken(Exception):  # noqa: N818 - a name to read in tests
    """What the tests raise."""


class Switch:
    """Breaks one stage while it is on, in some replicas."""

    def __init__(self) -> None:
        """Start whole."""
        self.stage = ""
        self.error: Callable[[], BaseException] = Broken

    def pull(self, stage: str) -> None:
        """Raise in the stage that is broken."""
        if self.stage == stage:
            raise self.error()


class Passing(torch.autograd.Function):
    """Passes values on, and breaks in the backward."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        """Pass on."""
        x, ctx.switch, ctx.marked = args
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:  # noqa: ANN401
        """Pass back."""
        if ctx.marked:
            ctx.switch.pull("backward")
        return gradients[0], None, None


class Model(nn.Module):
    """Has all that a step changes: draws, statistics, and a buffer that is put anew."""

    def __init__(self, switch: Switch, norm: nn.Module) -> None:
        """Make the layers."""
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 4), norm, nn.Dropout(0.25), nn.Linear(4, 2))
        self.switch = switch
        self.register_buffer("calls", torch.tensor(0))

    def __deepcopy__(self, memo: dict[int, Any]) -> "Model":
        """Share the switch."""
        copy = Model(self.switch, nn.Identity())
        copy.inner = deepcopy(self.inner, memo)
        return copy

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Break where the input is marked."""
        marked = bool((x > 100).any())
        outputs: torch.Tensor = self.inner(x.clamp(max=100))
        self.calls = self.get_buffer("calls") + 1
        if marked:
            self.switch.pull("forward")
        passed: torch.Tensor = Passing.apply(outputs, self.switch, marked)
        return passed


class HalfWay(torch.optim.Optimizer):
    """An optimizer of the user's, with state of its own, that breaks between two parameters."""

    def __init__(self, parameters: Iterable[nn.Parameter], switch: Switch) -> None:
        """Start without state."""
        super().__init__(parameters, {"lr": 0.1})
        self.switch = switch
        self.count = torch.tensor(0)
        self.history: list[torch.Tensor] = []

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # noqa: ANN401, ARG002
        """Move the first parameters, then break."""
        self.count += 1
        for number, parameter in enumerate(self.param_groups[0]["params"]):
            if number == 2:
                self.switch.pull("optimizer")
            sums = self.state[parameter].setdefault("sum", torch.zeros(parameter.shape))
            sums.add_(parameter.grad)
            self.history.append(sums.clone())
            parameter.sub_(sums, alpha=self.param_groups[0]["lr"])

    def extras(self) -> Snapshot:
        """Copy what its state dict does not have."""
        return [self.count.clone(), [tensor.clone() for tensor in self.history]]


def trainer_of(
    switch: Switch,
    replicas: int,
    mode: Any = "master",  # noqa: ANN401 - a literal
    norm: Any = nn.BatchNorm1d,  # noqa: ANN401 - a class
    accumulate: int = 1,
) -> Trainer:
    """Make a trainer that breaks where the switch says."""

    def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if bool((targets > 100).any()):
            switch.pull("loss")
        return functional.mse_loss(outputs, targets.clamp(max=100))

    def rate(_: int) -> float:
        switch.pull("scheduler")
        return 0.9

    torch.manual_seed(4)
    return Trainer(
        Model(switch, norm(4)), lambda parameters: HalfWay(parameters, switch), loss,
        [CPU] * replicas, mode=mode, clip_norm=1.0, accumulate=accumulate,
        scheduler=lambda optimizer: lr_scheduler.MultiplicativeLR(optimizer, rate),
    )  # fmt: skip


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Switch]:
    """Give a switch that also breaks the verbs of the trainer, and take the threads' names."""
    own = Switch()
    for module, name, stage in (
        ("trainer_step", "average", "average"),
        ("trainer_step", "clip_gradients", "clip"),
        ("step", "resync", "resync"),
    ):
        verb = getattr(bridge, name)

        def broken(*args: Any, _verb: Any = verb, _stage: str = stage, **named: Any) -> Any:  # noqa: ANN401
            result = _verb(*args, **named)
            own.pull(_stage)
            return result

        monkeypatch.setattr(_module(f"bridge.parallel.{module}"), name, broken)
    state = torch.get_rng_state()
    yield own
    torch.set_rng_state(state)
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("replica")]


def _module(name: str) -> Any:  # noqa: ANN401 - a module
    """Find a module, whose name its function has too."""
    return sys.modules[name]


def batch_of(size: int, *marked: int, step: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a batch whose marked samples break a stage."""
    generator = torch.Generator().manual_seed(step)
    inputs = torch.randn(size, 3, generator=generator)
    targets = torch.randn(size, 2, generator=generator)
    for index in marked:
        inputs[index, 0] = targets[index, 0] = 1000
    return inputs, targets


def all_of(trainer: Trainer) -> Snapshot:
    """Copy everything, the optimizers' own attributes included."""
    return [everything(trainer), *[own.extras() for own in trainer.optimizers]]  # type: ignore[attr-defined]


@pytest.mark.parametrize("norm", [nn.BatchNorm1d, SyncBatchNorm])
@pytest.mark.parametrize("mode", ["master", "all"])
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("stage", STAGES)
def test_everything_is_as_before(
    switch: Switch, stage: str, replicas: int, mode: str, norm: type[nn.Module]
) -> None:
    """Then the next steps are those of a run that never failed. Spec: R21.1, R21.2."""
    if stage == "scheduler" and mode == "all":
        switch.error = lambda: RuntimeError("of any kind")
    states = []
    for failing in (False, True):
        trainer = trainer_of(switch, replicas, mode, norm)
        trainer.step(*batch_of(9, step=1))
        if failing:
            for _ in range(2):
                before = all_of(trainer)
                switch.stage = stage
                with pytest.raises((ReplicaError, Broken, RuntimeError)):
                    trainer.step(*batch_of(9, 0, 4, 8, step=2))
                switch.stage = ""
                assert equal(before, all_of(trainer))
        trainer.step(*batch_of(9, step=3))
        trainer.step(*batch_of(6, step=4))
        states.append(all_of(trainer))
    assert equal(*states)


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam, torch.optim.LBFGS])
def test_pytorchs_optimizers_are_given_back(switch: Switch, make: Any) -> None:  # noqa: ANN401
    """Their state and rates too, where a scheduler of the user's fails. Spec: R21.1, R21.2."""

    def rate(update: int) -> float:
        if update == 2:
            switch.pull("scheduler")
        return 0.5**update

    model = nn.Linear(3, 2)
    trainer = Trainer(
        model, make(model.parameters(), lr=0.1), functional.mse_loss, [CPU] * 2,
        scheduler=lambda optimizer: lr_scheduler.LambdaLR(optimizer, rate),
    )  # fmt: skip
    if make is torch.optim.LBFGS:
        before = everything(trainer)
        with pytest.raises(ValueError, match="without a closure"):
            trainer.step(*batch_of(4))
        assert equal(before, everything(trainer))
        return
    trainer.step(*batch_of(4))
    before = everything(trainer)
    switch.stage = "scheduler"
    with pytest.raises(Broken):
        trainer.step(*batch_of(4))
    assert equal(before, everything(trainer))


def test_a_scheduler_that_is_through_is_undone() -> None:
    """OneCycleLR refuses to go on after its last step, which changes nothing. Spec: R21.2."""
    model = nn.Linear(3, 2)
    trainer = Trainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), functional.mse_loss,
        scheduler=lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=3),
    )  # fmt: skip
    for _ in range(3):
        trainer.step(*batch_of(4))
    before = everything(trainer)
    for _ in range(2):
        with pytest.raises(ValueError, match="Tried to step"):
            trainer.step(*batch_of(4))
        assert equal(before, everything(trainer))


def test_accumulated_gradients_are_given_back(switch: Switch) -> None:
    """A batch that fails is not added, and a flush that fails can be repeated. Spec: R21.1."""
    states = []
    for failing in (False, True):
        trainer = trainer_of(switch, 2, accumulate=3)
        trainer.step(*batch_of(6, step=1))
        acts: dict[str, Any] = {
            "forward": lambda t=trainer: t.step(*batch_of(6, 5, step=2)),
            "optimizer": trainer.flush,
        }
        for stage, act in acts.items():
            if failing:
                before = all_of(trainer)
                switch.stage = stage
                with pytest.raises((ReplicaError, Broken)):
                    act()
                switch.stage = ""
                assert equal(before, all_of(trainer))
        trainer.step(*batch_of(4, step=3))
        assert trainer.flush()
        states.append(all_of(trainer))
    assert equal(*states)


@pytest.mark.parametrize("stage", ["forward", "loss", "backward"])
def test_every_failing_replica_is_named(switch: Switch, stage: str) -> None:
    """With its index, device, error and stack. Spec: R3.3, R21.2."""
    trainer = trainer_of(switch, 3)
    trainer.step(*batch_of(9))
    switch.stage = stage
    with pytest.raises(ReplicaError) as caught:
        trainer.step(*batch_of(9, 0, 8))
    assert [failure.replica for failure in caught.value.failures] == [0, 2]
    assert "in replica 2 on device cpu: Broken" in str(caught.value)
    assert "in pull" in str(caught.value)


def test_a_joint_backward_names_the_replicas_that_took_part(switch: Switch) -> None:
    """One backward runs over the losses of synchronized replicas. Spec: R3.3, R21.2, R22.1."""
    trainer = trainer_of(switch, 3, norm=SyncBatchNorm)
    trainer.step(*batch_of(9))
    before = all_of(trainer)
    switch.stage = "backward"
    with pytest.raises(ReplicaError) as caught:
        trainer.step(*batch_of(9, 4))
    assert [failure.replica for failure in caught.value.failures] == [0, 1, 2]
    head = (
        "backward: replicas 0, 1, 2 failed together, as one backward runs over their losses: Broken"
    )
    assert str(caught.value).startswith(head)
    assert str(caught.value).count("in pull") == 1
    assert equal(before, all_of(trainer))


def test_a_backward_is_named_by_its_replica_where_others_count_nothing() -> None:
    """The index is the replica's, not that among those which count. Spec: R3.3, R8.6."""
    model = nn.Linear(1, 1)
    trainer = Trainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1),
        lambda out, y: (out.sum().detach() if y.sum() > 0 else out.sum(), y.sum()),
        [CPU] * 2, reduction="count",
    )  # fmt: skip
    with pytest.raises(ReplicaError, match="does not require grad") as caught:
        trainer.step(torch.ones(2, 1), torch.tensor([0.0, 1.0]))
    assert [failure.replica for failure in caught.value.failures] == [1]


@pytest.mark.parametrize("norm", [nn.BatchNorm1d, SyncBatchNorm])
@pytest.mark.parametrize("stage", ["forward", "loss", "optimizer", "scheduler"])
def test_an_interrupt_is_undone_and_raised(
    switch: Switch, stage: str, norm: type[nn.Module]
) -> None:
    """KeyboardInterrupt leaves the step as any error does. Spec: R21.1, R21.2."""
    trainer = trainer_of(switch, 3, norm=norm)
    trainer.step(*batch_of(9, step=1))
    before = all_of(trainer)
    switch.stage, switch.error = stage, KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        trainer.step(*batch_of(9, 4, step=2))
    switch.stage = ""
    assert equal(before, all_of(trainer))
    trainer.step(*batch_of(9, step=3))


@pytest.mark.parametrize("norm", [nn.Identity, SyncBatchNorm])
def test_ctrl_c_waits_for_the_replicas(norm: Any) -> None:  # noqa: ANN401 - a class
    """No replica outlives the step that Ctrl-C ends. Spec: R19.2, R21.1."""

    class Slow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(3, 2), norm(2))
            self.slow = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.slow:
                _thread.interrupt_main()
                time.sleep(0.05)
            outputs: torch.Tensor = self.inner(x)
            return outputs

    model = Slow()
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), functional.mse_loss,
                      [CPU] * 2)  # fmt: skip
    trainer.step(*batch_of(4))
    before = everything(trainer)
    model.slow = True
    with pytest.raises(KeyboardInterrupt):
        trainer.step(*batch_of(4))
    model.slow = False
    assert equal(before, everything(trainer))
    assert not [t for t in threading.enumerate() if t.name.startswith("replica")]
    trainer.step(*batch_of(4))


def test_ctrl_c_in_the_update_waits_for_its_end() -> None:
    """An update of arithmetic alone is made whole, and then the interrupt comes. Spec: R21.1."""

    class Pressed(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:  # noqa: ANN401
            _thread.interrupt_main()
            return super().step(closure)

    models = [nn.Linear(3, 2) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    for model, make in zip(models, (torch.optim.SGD, Pressed), strict=True):
        trainer = Trainer(model, make(model.parameters(), lr=0.1), functional.mse_loss)
        pressed: Any = pytest.raises(KeyboardInterrupt) if make is Pressed else nullcontext()
        with pressed:
            trainer.step(*batch_of(4))
        assert trainer.updates == 1
    assert all(map(torch.equal, models[0].parameters(), models[1].parameters()))
