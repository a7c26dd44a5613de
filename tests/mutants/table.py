"""The table of ports: tasks, healthy ports and mutants."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings this
    import tomli as tomllib

TABLE: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Task:
    """A loop that both languages have.

    Attributes:
        loop: the name of its class.
        reference: the arguments of the Python class.
        port: the arguments of the C# class, with ``{fault}`` where the fault goes.
        data: the kind of its batches.
        init: ``copy`` the reference's weights, or draw the port's own from the same ``seed``.
    """

    loop: str
    reference: list[str | float]
    port: list[str | float]
    data: str
    init: str = "copy"

    def arguments(self, fault: str) -> list[str | float]:
        """Return the arguments of the C# class."""
        return [fault if argument == "{fault}" else argument for argument in self.port]


@dataclass(frozen=True)
class Mutant:
    """A port with one fault; ``mutants.toml`` says what each attribute means."""

    id: str
    task: str
    fault: str
    kind: str
    step: int
    phase: str
    place: str
    diagnosis: str
    wrong: str
    throws: bool = False
    earliest: int | None = None


TASKS = {name: Task(**task) for name, task in TABLE["tasks"].items()}
HEALTHY = [(name, "") for name in TASKS] + [(row["task"], row["fault"]) for row in TABLE["healthy"]]
MUTANTS = [Mutant(**row) for row in TABLE["mutants"]]
