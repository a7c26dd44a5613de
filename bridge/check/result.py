"""What a check found."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from bridge.trace.outcome import Outcome, Verdict

Severity = Literal["note", "error"]


@dataclass(frozen=True)
class Finding:
    """Something that the preflight found to differ; an error keeps the training from starting."""

    severity: Severity
    what: str
    message: str


@dataclass(frozen=True)
class Values:
    """The largest difference at the first divergence, from whole tensors of a second run."""

    index: tuple[int, ...]
    reference: float
    port: float
    ulps: float


@dataclass(frozen=True)
class Result:
    """The verdict of a check, and what it rests on.

    Attributes:
        outcome: of the comparison of the two traces; None where the preflight, or a constructor,
            ended the check.
        names: what was matched under other names, reference to port.
        diagnosis: sentences on what the fault looks like.
        details: exceptions with their stacks.

    Spec: R34.3, R34.4
    """

    verdict: Verdict
    reason: str
    findings: list[Finding]
    names: dict[str, str]
    outcome: Outcome | None = None
    values: Values | None = None
    diagnosis: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    def exit_code(self, *, strict: bool = False) -> int:
        """Return 0 for identical, 0 or if strict 1 for equivalent, 1 for diverged, else 2."""
        codes = {"identical": 0, "equivalent": int(strict), "diverged": 1, "incomparable": 2}
        return codes[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """Return what JSON has of it."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "findings": [asdict(finding) for finding in self.findings],
            "names": self.names,
            "values": None if self.values is None else asdict(self.values),
            "diagnosis": self.diagnosis,
            "details": self.details,
            "outcome": None if self.outcome is None else self.outcome.to_json(),
        }
