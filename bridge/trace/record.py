"""The records of a trace."""

import base64
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bridge.trace.summary import Summary

PHASES = ("init", "scatter", "forward", "loss", "backward", "reduce", "clip", "step", "resync")
KINDS = (
    "configuration",
    "input",
    "activation",
    "loss",
    "gradient",
    "parameter",
    "buffer",
    "optimizer state",
    "learning rate",
    "random state",
    "failure",
)

Key = tuple[int, str, int, str, str, int, str]


@dataclass(frozen=True)
class Contents:
    """What a record says of a tensor: dtype, shape, digest of its bytes, and summary.

    ``file`` is where the whole tensor is, below the folder of the trace, if it was asked for.
    """

    dtype: str
    shape: tuple[int, ...]
    digest: str
    summary: Summary
    file: str | None = None


@dataclass(frozen=True)
class Record:
    """One thing that was observed, or that could not be: then ``unobserved`` says why.

    Spec: R30.1
    """

    step: int
    phase: str
    replica: int
    kind: str
    name: str
    call: int = 0
    part: str = ""
    order: int = 0
    at: str | None = None
    tensor: Contents | None = None
    value: Any = None
    unobserved: str | None = None

    @property
    def key(self) -> Key:
        """What is unique in a trace, and the same in the traces of equal runs."""
        return self.step, self.phase, self.replica, self.kind, self.name, self.call, self.part

    def to_json(self) -> dict[str, Any]:
        """Return the line of the record, without what it does not say."""
        line: dict[str, Any] = {
            "order": self.order,
            "step": self.step,
            "phase": self.phase,
            "replica": self.replica,
            "kind": self.kind,
            "name": self.name,
            "call": self.call,
            "part": self.part,
        }
        if self.at is not None:
            line["at"] = self.at
        if self.unobserved is not None:
            line["unobserved"] = self.unobserved
        elif self.tensor is None:
            line["value"] = _text(self.value)
        else:
            line |= _of_tensor(self.tensor)
        return line


def from_json(line: Mapping[str, Any]) -> Record:
    """Read the line of a record."""
    keys = ("step", "phase", "replica", "kind", "name", "call", "part", "order")
    record = Record(
        **{key: line[key] for key in keys},
        at=line.get("at"),
        value=line.get("value"),
        unobserved=line.get("unobserved"),
    )
    return replace(record, tensor=_to_tensor(line)) if "digest" in line else record


def _of_tensor(tensor: Contents) -> dict[str, Any]:
    """Write what a record says of a tensor; numbers that JSON does not have come as text."""
    summary = tensor.summary
    line = {
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "digest": tensor.digest,
        "norm": _text(summary.norm),
        "min": _text(summary.minimum),
        "max": _text(summary.maximum),
        "nan": summary.nan,
        "inf": summary.infinite,
    }
    if summary.projections is not None:
        packed = struct.pack(f"<{len(summary.projections)}d", *summary.projections)
        line["projections"] = base64.b64encode(packed).decode()
    if tensor.file is not None:
        line["file"] = tensor.file
    return line


def _to_tensor(line: Mapping[str, Any]) -> Contents:
    """Read what a record says of a tensor."""
    packed = base64.b64decode(line.get("projections", ""))
    summary = Summary(
        float(line["norm"]),
        float(line["min"]),
        float(line["max"]),
        line["nan"],
        line["inf"],
        struct.unpack(f"<{len(packed) // 8}d", packed) if packed else None,
    )
    return Contents(line["dtype"], tuple(line["shape"]), line["digest"], summary, line.get("file"))


def _text(value: Any) -> Any:  # noqa: ANN401 - what JSON has
    """Write a number that JSON does not have as text."""
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)
