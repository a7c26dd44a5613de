"""What a recorder takes down of a loop, and that it changes nothing."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import bridge
from bridge.trace import Record, Recorder, Trace, compare, read
from tests.python.spec.vectors import assert_same

Step = Callable[[int], None]


class Twice(nn.Module):
    """Calls one layer twice, draws, and has a layer that it never calls."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(3)
        self.idle = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the layer twice."""
        result: torch.Tensor = self.norm(self.drop(self.layer(self.act(self.layer(x)))))
        return result


def train(path: Path | None, **options: Any) -> tuple[nn.Module, list[torch.Tensor]]:  # noqa: ANN401
    """Train, recorded if there is a path; return the model and all there is."""
    torch.manual_seed(7)
    model = Twice()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    trace = None if path is None else bridge.trace(path, model, optimizer, **options)
    for _ in range(3):
        inputs, targets = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
        if trace:
            trace.inputs(inputs, targets)
        loss = functional.cross_entropy(model(inputs), targets)
        if trace:
            trace.loss(loss)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if trace:
            trace.gradients()
        optimizer.step()
        if trace:
            trace.step()
    if trace:
        trace.close()
    state = [value for held in optimizer.state.values() for value in held.values()]
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    tensors = [torch.as_tensor(v) for v in (*model.state_dict().values(), *state, *gradients)]
    return model, [*tensors, torch.get_rng_state()]


def of(trace: Trace, **wanted: object) -> list[Record]:
    """Select records by their keys."""
    return [r for r in trace.records if all(getattr(r, k) == v for k, v in wanted.items())]


@pytest.mark.parametrize("options", [{}, {"activation_gradients": True, "full": "*", "every": 2}])
def test_observation_changes_nothing(tmp_path: Path, options: dict[str, Any]) -> None:
    """State, gradients and random stream have the same bits in a recorded run. Spec: R30.6."""
    _, plain = train(None)
    _, recorded = train(tmp_path, **options)
    assert_same(recorded, plain)


def test_nothing_stays_behind(tmp_path: Path) -> None:
    """No hook is left on the model, and nothing holds it, its outputs or its graph. Spec: R30.6."""
    model = Twice()
    trace = bridge.trace(tmp_path, model, activation_gradients=True)
    trace.inputs(torch.ones(2, 3))
    outputs = model(torch.ones(2, 3))
    held = weakref.ref(outputs)
    trace.loss(outputs.sum())
    del outputs
    assert held() is None
    trace.close()
    trace.close()
    layers = list(model.modules())
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in layers)  # noqa: SLF001
    known = weakref.ref(model)
    del model, trace, layers
    gc.collect()
    assert known() is None


def test_layers_are_observed_in_order(tmp_path: Path) -> None:
    """They come in the order of execution, with their calls numbered. Spec: R30.1, R30.4."""
    train(tmp_path)
    trace = read(tmp_path)
    assert [record.order for record in trace.records] == list(range(len(trace.records)))
    seen = [
        (r.kind, r.name, r.call) for r in of(trace, step=1, phase="forward") if not r.unobserved
    ]
    chain = [("layer", 0), ("act", 0), ("layer", 1), ("drop", 0), ("norm", 0)]
    inner = [(kind, *place) for place in chain for kind in ("input", "activation")]
    assert seen == [("input", "", 0), *inner, ("activation", "", 0)]
    phases = list(dict.fromkeys(r.phase for r in of(trace, step=1) if not r.unobserved))
    assert phases == ["scatter", "forward", "loss", "backward", "step"]


def test_places_are_lines_of_the_caller(tmp_path: Path) -> None:
    """A record says the file and line that called the layer, or showed the loss. Spec: R30.4."""
    train(tmp_path)
    trace = read(tmp_path)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    for wanted, code in (
        ({"name": "layer"}, "self.norm(self.drop("),
        ({"name": "", "phase": "forward"}, "model(inputs)"),
        ({"kind": "loss"}, "trace.loss(loss)"), ({"name": "targets"}, "trace.inputs("),
    ):  # fmt: skip
        record = next(r for r in of(trace, step=1, **wanted) if r.phase != "backward")
        file, _, line = (record.at or "").rpartition(":")
        assert Path(file) == Path(__file__)
        assert code in lines[int(line) - 1]


def test_what_is_not_observed_is_said(tmp_path: Path) -> None:
    """A layer that is not called, and a gradient that is None, are in the trace. Spec: R30.5."""
    train(tmp_path)
    trace = read(tmp_path)
    unseen = [(r.step, r.name, r.unobserved) for r in trace.records if r.unobserved]
    reason = "no call of the layer was seen in this step"
    assert unseen == [(step, "idle", reason) for step in range(3)]
    none = of(trace, kind="gradient", name="idle.weight")
    assert [(r.tensor, r.value) for r in none] == [(None, None)] * 3


def test_state_is_taken_down(tmp_path: Path) -> None:
    """Parameters, buffers, optimizer, learning rates, random state, configuration. Spec: R30.1."""
    model, _ = train(tmp_path)
    trace = read(tmp_path)
    last = {(r.kind, r.name, r.part): r for r in of(trace, step=2, phase="step")}
    names = [name for name, _ in model.named_parameters()]
    assert [name for kind, name, _ in last if kind == "parameter"] == names
    assert [name for kind, name, _ in last if kind == "buffer"] == [
        "norm.running_mean", "norm.running_var", "norm.num_batches_tracked",
    ]  # fmt: skip
    states = [
        part for kind, name, part in last if (kind, name) == ("optimizer state", "layer.bias")
    ]
    assert states == ["exp_avg", "exp_avg_sq", "step"]
    assert last["optimizer state", "layer.bias", "step"].value == 3
    assert last["learning rate", "optimizer0", "group0"].value == 0.05
    assert ("random state", "cpu", "") in last
    configuration = {(r.name, r.part): r.value for r in of(trace, kind="configuration")}
    assert configuration["layer", "type"] == "Linear"
    assert configuration["", "training"] is True
    assert configuration["layer.bias", "requires_grad"] is True
    assert configuration["optimizer0", "type"] == "Adam"
    assert configuration["optimizer0", "group0.betas"] == [0.9, 0.999]
    assert of(trace, phase="init", kind="optimizer state") == []


def test_gradients_of_outputs_are_taken_down_where_asked_for(tmp_path: Path) -> None:
    """They come in the order of the backward, with the call they belong to. Spec: R30.1."""
    train(tmp_path, activation_gradients=True)
    layers = {"", "layer", "act", "drop", "norm"}
    found = [r for r in of(read(tmp_path), step=0, phase="backward") if r.name in layers]
    names = [(r.name, r.call) for r in found]
    assert {("norm", 0), ("layer", 1), ("layer", 0)} <= set(names)
    assert names.index(("norm", 0)) < names.index(("layer", 1)) < names.index(("layer", 0))


def test_every_so_many_steps(tmp_path: Path) -> None:
    """With every = 2, steps 0 and 2 are recorded, as they are in every trace. Spec: R30.4."""
    train(tmp_path / "some", every=2)
    train(tmp_path / "all")
    some, all_ = read(tmp_path / "some"), read(tmp_path / "all")
    assert {record.step for record in some.records} == {0, 2}
    digests = [[r.tensor and r.tensor.digest for r in of(t, step=2)] for t in (some, all_)]
    assert digests[0] == digests[1]
    with pytest.raises(ValueError, match=r"^trace: expected every of at least 1, got 0$"):
        Recorder(tmp_path, Twice(), every=0)


def test_validation_between_steps_is_not_recorded(tmp_path: Path) -> None:
    """Only the forward between the inputs of a step and its loss is observed. Spec: R30.4."""
    model = Twice()
    with bridge.trace(tmp_path, model) as trace:
        model(torch.ones(2, 3))
        trace.inputs(torch.ones(2, 3))
        loss = model(torch.ones(2, 3)).sum()
        trace.loss(loss)
        model(torch.ones(2, 3))
        trace.step()
    assert [r.call for r in of(read(tmp_path), kind="activation", name="layer")] == [0, 1]


def test_an_exception_of_the_loop_is_taken_down(tmp_path: Path) -> None:
    """A loop that fails leaves what it did of the step, and the message. Spec: R30.5."""
    model = Twice()
    trace = bridge.trace(tmp_path, model)
    trace.inputs(torch.ones(2, 3))
    with pytest.raises(RuntimeError), trace:
        model(torch.ones(2, 4))
    records = read(tmp_path).records
    assert records[-1].kind == "failure"
    assert "shapes cannot be multiplied" in records[-1].value
    assert records[-2].name == "layer"


def trainer(*, fail: bool = False, replicas: int = 2, **options: Any) -> bridge.Trainer:  # noqa: ANN401
    """Make a trainer of a model that draws."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 3))

    def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if fail:
            message = "no loss today"
            raise ArithmeticError(message)
        return functional.cross_entropy(outputs, targets)

    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    return bridge.Trainer(model, optimizer, loss, ["cpu"] * replicas, **options)


def run(own: bridge.Trainer) -> list[torch.Tensor]:
    """Take three steps, and return the state."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        own.step(torch.randn(5, 3, generator=generator), torch.tensor([0, 1, 2, 0, 1]))
    own.flush()
    return [*own.state_dict().values(), torch.get_rng_state()]


@pytest.mark.parametrize("options", [{}, {"accumulate": 2, "clip_norm": 0.1}, {"replicas": 1}])
def test_a_trainer_is_observed_without_a_change(tmp_path: Path, options: dict[str, Any]) -> None:
    """A recorded trainer leaves the same bits; two recordings are identical. Spec: R30.5, R30.6."""
    plain = run(trainer(**options))
    for name in ("a", "b"):
        own = trainer(**options)
        with bridge.trace(tmp_path / name, own):
            assert_same(run(own), plain)
        assert type(own.observer).__name__ == "Observer"
    assert compare(tmp_path / "a", tmp_path / "b").verdict == "identical"


def test_all_phases_of_a_trainer(tmp_path: Path) -> None:
    """Every replica has its shard, forward, loss, gradients and resync. Spec: R30.5."""
    with bridge.trace(tmp_path, own := trainer(clip_norm=0.1)):
        run(own)
    trace = read(tmp_path)
    records = [r for r in of(trace, step=1) if not r.unobserved]
    assert list(dict.fromkeys((r.phase, r.replica) for r in records)) == [
        ("scatter", 0), ("scatter", 1), ("forward", 0), ("forward", 1), ("loss", 0), ("loss", 1),
        ("backward", 0), ("backward", 1), ("reduce", 0), ("clip", 0), ("step", 0), ("resync", 1),
    ]  # fmt: skip
    shapes = [r.tensor and r.tensor.shape for r in of(trace, step=1, name="inputs")]
    assert shapes == [(3, 3), (2, 3)]
    after = [
        of(trace, step=1, phase=p, name="0.weight", kind="parameter") for p in ("step", "resync")
    ]
    assert after[0][0].tensor == after[1][0].tensor


def test_a_step_of_a_trainer_that_fails_is_taken_down(tmp_path: Path) -> None:
    """The trace has the message; the trainer is as it was. Spec: R30.5."""
    own = trainer(fail=True, replicas=1)
    with pytest.raises(Exception, match="no loss today"), bridge.trace(tmp_path, own):
        run(own)
    trace = read(tmp_path)
    assert trace.complete
    assert [r.value for r in of(trace, kind="failure")] == [trace.records[-1].value]
    assert "no loss today" in trace.records[-1].value


def test_a_copy_of_a_recorded_model_is_not_recorded(tmp_path: Path) -> None:
    """Of a recorded model and its replicas only the model is observed. Spec: R30.4."""
    model = nn.Sequential(nn.Linear(3, 3))
    with bridge.trace(tmp_path, model) as trace:
        first, second = bridge.replicate(model, ["cpu", "cpu"])
        trace.inputs(torch.ones(1, 3))
        second(torch.ones(1, 3))
        trace.loss(first(torch.ones(1, 3)).sum())
    assert [r.call for r in of(read(tmp_path), kind="activation", name="0")] == [0]
