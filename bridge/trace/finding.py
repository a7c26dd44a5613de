"""What the diagnosis says of a fault."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bridge.trace.outcome import Divergence, where

WEAK = 0.5
"""The confidence of a guess, which is not told beside what is surer."""


@dataclass(frozen=True)
class Finding:
    """What a fault looks like.

    Attributes:
        name: of the signature, such as ``"gradients never cleared"``.
        sentence: what it looks like, in words.
        where: the record that shows it.
        confidence: from 0 to 1: how much of what differs it explains, at most 0.5 for a guess.
        numbers: what the sentence rests on.
        reference: file and line of the reference, where known.
        port: those of the port.

    Spec: R35.4
    """

    name: str
    sentence: str
    where: str
    confidence: float
    numbers: Mapping[str, float] = field(default_factory=dict)
    reference: str | None = None
    port: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what JSON has of it."""
        return asdict(self)


def finding(
    name: str, sentence: str, at: Divergence, confidence: float, **numbers: float
) -> Finding:
    """Make a finding at a divergence.

    Spec: R35.4
    """
    sides = [None if side is None else side.at for side in (at.reference, at.port)]
    bounded = round(min(max(confidence, 0.0), 1.0), 3)
    return Finding(name, sentence, where(at.record), bounded, numbers, *sides)
