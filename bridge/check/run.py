"""Runs a check: makes both sides, and the preflight before they train."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.check import failures, preflight
from bridge.check.config import Config, load
from bridge.check.programs import programs
from bridge.check.result import Result
from bridge.check.sides import Port, Reference
from bridge.check.training import trained
from bridge.dotnet import Host, start
from bridge.trace import read


def check(
    source: str | Path | Mapping[str, Any] | Config,
    folder: str | Path | None = None,
    *,
    host: Host | None = None,
) -> Result:
    """Check a port against its reference.

    Args:
        source: path of a ``port.toml``, a mapping of its form, or a configuration.
        folder: what paths in a mapping are relative to.
        host: where C# runs; else one is started for the check.

    Raises:
        ConfigError: a key is missing, unknown or not what it should be.
        DotnetError: C# does not start, or the port's project does not build.

    Spec: R34.2, R34.3, R34.4
    """
    config = source if isinstance(source, Config) else load(source, folder)
    with tempfile.TemporaryDirectory(prefix="bridge-check-") as name:
        traces = Path(name)
        if config.commands:
            return programs(config, traces)
        if host is not None:
            return _models(config, traces, host)
        with start() as own:
            return _models(config, traces, own)


def _models(config: Config, traces: Path, host: Host) -> Result:
    """Make both sides, compare what they start from, and train them."""
    made, errors = failures.both(lambda: Reference(config), lambda: Port(config, host))
    if made is None:
        return failures.result("constructor", errors)
    reference, port = made
    about = [side.describe() for side in made]
    for name, side in zip(("a", "b"), made, strict=True):
        side.record(traces / name, [])
    one, two = (preflight.tensors(read(traces / name)) for name in ("a", "b"))
    names, findings = preflight.match(one, two, config.names)
    findings += [*preflight.compare(one, two, names), *preflight.described(*about)]
    wrong = [finding.message for finding in findings if finding.severity == "error"]
    other = {own: name for own, name in names.items() if own != name}
    if wrong:
        return Result("diverged", f"Preflight: {wrong[0]}.", findings, other)
    if config.init == "copy":
        port.load({names[own]: value for own, value in reference.state().items() if own in names})
    return trained(config, traces, host, made, (findings, other))
