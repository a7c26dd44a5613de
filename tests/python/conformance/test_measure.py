"""How what both sides gave compares."""

import inspect

import pytest
import torch

from bridge.conformance.measure import Aspect, compare, worst
from bridge.conformance.outcome import Outcome
from bridge.conformance.signatures import compare as compare_signatures

ONE = 1.0
EPS = 2.0**-23


def one(python: torch.Tensor, csharp: torch.Tensor) -> Aspect:
    """Compare one tensor."""
    (aspect,) = compare(Outcome({"t": python}), Outcome({"t": csharp}))
    return aspect


@pytest.mark.parametrize(
    ("python", "csharp", "verdict", "ulp"),
    [
        ([ONE, 2.0], [ONE, 2.0], "same bits", 0),
        ([ONE, 2.0], [ONE + EPS, 2.0], "within ulps", 1),
        ([ONE, 2.0], [ONE + 256 * EPS, 2.0], "within ulps", 256),
        ([ONE, 2.0], [ONE + 257 * EPS, 2.0], "differs", 257),
        ([0.0], [-0.0], "within ulps", 0),
        ([float("nan"), ONE], [float("nan"), ONE], "same bits", 0),
        ([float("nan")], [ONE], "differs", float("inf")),
        ([float("inf")], [float("-inf")], "differs", float("inf")),
        # Beside 1024 a value near 1 is measured at 1, not below.
        ([1024.0, 0.0], [1024.0, 2 * EPS], "within ulps", 2),
    ],
)
def test_floats(python: list[float], csharp: list[float], verdict: str, ulp: float) -> None:
    """Bits, then ulps at the value's size, then a difference. Spec: R31.3."""
    aspect = one(torch.tensor(python), torch.tensor(csharp))
    assert (aspect.verdict, aspect.ulp) == (verdict, ulp)


def test_ulps_are_those_of_the_dtype() -> None:
    """float64 has a finer spacing. Spec: R31.3."""
    a = torch.ones(1, dtype=torch.float64)
    assert one(a, a + 2.0**-52).ulp == 1
    assert one(a.half(), (a + 2.0**-10).half()).ulp == 1


def test_both_values_are_told_with_their_place() -> None:
    """A difference names the worst place, and what each side has there. Spec: R31.3."""
    aspect = one(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2], [3, 5]]))
    assert (aspect.verdict, aspect.python, aspect.csharp) == ("differs", "[1, 1] 4", "[1, 1] 5")


@pytest.mark.parametrize(
    ("csharp", "words"),
    [
        (torch.ones(3), "float32[3]"),
        (torch.ones(2, dtype=torch.float64), "float64[2]"),
    ],
)
def test_another_form_differs(csharp: torch.Tensor, words: str) -> None:
    """Another shape or dtype differs, whatever the values. Spec: R31.3."""
    aspect = one(torch.ones(2), csharp)
    assert (aspect.verdict, aspect.python, aspect.csharp) == ("differs", "float32[2]", words)


def test_what_one_side_lacks_differs() -> None:
    """A tensor or a text of one side alone differs. Spec: R31.3."""
    ours = Outcome({"t": torch.ones(2)}, {"names": "a"})
    assert [a.verdict for a in compare(ours, Outcome())] == ["differs", "differs"]
    assert [a.verdict for a in compare(Outcome(), ours)] == ["differs", "differs"]


def test_the_worst_counts() -> None:
    """A row is as good as its worst part; of nothing compared it has not run. Spec: R31.3."""
    assert worst(["same bits", "differs", "within ulps"]) == "differs"
    assert worst([]) == "not run"


def parameter(name: str, *default: object) -> dict[str, object]:
    """Describe a parameter as C# does."""
    value = default[0] if default else None
    return {"name": name, "optional": bool(default), "default": value}


def test_arguments_and_defaults() -> None:
    """Names match but for case; missing ones and other defaults are told. Spec: R31.4."""
    empty = inspect.Parameter.empty
    python = {"in_features": empty, "bias": True, "betas": (0.9, 0.999), "eps": 1e-6, "gone": 1}
    overload = [
        parameter("inputSize"),
        parameter("hasBias", True),  # noqa: FBT003 - a default
        parameter("beta1", 0.9),
        parameter("beta2", 0.999),
        parameter("eps", 1e-8),
    ]
    names = {"in_features": ["inputSize"], "bias": ["hasBias"], "betas": ["beta1+beta2"]}
    aspects = compare_signatures(python, [overload], names, [])
    assert [(a.name, a.verdict, a.python, a.csharp) for a in aspects] == [
        ("eps", "differs", "1e-06", "1e-08"),
        ("gone", "missing", "1", "no such argument"),
    ]
    assert compare_signatures({"gone": 1}, [overload], {}, ["gone"]) == []


def test_null_and_none_state_no_default() -> None:
    """What either side leaves open does not differ; what C# asks for does. Spec: R31.4."""
    assert compare_signatures({"stride": 1}, [[parameter("stride", None)]], {}, []) == []
    assert compare_signatures({"stride": None}, [[parameter("stride", 2)]], {}, []) == []
    (aspect,) = compare_signatures({"dim": 1}, [[parameter("dim")]], {}, [])
    assert aspect.csharp == "no default"
