"""Every requirement has tests in the languages that it is for, and every citation a requirement."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REQUIREMENT = re.compile(r"^- \*\*(R\d+\.\d+)\*\*", re.MULTILINE)
CITATION = re.compile(r"Spec: (R\d+\.\d+(?:, R\d+\.\d+)*)")
TESTS = {
    "Python": ("tests/python", "*.py"),
    "C#": ("csharp/BridgeSharp.Tests", "*.cs"),
}
SOURCES = (*TESTS.values(), ("bridge", "*.py"), ("csharp", "*.cs"))
PYTHON_ONLY = {
    "R13": "the comparison is Python's",
    "R15": "a parity run is Python's; it trains both",
    "R16": "the host is how Python reaches C#",
    "R31": "the comparison is Python's; the host runs its cases in C#",
    "R34": "the check is Python's; it trains both",
    **dict.fromkeys(("R30.7", "R30.8", "R30.9"), "the comparison of traces is Python's"),
    "R35": "the comparison of traces is Python's; a trace of either language is read",
    "R30.10": "Python records both and compares",
}


def requirements() -> list[str]:
    """List the numbers of the specification, in its order."""
    return REQUIREMENT.findall((ROOT / "tests/spec/SPEC.md").read_text(encoding="utf-8"))


def files(folder: str, pattern: str) -> Iterable[Path]:
    """List the sources below a folder, without what was built there."""
    for path in sorted((ROOT / folder).rglob(pattern)):
        if not {"artifacts", "bin", "obj"} & set(path.parts):
            yield path


def citations(folder: str, pattern: str) -> dict[str, Path]:
    """List the numbers that sources cite, each with one file that does."""
    cited = {}
    for path in files(folder, pattern):
        for numbers in CITATION.findall(path.read_text(encoding="utf-8")):
            cited.update(dict.fromkeys(numbers.split(", "), path.relative_to(ROOT)))
    return cited


def vectors() -> list[tuple[str, list[str]]]:
    """List the cases of all vectors, by file and name, with the numbers that they cite."""
    return [
        (f"{path.name}: {case['name']}", case["spec"])
        for path in sorted((ROOT / "tests/spec/vectors").glob("*.json"))
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]
    ]


def test_requirements_have_numbers_of_their_own() -> None:
    """No number stands for two requirements."""
    numbers = requirements()
    assert numbers
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("language", TESTS)
def test_every_requirement_is_tested(language: str) -> None:
    """Each requirement is cited by a test of each language that it is for."""
    cited = citations(*TESTS[language])
    needed = [
        number
        for number in requirements()
        if language == "Python" or not PYTHON_ONLY.keys() & {number, number.split(".")[0]}
    ]
    assert [number for number in needed if number not in cited] == []


def test_every_citation_exists() -> None:
    """Code, tests and vectors cite nothing that the specification does not have."""
    known = set(requirements())
    unknown = {
        number: str(path)
        for folder, pattern in SOURCES
        for number, path in citations(folder, pattern).items()
        if number not in known
    }
    unknown |= {number: case for case, numbers in vectors() for number in set(numbers) - known}
    assert unknown == {}


def test_every_vector_has_a_name_of_its_own_and_cites() -> None:
    """Cases are told apart by file and name, and each says what it covers."""
    names = [name for name, _ in vectors()]
    assert len(set(names)) == len(names)
    assert [name for name, numbers in vectors() if not numbers] == []
