"""Runs the cases on both sides, one after the other, and makes the rows of the matrix."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from bridge.conformance import reference, signatures
from bridge.conformance.cases import Case
from bridge.conformance.measure import Aspect, Verdict, compare, worst
from bridge.conformance.outcome import Outcome
from bridge.conformance.values import described
from bridge.dotnet import DotnetError, Host, WorkerDied
from bridge.dotnet.session import Session
from bridge.dotnet.tensors import Layout

_WORKER = re.compile(r"dotnet worker \(pid \d+\) ")
_WORDS: Mapping[str, Verdict] = {
    "System.MissingMethodException": "missing",
    "System.NotSupportedException": "not run",
}
SIGNED = ("layers", "losses", "functions", "optimizers", "schedulers", "initializers")
"""The kinds whose arguments and defaults are compared as well."""

_DATA = json.loads((Path(__file__).parent / "names.json").read_text(encoding="utf-8"))
NAMES: Mapping[str, list[str]] = _DATA["names"]
IGNORED: Mapping[str, str] = _DATA["ignored"]


@dataclass(frozen=True)
class Row:
    """One row of the matrix.

    Attributes:
        kind: of the case.
        title: its name.
        verdict: the worst of its aspects.
        ulp: the largest difference of those that differ by ulps.
        aspects: what was compared.
        message: why it is missing, throws, or did not run.
    """

    kind: str
    title: str
    verdict: Verdict
    ulp: float | None = None
    aspects: list[Aspect] = field(default_factory=list)
    message: str = ""

    @property
    def id(self) -> str:
        """Name the row among all."""
        return f"{self.kind}/{self.title}"


class Sides:
    """PyTorch here, and TorchSharp in a host, which is started anew when a case has ended it.

    Args:
        start: starts a host.
    """

    def __init__(self, start: Callable[[], Host]) -> None:
        """Start without a host."""
        self._start = start
        self._host: Host | None = None

    @property
    def host(self) -> Host:
        """The host, started when it is first needed."""
        if self._host is None:
            self._host = self._start()
            self._host.call("family", threads=torch.get_num_threads())
        return self._host

    def close(self) -> None:
        """End the host."""
        if self._host is not None:
            self._host.close()
            self._host = None

    def rows(self, cases: Iterable[Case]) -> Iterator[Row]:
        """Run cases; the first of a name is followed by its arguments and defaults.

        Spec: R31.2, R31.4, R31.5
        """
        signed: set[tuple[str, str]] = set()
        for case in cases:
            yield self.row(case)
            if case.kind in SIGNED and (case.kind, case.torch) not in signed:
                signed.add((case.kind, case.torch))
                row = self.signature(case)
                if row is not None:
                    yield row

    def row(self, case: Case) -> Row:
        """Run one case on both sides and compare; whatever goes wrong is the row's message."""
        try:
            python, inputs, more = reference.run(case)
        except Exception as error:  # noqa: BLE001 - whatever PyTorch raises, the row says it
            text = str(error).strip().partition("\n")[0]
            message = f"PyTorch {torch.__version__}: {type(error).__name__}: {text}"
            return Row(case.kind, case.title, "not run", message=message)
        try:
            csharp = self._csharp(case, inputs, more)
        except DotnetError as error:
            failure, message = self._failure(error)
            return Row(case.kind, case.title, failure, message=message)
        aspects = compare(python, csharp)
        ulps = [a.ulp for a in aspects if a.verdict == "within ulps" and a.ulp is not None]
        verdict = worst([aspect.verdict for aspect in aspects])
        return Row(case.kind, case.title, verdict, max(ulps, default=None), aspects)

    def signature(self, case: Case) -> Row | None:
        """Compare the arguments and defaults of what a case calls; None where Python knows none."""
        try:
            own = signatures.parameters(case.torch)
        except AttributeError:
            return None
        if own is None:
            return None
        title = f"{case.torch}: arguments and defaults"
        names = _names(case)
        try:
            reply = self.host.call("conformance.signature", name=case.torchsharp)
        except DotnetError as error:
            verdict, message = self._failure(error)
            return Row(case.kind, title, verdict, message=message)
        aspects = signatures.compare(own, reply["overloads"], names, list(IGNORED))
        verdicts: list[Verdict] = [aspect.verdict for aspect in aspects]
        return Row(case.kind, title, worst(["same bits", *verdicts]), None, aspects)

    def _csharp(self, case: Case, inputs: list[Any], more: dict[str, Any]) -> Outcome:
        """Run a case in TorchSharp."""
        layout = Layout("conformance")
        request = {
            "runner": case.runner,
            "name": case.torchsharp,
            "seed": case.seed,
            "inputs": layout.tree(inputs),
            "arguments": described(layout, case.arguments, _names(case)),
            "more": layout.tree(more),
        }
        host = self.host
        with host.segment(layout.size) as memory:
            layout.write(memory)
            reply = host.call("conformance.run", **request)
        session = Session(host, reply)
        try:
            return Outcome(dict(session.state_dict()), reply["texts"])
        finally:
            session.close()

    def _failure(self, error: DotnetError) -> tuple[Verdict, str]:
        """Turn what C# threw into a verdict and a message."""
        text = error.message.strip().partition("\n")[0]
        if isinstance(error, WorkerDied):
            self.close()
            return "throws", f"ends the process: {_WORKER.sub('it ', text)}"
        if error.type in _WORDS:
            return _WORDS[error.type], text
        return "throws", f"{error.type.rpartition('.')[2] or 'worker'}: {text}"


def _names(case: Case) -> dict[str, list[str]]:
    """List what TorchSharp calls arguments; a case may know better."""
    return {**NAMES, **{name: [alias] for name, alias in case.names.items()}}
