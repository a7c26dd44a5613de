"""The cases of the conformance matrix, out of data files."""

import fnmatch
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KINDS = {
    "layers": "layer",
    "losses": "layer",
    "functions": "function",
    "optimizers": "optimizer",
    "schedulers": "scheduler",
    "initializers": "function",
    "draws": "function",
    "states": "state",
}
"""The kinds of cases, each with what runs it on both sides."""

FOLDER = Path(__file__).parent / "cases"
_FIELDS = {"torch", "torchsharp", "arguments", "inputs", "names", "seed", "options", "variants"}


@dataclass(frozen=True)
class Case:
    """One case: what is called, and with what.

    Attributes:
        kind: one of :data:`KINDS`.
        title: its name in the matrix.
        torch: dotted name below ``torch``, such as ``nn.Linear``.
        torchsharp: TorchSharp's name of it.
        arguments: what goes by name.
        inputs: what goes first: a text describes a tensor (see ``values.draw``).
        names: TorchSharp's names of arguments, where they differ here alone.
        seed: of the generator, before anything is made or drawn.
        options: more, by the kind.
    """

    kind: str
    title: str
    torch: str
    torchsharp: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Any, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    seed: int = 7
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Name the case among all."""
        return f"{self.kind}/{self.title}"

    @property
    def runner(self) -> str:
        """Say what runs it."""
        return KINDS[self.kind]


def load(kinds: tuple[str, ...] = (), only: str | None = None, folder: Path = FOLDER) -> list[Case]:
    """Read the cases, in the order of the files.

    Args:
        kinds: which kinds; none means all.
        only: a pattern of names, such as ``*Conv*``, case-sensitive; None means all.
        folder: where the files are, one ``KIND.json`` per kind.

    Raises:
        ValueError: an unknown kind or field, two cases of one name, or a pattern without a case.

    Spec: R31.1
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        message = f"load: expected a kind of {', '.join(KINDS)}, got {', '.join(unknown)}"
        raise ValueError(message)
    cases = [case for kind in kinds or KINDS for case in _read(kind, folder)]
    names = [case.id for case in cases]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        message = f"load: expected names of their own, got {', '.join(twice)} more than once"
        raise ValueError(message)
    chosen = [case for case in cases if only is None or matches(case.id, only)]
    if not chosen:
        message = f"load: expected a case of the name {only!r}, found none of {len(cases)}"
        raise ValueError(message)
    return chosen


def matches(name: str, pattern: str) -> bool:
    """Tell whether a case's name, or its part behind the kind, has the form of a pattern."""
    return any(fnmatch.fnmatchcase(text, pattern) for text in (name, name.partition("/")[2]))


def _read(kind: str, folder: Path) -> Iterator[Case]:
    """Read one file; each variant of an entry is a case."""
    path = folder / f"{kind}.json"
    for number, entry in enumerate(json.loads(path.read_text(encoding="utf-8"))):
        for variant in entry.get("variants", [{}]):
            odd = sorted({*entry, *variant} - _FIELDS)
            if odd or "torch" not in entry:
                where, got = f"{path.name}[{number}]", odd or sorted(entry)
                message = f"load: expected torch and {sorted(_FIELDS)} in {where}, got {got}"
                raise ValueError(message)
            yield _case(kind, entry, variant)


def _case(kind: str, entry: Mapping[str, Any], variant: Mapping[str, Any]) -> Case:
    """Make a case of an entry and one of its variants, whose fields replace or add to it."""
    merged = {**entry, **variant}
    arguments = {**entry.get("arguments", {}), **variant.get("arguments", {})}
    shown = variant.get("arguments", {}) if "variants" in entry else {}
    parts = [f"{name}={_short(value)}" for name, value in shown.items()]
    parts += [_short(part) for part in variant.get("inputs", ())]
    parts += [f"{name}={_short(value)}" for name, value in variant.get("options", {}).items()]
    return Case(
        kind=kind,
        title=f"{entry['torch']}({', '.join(parts)})" if parts else entry["torch"],
        torch=entry["torch"],
        torchsharp=merged.get("torchsharp", entry["torch"]),
        arguments=arguments,
        inputs=tuple(merged.get("inputs", ())),
        names=merged.get("names", {}),
        seed=merged.get("seed", 7),
        options={**entry.get("options", {}), **variant.get("options", {})},
    )


def _short(value: object) -> str:
    """Write a value in few characters."""
    if isinstance(value, Mapping) and len(value) == 1:
        return _short(next(iter(value.values())))
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return value if isinstance(value, str) else json.dumps(value)
