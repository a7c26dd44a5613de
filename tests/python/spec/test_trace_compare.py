"""What the comparison of two traces says, and how far projections can be trusted."""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from bridge.cli import app
from bridge.trace import Outcome, Record, TraceError, compare
from bridge.trace.distance import Distance, estimate, measure, same_float32, within_float32
from bridge.trace.keeper import Keeper, observe
from bridge.trace.writer import Writer

Rows = list[tuple[Record, torch.Tensor]]
Change = Callable[[Rows], Iterable[tuple[Record, torch.Tensor | None]]]
STEPS = 2


def history() -> Rows:
    """Make the records of two steps of a small training, in the order of execution."""
    generator = torch.Generator().manual_seed(0)
    records = [Record(0, "init", 0, "parameter", "fc.weight")]
    for step in range(STEPS):
        rows = [
            ("scatter", "input", "inputs"), ("forward", "input", "fc"),
            ("forward", "activation", "fc"), ("forward", "input", "head"),
            ("forward", "activation", "head"), ("loss", "loss", "loss"),
            ("backward", "gradient", "fc.weight"), ("step", "parameter", "fc.weight"),
        ]  # fmt: skip
        records += [Record(step, phase, 0, kind, name) for phase, kind, name in rows]
    draw = [torch.randn(40, dtype=torch.float64, generator=generator) for _ in records]
    return list(zip(records, draw, strict=True))


def write(
    folder: Path,
    change: Change | None = None,
    *,
    full: str | None = None,
    end: bool = True,
    extra: Iterable[Record] = (),
) -> Path:
    """Write a trace, changed; a record without a tensor is written as it is."""
    rows = history() if change is None else change(history())
    keeper = Keeper(full, None)
    with Writer(folder, {}) as writer:
        for record, tensor in rows:
            writer.write([(record, None) if tensor is None else keeper.entry(record, tensor)])
        writer.write([(record, None) for record in extra])
        if end:
            writer.close(STEPS)
    return folder


def against(tmp_path: Path, change: Change) -> Outcome:
    """Compare the trace with a changed one."""
    return compare(write(tmp_path / "a"), write(tmp_path / "b", change))


def shifted(start: int, stop: int | None = None, by: float = 1e-3) -> Change:
    """Change the tensors of some records."""
    return lambda rows: [
        (record, tensor + by if index in range(*slice(start, stop).indices(len(rows))) else tensor)
        for index, (record, tensor) in enumerate(rows)
    ]


def place(outcome: Outcome, which: str) -> tuple[int, str, str, str]:
    """Take step, phase, name and fault of the first divergence or the cause."""
    found = getattr(outcome, which)
    assert found is not None
    return found.record.step, found.record.phase, found.record.name, found.fault


def test_equal_traces_are_identical(tmp_path: Path) -> None:
    """The same records are identical; so is a trace with itself. Spec: R30.9."""
    outcome = compare(write(tmp_path / "a"), write(tmp_path / "b"))
    assert (outcome.verdict, outcome.exit_code(strict=True)) == ("identical", 0)
    assert (outcome.records, outcome.bit_equal, outcome.divergences) == (17, 17, [])
    assert outcome.reason == "All 17 records of 2 steps are identical."


@pytest.mark.parametrize(
    ("first", "phase", "name"),
    [(1, "scatter", "inputs"), (3, "forward", "fc"), (4, "forward", "head"), (6, "loss", "loss"),
     (7, "backward", "fc.weight"), (8, "step", "fc.weight")],
)  # fmt: skip
def test_the_first_divergence_is_the_root(
    tmp_path: Path, first: int, phase: str, name: str
) -> None:
    """Whatever differs first, from identical inputs, is named; what follows is not. Spec: R30.8."""
    outcome = against(tmp_path, shifted(first))
    assert (outcome.verdict, outcome.exit_code()) == ("diverged", 1)
    assert place(outcome, "first") == place(outcome, "cause") == (0, phase, name, "value")
    roots = [item.root for item in outcome.divergences if item.record.step == 0]
    assert roots == [True] + [False] * (8 - first)


def test_a_second_fault_is_a_root_of_its_own(tmp_path: Path) -> None:
    """What differs although its inputs are identical is a root again. Spec: R30.8."""
    outcome = against(tmp_path, lambda rows: shifted(13, 14)(list(shifted(3, 4)(rows))))  # type: ignore[arg-type]
    roots = [item.record for item in outcome.divergences if item.root]
    assert [(record.step, record.name) for record in roots] == [(0, "fc"), (1, "head")]


def test_a_missing_record_does_not_hide_the_cause(tmp_path: Path) -> None:
    """A record that one side lacks diverges, and so does one that it has more. Spec: R30.9."""
    outcome = against(tmp_path, lambda rows: rows[:4] + rows[5:])
    assert place(outcome, "first") == (0, "forward", "head", "missing")
    outcome = compare(write(tmp_path / "c", lambda rows: rows[:4] + rows[5:]), tmp_path / "a")
    assert place(outcome, "first") == (0, "forward", "head", "extra")
    assert len(outcome.divergences) == 1


def test_another_order_diverges(tmp_path: Path) -> None:
    """Records in another order are named, and only those that moved. Spec: R30.9."""
    outcome = against(tmp_path, lambda rows: [*rows[:2], rows[3], rows[4], rows[2], *rows[5:]])
    assert [item.fault for item in outcome.divergences] == ["reordered"]
    assert place(outcome, "first") == (0, "forward", "fc", "reordered")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda t: t.reshape(4, 10), "shape"),
        (lambda t: t.float(), "dtype"),
        (lambda t: t / 0, "not finite"),
        (lambda t: t * math.nan, "not finite"),
        (lambda t: torch.where(t == t[7], torch.nextafter(t, t + 1), t), "value"),
        (lambda t: -t, "value"),
    ],
)
def test_a_tensor_that_is_another_diverges(
    tmp_path: Path, change: Callable[[torch.Tensor], torch.Tensor], fault: str
) -> None:
    """Shape, dtype, values that are not finite, one ulp, a sign: each diverges. Spec: R30.9."""
    outcome = against(
        tmp_path, lambda rows: [*rows[:5], (rows[5][0], change(rows[5][1])), *rows[6:]]
    )
    assert place(outcome, "first") == (0, "forward", "head", fault)
    assert outcome.verdict == "diverged"


def test_nan_on_both_sides_diverges(tmp_path: Path) -> None:
    """Values that are not finite are never identical, even with the same bits. Spec: R30.9."""

    def broken(rows: Rows) -> Rows:
        return [*rows[:5], (rows[5][0], rows[5][1] * math.nan), *rows[6:]]

    outcome = compare(write(tmp_path / "a", broken), write(tmp_path / "b", broken))
    assert [item.fault for item in outcome.divergences] == ["not finite"]


def test_a_value_that_differs_diverges(tmp_path: Path) -> None:
    """A learning rate that differs diverges; so does a gradient that is None. Spec: R30.9."""
    rate = Record(1, "step", 0, "learning rate", "optimizer0", part="group0", value=0.1)
    a = write(tmp_path / "a", extra=[rate])
    b = write(tmp_path / "b", extra=[replace(rate, value=0.01)])
    assert place(compare(a, b), "first") == (1, "step", "optimizer0", "value")
    outcome = against(tmp_path, lambda rows: [*rows[:7], (rows[7][0], None), *rows[8:]])
    assert place(outcome, "first") == (0, "backward", "fc.weight", "value")


def test_configuration_is_noted(tmp_path: Path) -> None:
    """Configuration that differs is a note and no divergence. Spec: R30.9."""
    note = Record(0, "init", 0, "configuration", "fc", part="type", value="Linear")
    a = write(tmp_path / "a", extra=[note])
    b = write(tmp_path / "b", extra=[replace(note, value="Dense")])
    outcome = compare(a, b)
    assert outcome.verdict == "identical"
    assert outcome.notes == [
        (
            "before step 0, replica 0, configuration fc type: "
            "'Linear' in the reference, 'Dense' in the port"
        )
    ]


def test_what_was_not_observed_is_listed(tmp_path: Path) -> None:
    """A layer that one side did not see is listed with its inputs and outputs. Spec: R30.9."""
    blind = Record(0, "forward", 0, "activation", "head", unobserved="it was run by forward")
    a = write(tmp_path / "a")
    b = write(tmp_path / "b", lambda rows: rows[:4] + rows[6:], extra=[blind])
    for outcome in (compare(a, b), compare(b, a)):
        assert outcome.verdict == "identical"
        assert outcome.unobserved == [
            "step 0, forward, replica 0, activation head: it was run by forward"
        ]


def test_names_are_mapped(tmp_path: Path) -> None:
    """A layer with another name is found by a mapping, with its parameters. Spec: R30.9."""
    a = write(tmp_path / "a")
    b = write(
        tmp_path / "b",
        lambda rows: [(replace(r, name=r.name.replace("fc", "linear1")), t) for r, t in rows],
    )
    assert compare(a, b).verdict == "diverged"
    assert compare(a, b, names={"fc": "linear1"}).verdict == "identical"
    assert compare(b, a, names={"linear1": "fc"}).verdict == "identical"


def test_an_envelope_makes_differences_equivalent(tmp_path: Path) -> None:
    """A difference inside the envelope is noise; one outside diverges. Spec: R30.9."""

    class Envelope:
        """Knows one limit."""

        def __init__(self, limit: float) -> None:
            """Keep it."""
            self.limit = limit

        def holds(self, record: Record, distance: Distance) -> bool:
            """Tell whether a difference is below it."""
            return record.tensor is not None and distance.relative < self.limit

    a, b = write(tmp_path / "a"), write(tmp_path / "b", shifted(5))
    outcome = compare(a, b, envelope=Envelope(0.1))
    assert (outcome.verdict, outcome.first) == ("equivalent", None)
    assert (outcome.exit_code(), outcome.exit_code(strict=True)) == (0, 1)
    assert compare(a, b, envelope=Envelope(1e-9)).verdict == "diverged"


def test_a_trace_without_an_end_is_incomparable(tmp_path: Path) -> None:
    """A trace that was cut off is never identical; nor is one without a step. Spec: R30.9."""
    outcome = compare(write(tmp_path / "a"), write(tmp_path / "b", end=False))
    assert (outcome.verdict, outcome.exit_code()) == ("incomparable", 2)
    assert outcome.reason == "The trace of the port has no end: its program was killed."
    empty = compare(tmp_path / "a", write(tmp_path / "c", lambda rows: rows[:1]))
    assert empty.reason == "There is nothing to compare: 2 and 0 steps."
    cut = compare(tmp_path / "a", write(tmp_path / "d", lambda rows: rows[:6], end=False))
    assert (cut.verdict, place(cut, "first")[3]) == ("diverged", "missing")


def test_a_failure_on_one_side_diverges(tmp_path: Path) -> None:
    """An exception is a divergence with its message. Spec: R30.9."""
    failure = Record(1, "step", 0, "failure", "exception", value="no loss today")
    outcome = compare(write(tmp_path / "a"), write(tmp_path / "b", extra=[failure]))
    assert [item.fault for item in outcome.divergences] == ["failure"]
    with pytest.raises(TraceError):
        compare(tmp_path, tmp_path)
    with pytest.raises(ValueError, match=r"^compare: expected rule bitwise or float32, got ulp$"):
        compare(tmp_path / "a", tmp_path / "b", rule="ulp")  # type: ignore[arg-type]


DIFFERENCES: dict[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "dense": lambda x, g: x + 1e-6 * torch.randn(x.shape, generator=g, dtype=x.dtype),
    "scaled": lambda x, _: x * (1 + 1e-5),
    "a constant": lambda x, _: x + 1e-4,
    "a column": lambda x, _: torch.cat([x[:, :1] + 1e-3, x[:, 1:]], 1),
    "a row": lambda x, _: torch.cat([x[:1] * 1.001, x[1:]]),
    "one value": lambda x, _: x + 1e-3 * (torch.arange(x.numel()) == 5).reshape(x.shape),
    "transposed": lambda x, _: x.t().reshape(x.shape),
    "float32": lambda x, _: x.float().double(),
}


@pytest.mark.parametrize("shape", [(3, 5), (64, 128), (700, 512), (100, 310)])
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_estimates_hold(difference: str, shape: tuple[int, int]) -> None:
    """Real differences are within twice the interval, up to 31 values exact. Spec: R30.7."""
    generator = torch.Generator().manual_seed(11)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    y = DIFFERENCES[difference](x, generator)
    a, b = observe(x)[0], observe(y)[0]
    truth = measure(a, b, x.numpy(), y.numpy())
    guess = estimate(a, b)
    assert guess is not None
    assert math.isclose(truth.norm, float(torch.linalg.vector_norm(x - y)), rel_tol=1e-9)
    if x.numel() <= 31:
        assert guess.exact
        assert math.isclose(guess.norm, truth.norm, rel_tol=1e-9)
    else:
        spread = math.log(guess.high / guess.norm), math.log(guess.low / guess.norm)
        assert 2 * spread[1] < math.log(truth.norm / guess.norm) < 2 * spread[0]
        assert math.isclose(guess.ulp / guess.norm, truth.ulp / truth.norm, rel_tol=1e-9)


def test_the_interval_has_its_share() -> None:
    """Of 400 dense differences 95 % are within the interval, give or take 4 %. Spec: R30.7."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(2000, generator=generator, dtype=torch.float64)
    a, inside = observe(x)[0], 0
    for _ in range(400):
        y = x + torch.randn(2000, generator=generator, dtype=torch.float64)
        guess, truth = estimate(a, observe(y)[0]), float(torch.linalg.vector_norm(x - y))
        assert guess is not None
        inside += guess.low <= truth <= guess.high
    assert 0.91 < inside / 400 < 0.99


@pytest.mark.parametrize("size", [7, 300, 40_000, 400_000])
def test_rule_float32_is_decided_from_projections(size: int) -> None:
    """What is within the rule passes; what is far beyond fails, all or one. Spec: R30.7."""
    generator = torch.Generator().manual_seed(2)
    x = 0.1 * torch.randn(size, generator=generator, dtype=torch.float64)
    ulp = torch.from_numpy(np.spacing(x.abs().clamp(x.abs().max() / 1024).float().numpy())).double()
    signs = torch.randint(0, 2, (size,), generator=generator) * 2 - 1
    a = observe(x)[0]
    for share, same in ((1e-9, True), (0.9 / 64, True), (1.0, False)):
        y = x + share * ulp * signs
        assert within_float32(a, observe(y)[0]) is same
        assert same_float32(x.numpy(), y.numpy()) is same
    one = x.clone()
    one[size // 2] += 64 * ulp.max()
    assert not within_float32(a, observe(one)[0])


def test_whole_tensors_decide_where_both_have_them(tmp_path: Path) -> None:
    """One value a little off passes by projections, and not by whole tensors. Spec: R30.7."""

    def off(rows: Rows) -> Rows:
        tensor = rows[5][1].clone()
        tensor[3] += 2 * float(np.spacing(np.float32(tensor[3]))) / 64
        return [*rows[:5], (rows[5][0], tensor), *rows[6:]]

    outcome = compare(write(tmp_path / "a"), write(tmp_path / "b", off), rule="float32")
    assert (outcome.verdict, outcome.bit_equal) == ("identical", 16)
    whole = [write(tmp_path / "c", full="*"), write(tmp_path / "d", off, full="*")]
    outcome = compare(*whole, rule="float32")
    assert place(outcome, "first") == (0, "forward", "head", "value")
    assert outcome.first is not None
    assert outcome.first.distance is not None
    assert outcome.first.distance.exact


def test_the_command_line(tmp_path: Path) -> None:
    """``bridge diff`` keeps to 80 columns, writes JSON, and has exit codes. Spec: R30.9."""
    a, b = str(write(tmp_path / "a")), str(write(tmp_path / "b", shifted(4)))
    runner = CliRunner()
    assert runner.invoke(app, ["diff", a, a]).exit_code == 0
    result = runner.invoke(app, ["diff", a, b, "--json", str(tmp_path / "out" / "diff.json")])
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "diverged: First divergence: step 0, forward, replica 0, input head: value."
    assert max(map(len, lines)) <= 80
    report = json.loads((tmp_path / "out" / "diff.json").read_text(encoding="utf-8"))
    assert report["cause"]["where"] == "step 0, forward, replica 0, input head"
    assert len(report["divergences"]) == 13
    assert runner.invoke(app, ["diff", a, str(tmp_path)]).exit_code == 2
    assert runner.invoke(app, ["diff", a, b, "--name", "fc"]).exit_code == 2
    assert runner.invoke(app, ["diff", a, b, "--rule", "float32"]).exit_code == 1
