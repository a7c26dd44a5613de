"""Rounding alone stays inside the noise envelope, and no fault does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import nn
from torch.nn import functional

from bridge.trace import Outcome, compare
from bridge.trace.envelope import NoiseEnvelope, envelope_of, measure, safety
from bridge.trace.nudge import nudge
from tests.python.trace_faults.bed import Loop
from tests.python.trace_faults.faults_optimizer import Adam, At, moments
from tests.python.trace_faults.models import Attention, ConvNet, Lstm, Mlp

STEPS = 20


class Long(Loop):
    """A healthy loop of 20 steps, in float32."""

    dtype = torch.float32
    steps = STEPS
    batch = 16


def loop(net: type[nn.Module], **members: Any) -> type[Loop]:  # noqa: ANN401 - members of a loop
    """Make a loop with a model."""
    return type(net.__name__, (Long,), {"net": net, **members})


def noise(own: type[Loop], folder: Path, runs: int = 8) -> NoiseEnvelope:
    """Measure the envelope of a loop."""
    return measure(lambda model, path: own().run(path, model), own().model(), folder, runs=runs)


@contextmanager
def reordered() -> Iterator[None]:
    """Add up all products in another order, as another build does."""
    linear, conv, lstm = functional.linear, functional.conv2d, nn.LSTM.forward

    def flipped_linear(x: torch.Tensor, w: torch.Tensor, b: Any = None) -> torch.Tensor:  # noqa: ANN401
        return linear(x.flip(-1), w.flip(-1), b)

    def flipped_conv(x: torch.Tensor, w: torch.Tensor, *rest: Any) -> torch.Tensor:  # noqa: ANN401
        halves = conv(x[..., ::2, :, :], w[:, ::2], rest[0], *rest[1:])
        if x.shape[-3] == 1:
            return halves
        return halves + conv(x[..., 1::2, :, :], w[:, 1::2], None, *rest[1:])

    def flipped_lstm(self: nn.LSTM, x: torch.Tensor) -> Any:  # noqa: ANN401 - outputs and state
        outputs, state = lstm(self, x.flip(0))
        return outputs.flip(0), tuple(part.flip(1) for part in state)

    with (
        patch.object(functional, "linear", flipped_linear),
        patch.object(functional, "conv2d", flipped_conv),
        patch.object(nn.LSTM, "forward", flipped_lstm),
    ):
        yield


class Own(Adam):
    """A healthy loop with Adam."""

    dtype, steps = torch.float32, 6


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, NoiseEnvelope]:
    """Record that loop and its noise once."""
    folder = tmp_path_factory.mktemp("own")
    return folder, noise(Own, folder)


def against(port: type[Loop], own: tuple[Path, NoiseEnvelope], folder: Path) -> Outcome:
    """Compare a port with that loop."""
    port().run(folder / "port", Own().model())
    return compare(own[0] / "reference", folder / "port", envelope=own[1])


@pytest.mark.parametrize(
    ("net", "kind"), [(Mlp, "SGD"), (ConvNet, "Adam"), (Lstm, "SGD"), (Attention, "Adam")]
)
def test_another_order_of_sums_is_equivalent(
    net: type[nn.Module], kind: str, tmp_path: Path
) -> None:
    """Over 20 steps of float32 nothing that only rounds otherwise is outside.

    Spec: R35.1, R35.2
    """
    options = {"lr": 0.05, "momentum": 0.9} if kind == "SGD" else {"lr": 0.01}
    own = loop(net, kind=kind, options=options)
    envelope = noise(own, tmp_path, 5)
    with reordered():
        own().run(tmp_path / "port", own().model())
    outcome = compare(tmp_path / "reference", tmp_path / "port", envelope=envelope)
    assert outcome.verdict == "equivalent", outcome.reason
    assert outcome.first is None
    assert "since step 0, forward" in outcome.reason
    # Without the envelope it would be a divergence: the runs do differ.
    assert compare(tmp_path / "reference", tmp_path / "port").verdict == "diverged"


class OneUlp(Own):
    """Adam as PyTorch wrote it once: the corrections are divided into other factors."""

    says = "nothing"

    def formula(self, at: At) -> torch.Tensor:
        """Compute an update."""
        m, v = moments(at.state, at.g + 0.1 * at.p)
        return -(at.lr * m) / (1 - 0.9**at.step) / (v / (1 - 0.999**at.step)).sqrt().add(1e-8)


def test_a_formula_one_ulp_off_is_equivalent(
    own: tuple[Path, NoiseEnvelope], tmp_path: Path
) -> None:
    """Adam in another order of operations differs, and is inside.

    Spec: R35.2
    """
    outcome = against(OneUlp, own, tmp_path)
    assert outcome.verdict == "equivalent", outcome.reason
    assert "optimizer state" in outcome.reason or "parameter" in outcome.reason


def faulty(change: Callable[[At, torch.Tensor, torch.Tensor], torch.Tensor]) -> type[Loop]:
    """Make an Adam whose last line is another."""

    def formula(self: Loop, at: At) -> torch.Tensor:  # noqa: ARG001 - a method
        m, v = moments(at.state, at.g + 0.1 * at.p)
        return change(at, m / (1 - 0.9**at.step), v / (1 - 0.999**at.step))

    return type("Faulty", (Own,), {"says": "a fault", "formula": formula})


@pytest.mark.parametrize(
    "change",
    [
        lambda at, m, v: -1.001 * at.lr * m / (v.sqrt() + 1e-8),
        lambda at, m, v: -at.lr * m / (v + 1e-8).sqrt(),
        lambda at, m, v: -at.lr * m / (v.sqrt() + 1e-6),
        lambda at, m, v: -at.lr * m * (1 - 0.9**at.step) / (1 - 0.901**at.step) / (v.sqrt() + 1e-8),
    ],
    ids=["rate", "eps inside", "eps", "beta"],
)
def test_a_small_fault_is_outside(
    change: Callable[[At, torch.Tensor, torch.Tensor], torch.Tensor],
    own: tuple[Path, NoiseEnvelope],
    tmp_path: Path,
) -> None:
    """A rate 0.1 % off, another eps and another beta diverge in the update of a step.

    Spec: R35.2
    """
    outcome = against(faulty(change), own, tmp_path)
    assert outcome.verdict == "diverged"
    assert outcome.cause is not None
    assert outcome.cause.record.phase == "step"
    assert all(
        item.record.phase == "step" for item in outcome.divergences if item.root and not item.noise
    )


def test_the_factor_falls_with_the_number_of_runs() -> None:
    """More runs need less safety; fewer than five are refused.

    Spec: R35.1
    """
    factors = [safety(runs) for runs in (5, 8, 16)]
    assert factors == sorted(factors, reverse=True)
    assert factors[1] == pytest.approx(8.03, abs=0.01)
    with pytest.raises(ValueError, match=r"^envelope: expected at least 5 runs, got 4$"):
        safety(4)
    sizes = torch.randn(200_000, 6, generator=torch.Generator().manual_seed(0)).abs()
    assert (sizes[:, 5] > safety(5) * sizes[:, :5].amax(1)).sum() <= 2


def test_a_nudge_moves_each_weight_by_an_ulp(tmp_path: Path) -> None:
    """Each weight becomes one of its neighbours, zeros stay, and no random number is drawn.

    Spec: R35.3
    """
    model = Long().model()
    with torch.no_grad():
        next(model.parameters())[0, 0] = 0.0
    before = [p.detach().clone() for p in model.parameters()]
    state = torch.get_rng_state()
    nudge(model, 1)
    assert torch.equal(state, torch.get_rng_state())
    for old, new in zip(before, model.parameters(), strict=True):
        near = [torch.nextafter(old, torch.full_like(old, end)) for end in (-9.0, 9.0)]
        assert torch.all((new == near[0]) | (new == near[1]) | ((old == 0) & (new == 0)))
        assert old.numel() < 20 or (torch.any(new > old) and torch.any(new < old))
    again = Long().model()
    noise(Long, tmp_path)
    assert all(map(torch.equal, again.parameters(), Long().model().parameters()))


def test_recorded_runs_make_the_same_envelope(tmp_path: Path) -> None:
    """The folders that a measurement leaves give its limits again; too few are refused.

    Spec: R35.1
    """
    envelope = noise(Long, tmp_path)
    assert envelope_of(tmp_path / "reference", [tmp_path]) == envelope
    with pytest.raises(ValueError, match=r"^envelope: expected at least 5 runs, got 2$"):
        envelope_of(tmp_path / "reference", [tmp_path / "noise0", tmp_path / "noise1"])
