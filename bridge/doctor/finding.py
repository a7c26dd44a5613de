"""One thing that the doctor looked at."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "missing"]


@dataclass(frozen=True)
class Finding:
    """One thing that the doctor looked at.

    Attributes:
        name: what it is.
        state: ``ok``, ``note`` for what works but should be known, ``missing`` for what is needed.
        value: what was found.
        remedy: how to mend it, a command where there is one.
    """

    name: str
    state: State
    value: str
    remedy: str = ""
