"""The cases of the conformance matrix: what is in them, and how a row is made of one."""

import json
from pathlib import Path

import pytest
import torch

from bridge.conformance import known as catalogue
from bridge.conformance import reference, values
from bridge.conformance.cases import KINDS, Case, load, matches
from bridge.conformance.run import Row

ROOT = Path(__file__).parents[3]


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    """250 cases or more, of every kind, each with its own name. Spec: R31.1."""
    cases = load()
    assert len(cases) >= 250
    assert {case.kind for case in cases} == set(KINDS)
    assert len({case.id for case in cases}) == len(cases)


@pytest.mark.parametrize(
    ("kinds", "only", "message"),
    [
        (("layer",), None, "load: expected a kind of layers, losses"),
        ((), "nn.NoSuch*", r"load: expected a case of the name 'nn.NoSuch\*', found none of"),
    ],
)
def test_what_selects_nothing_is_refused(
    kinds: tuple[str, ...], only: str | None, message: str
) -> None:
    """An unknown kind and a pattern without a case are refused. Spec: R31.1."""
    with pytest.raises(ValueError, match=message):
        load(kinds, only)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"torch": "add", "input": ["2"]}], r"in functions.json\[0\], got \['input'\]"),
        ([{"inputs": ["2"]}], r"load: expected torch and .* got \['inputs'\]"),
        ([{"torch": "add"}, {"torch": "add"}], "got functions/add more than once"),
    ],
)
def test_a_wrong_entry_is_refused(
    entries: list[dict[str, object]], message: str, tmp_path: Path
) -> None:
    """A field that is unknown or missing, and a name given twice, are refused. Spec: R31.1."""
    (tmp_path / "functions.json").write_text(json.dumps(entries), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load(("functions",), folder=tmp_path)


def test_variants_are_cases_that_inherit(tmp_path: Path) -> None:
    """A variant adds its arguments to those of the entry, and is named by its own. Spec: R31.1."""
    entry = {
        "torch": "nn.Linear",
        "arguments": {"in_features": 2, "out_features": 3},
        "inputs": ["4x2"],
        "variants": [{}, {"arguments": {"bias": False}}],
    }
    (tmp_path / "layers.json").write_text(json.dumps([entry]), encoding="utf-8")
    plain, without = load(("layers",), folder=tmp_path)
    assert (plain.title, without.title) == ("nn.Linear", "nn.Linear(bias=false)")
    assert without.arguments == {"in_features": 2, "out_features": 3, "bias": False}
    assert without.inputs == ("4x2",)


def test_words_describe_tensors() -> None:
    """Shape, dtype, limits and form of a drawn tensor are those of its text. Spec: R31.1."""
    whole = values.draw("7 int64 2:5", 1)
    assert (whole.dtype, whole.shape) == (torch.int64, (7,))
    assert set(whole.tolist()) <= {2, 3, 4}
    assert values.draw("3x4 positive", 1).min() >= 0.5
    assert values.draw("5x6 probability", 1).sum(1).tolist() == pytest.approx([1.0] * 5)
    assert values.draw("scalar", 1).shape == ()
    assert values.draw("2x3", 1).equal(values.draw("2x3", 1))
    with pytest.raises(ValueError, match=r"draw: expected a dtype, LOW:HIGH, or one of .* 'even'"):
        values.draw("2 even", 1)


def test_gradients_are_asked_of_floats_that_are_not_const() -> None:
    """Whole numbers, constants and what is changed in place have no gradient. Spec: R31.2."""
    case = Case("functions", "f", "f", "f", inputs=("2", "2 const", "2 int64 0:3", 0.5))
    assert values.leaves(case, values.inputs(case)) == [0]
    changed = Case("functions", "f_", "f_", "f_", inputs=("2",))
    assert values.leaves(changed, values.inputs(changed)) == []


@pytest.mark.parametrize("kind", ["states", "schedulers", "initializers", "losses"])
def test_every_pytorch_runs_what_is_not_new(kind: str) -> None:
    """No case of these kinds is wrong in itself: each PyTorch runs it. Spec: R31.2."""
    for case in load((kind,)):
        outcome, _, _ = reference.run(case)
        assert outcome.tensors or outcome.texts


def test_known_differences_explain_rows_that_differ() -> None:
    """A hint is for a row that matches and differs; one for no row is stale. Spec: R31.6."""
    hint = catalogue.Known(("layers/nn.A*",), "hint", "remedy")
    other = catalogue.Known(("layers/nn.B",), "other", "")
    differs, same = Row("layers", "nn.Aa", "differs"), Row("layers", "nn.B", "same bits")
    assert catalogue.find([hint, other], differs) is hint
    assert catalogue.find([hint, other], same) is None
    assert catalogue.stale([hint, other], [differs, same]) == [other]


def test_every_pattern_of_the_catalogue_names_a_row() -> None:
    """No hint is for a name that no case has. Spec: R31.6."""
    rows = {case.id for case in load()}
    rows |= {f"{case.kind}/{case.torch}: arguments and defaults" for case in load()}
    patterns = [pattern for entry in catalogue.load() for pattern in entry.rows]
    assert [one for one in patterns if not any(matches(row, one) for row in rows)] == []


def test_the_written_matrix_has_every_case() -> None:
    """docs/CONFORMANCE.md was made of the cases as they are. Spec: R31.7."""
    page = (ROOT / "docs" / "CONFORMANCE.md").read_text(encoding="utf-8")
    assert [case.id for case in load() if f"`{case.title}`" not in page] == []
