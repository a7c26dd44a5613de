"""What a check is told, in ``port.toml`` or as a mapping of the same form."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_SIDES = {
    "reference": {"module", "args", "command"},
    "port": {"assembly", "project", "type", "args", "command"},
}
_TYPES: dict[str, tuple[type, ...]] = {
    "replicas": (int,),
    "steps": (int,),
    "threads": (int,),
    "seed": (int,),
    "dtype": (str,),
    "init": (str,),
    "mode": (str,),
    "names": (dict,),
    "optimizer": (dict,),
    "scheduler": (dict,),
    "loss": (str, dict),
    "data": (str, dict),
}
_CHOICES = {
    "dtype": ("float32", "float64"),
    "init": ("copy", "seed"),
    "mode": ("train", "forward"),
}
_POSITIVE = ("replicas", "steps", "threads")


class ConfigError(ValueError):
    """A key of the configuration that is missing, unknown or not what it should be."""

    def __init__(self, key: str, expected: str, got: object) -> None:
        """Name the key."""
        super().__init__(f"port.toml: {key}: expected {expected}, got {got!r}")
        self.key = key


@dataclass(frozen=True)
class Config:
    """A check, with every path absolute.

    Attributes:
        folder: what paths are relative to; the reference's module is found from here.
        reference: ``module`` and ``args``, or ``command``.
        port: ``assembly`` or ``project``, ``type`` and ``args``, or ``command``.
        optimizer: its ``name`` and options.
        scheduler: its ``name`` and options, or None.
        loss: its name, or ``reference`` (``"module:function"``) and ``port`` (``"Type.Method"``).
        data: ``"module:function"``, a path of an ``.npz``, or what to generate.
        names: names of the reference, and what the port calls them.
    """

    folder: Path
    reference: Mapping[str, Any]
    port: Mapping[str, Any]
    optimizer: Mapping[str, Any] = field(default_factory=lambda: {"name": "sgd", "lr": 0.01})
    scheduler: Mapping[str, Any] | None = None
    loss: str | Mapping[str, str] = "cross_entropy"
    data: str | Mapping[str, Any] = ""
    names: Mapping[str, str] = field(default_factory=dict)
    replicas: int = 1
    steps: int = 20
    threads: int = 1
    seed: int = 0
    dtype: str = "float32"
    init: str = "copy"
    mode: str = "train"

    @property
    def commands(self) -> bool:
        """Whether both sides are programs that record a trace."""
        return "command" in self.reference


def load(source: str | Path | Mapping[str, Any], folder: str | Path | None = None) -> Config:
    """Read and check a configuration.

    Args:
        source: path of a ``port.toml``, or a mapping of its form.
        folder: what paths in a mapping are relative to; else the current folder.

    Raises:
        ConfigError: a key is missing, unknown or not what it should be.
        FileNotFoundError: there is no such file.

    Spec: R34.1
    """
    if isinstance(source, Mapping):
        return _checked(source, Path(folder or ".").absolute())
    file = Path(source).absolute()
    if not file.is_file():
        message = f"check: expected a file, found none at {file}"
        raise FileNotFoundError(message)
    return _checked(_parse(file.read_text(encoding="utf-8")), file.parent)


def _parse(text: str) -> dict[str, Any]:
    """Read TOML, with what this Python has for it."""
    try:
        import tomllib as toml  # noqa: PLC0415 - Python 3.11 has it
    except ImportError:
        try:
            import tomli as toml  # noqa: PLC0415
        except ImportError:
            message = "port.toml: expected Python 3.11 or the package tomli to read TOML with"
            raise ImportError(message) from None
    try:
        return dict(toml.loads(text))
    except toml.TOMLDecodeError as error:
        raise ConfigError(key="the file", expected="TOML", got=str(error)) from None


def _checked(given: Mapping[str, Any], folder: Path) -> Config:
    """Check every key, and make paths absolute."""
    for key in given:
        if key not in _SIDES and key not in _TYPES:
            raise ConfigError(
                key=key, expected=f"one of {', '.join([*_SIDES, *_TYPES])}", got=given[key]
            )
    sides: dict[str, Any] = {name: _side(given, name, folder) for name in _SIDES}
    if ("command" in sides["reference"]) != ("command" in sides["port"]):
        raise ConfigError(key="command", expected="one for each side, or for none", got="one")
    options = {key: _option(key, given[key]) for key in _TYPES if key in given}
    if "command" not in sides["reference"] and "data" not in options:
        raise ConfigError(
            key="data", expected="'module:function', an .npz, or what to generate", got=None
        )
    return Config(folder, **sides, **options)


def _side(given: Mapping[str, Any], name: str, folder: Path) -> dict[str, Any]:
    """Check the table of one side."""
    table = given.get(name)
    if not isinstance(table, Mapping):
        raise ConfigError(key=name, expected="a table", got=table)
    for key in table:
        if key not in _SIDES[name]:
            raise ConfigError(
                key=f"{name}.{key}", expected=f"one of {', '.join(sorted(_SIDES[name]))}", got=key
            )
    if "command" in table:
        return dict(table)
    needed = ["module"] if name == "reference" else ["type"]
    if name == "port" and "assembly" not in table and "project" not in table:
        needed.append("assembly")
    for key in needed:
        if not isinstance(table.get(key), str):
            raise ConfigError(key=f"{name}.{key}", expected="text", got=table.get(key))
    if name == "reference" and ":" not in table["module"]:
        raise ConfigError(
            key="reference.module", expected="'package.module:Class'", got=table["module"]
        )
    if not isinstance(table.get("args", []), list | dict):
        raise ConfigError(key=f"{name}.args", expected="a list or a table", got=table["args"])
    paths = {key: str(folder / table[key]) for key in ("assembly", "project") if key in table}
    return {**table, **paths}


def _option(key: str, value: Any) -> Any:  # noqa: ANN401 - a value of TOML
    """Check one option."""
    if not isinstance(value, _TYPES[key]) or isinstance(value, bool):
        expected = " or ".join(kind.__name__ for kind in _TYPES[key])
        raise ConfigError(key=key, expected=expected, got=value)
    if key in _CHOICES and value not in _CHOICES[key]:
        raise ConfigError(key=key, expected=" or ".join(_CHOICES[key]), got=value)
    if key in _POSITIVE and value < 1:
        raise ConfigError(key=key, expected="at least 1", got=value)
    if key in {"optimizer", "scheduler"} and not isinstance(value.get("name"), str):
        raise ConfigError(key=f"{key}.name", expected="text", got=value.get("name"))
    if key == "loss" and isinstance(value, dict) and set(value) != {"reference", "port"}:
        raise ConfigError(key="loss", expected="a name, or reference and port", got=value)
    return value
