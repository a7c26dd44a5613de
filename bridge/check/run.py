"""Runs a check: preflight, training on both sides, comparison."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bridge.check import preflight
from bridge.check.batches import batches
from bridge.check.config import Config, ConfigError, load
from bridge.check.result import Finding, Result, Values
from bridge.check.sides import Port, Reference, Side
from bridge.dotnet import Host, WorkerDied, start
from bridge.parity import family
from bridge.trace import compare, read
from bridge.trace.diagnosis import diagnose
from bridge.trace.outcome import Divergence

FOLDER = "BRIDGE_TRACE_FOLDER"


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
            return _programs(config, traces)
        if host is not None:
            return _models(config, traces, host)
        with start() as own:
            return _models(config, traces, own)


def _programs(config: Config, traces: Path) -> Result:
    """Run a program for each side, and compare what they recorded."""
    for name, table in (("reference", config.reference), ("port", config.port)):
        environment = {**os.environ, FOLDER: str(traces / name)}
        # The command is the user's own line, as in a Makefile.
        done = subprocess.run(  # noqa: S602
            table["command"], shell=True, cwd=config.folder, env=environment, check=False
        )
        if not (traces / name / "trace.jsonl").is_file():
            reason = f"{name}: expected a trace in ${FOLDER}, found none; exit {done.returncode}"
            return Result("incomparable", reason, [], {})
    outcome = compare(traces / "reference", traces / "port", names=config.names)
    return Result(outcome.verdict, outcome.reason, [], dict(config.names), outcome)


def _models(config: Config, traces: Path, host: Host) -> Result:
    """Make both sides, train them, and compare."""
    made, failed = _both(lambda: Reference(config), lambda: Port(config, host))
    if made is None:
        return _failed("constructor", failed)
    reference, port = made
    about = [side.describe() for side in made]
    for name, side in zip(("a", "b"), made, strict=True):
        side.record(traces / name, [])
    one, two = (preflight.tensors(read(traces / name)) for name in ("a", "b"))
    names, findings = preflight.match(one, two, config.names)
    findings += [*preflight.compare(one, two, names), *preflight.described(*about)]
    errors = [finding.message for finding in findings if finding.severity == "error"]
    other = {own: name for own, name in names.items() if own != name}
    if errors:
        return Result("diverged", f"Preflight: {errors[0]}.", findings, other)
    if config.init == "copy":
        port.load({names[own]: value for own, value in reference.state().items() if own in names})
    return _trained(config, traces, host, made, (findings, other))


def _trained(
    config: Config,
    traces: Path,
    host: Host,
    sides: tuple[Side, Side],
    known: tuple[list[Finding], dict[str, str]],
) -> Result:
    """Record both sides, compare, and look closer where they part."""
    reference, port = sides
    findings, other = known
    beginning = [side.state() for side in sides]
    data = batches(config)
    for side in sides:
        side.describe()  # It seeds.
    folders = traces / "reference", traces / "port"
    _, failed = _both(
        lambda: reference.record(folders[0], data), lambda: port.record(folders[1], data)
    )
    for error in failed:
        if isinstance(error, WorkerDied):
            raise error
    renamed = {**config.names, **_layers(other)}
    rule = family.rule(family.compare(host, config.threads))
    outcome = compare(*folders, rule=rule, names=renamed)
    if outcome.verdict == "incomparable" and any(failed):
        return _failed("run", failed, findings)
    values = None
    first = outcome.cause or outcome.first
    if first is not None and not any(failed):
        values = _closer(config, traces, host, (beginning, first, renamed))
    found = diagnose(outcome, read(folders[0]), read(folders[1]), renamed)
    sentences = [item.sentence for item in found]
    reason = outcome.reason + "".join(f" {side}: {_line(e)}" for side, e in _sided(failed))
    return Result(outcome.verdict, reason, findings, other, outcome, values, sentences)


def _closer(
    config: Config,
    traces: Path,
    host: Host,
    about: tuple[list[Mapping[str, Any]], Divergence, dict[str, str]],
) -> Values | None:
    """Run again up to the divergence, with whole tensors in its step."""
    beginning, first, renamed = about
    step = first.record.step
    sides: tuple[Side, Side] = Reference(config), Port(config, host)
    folders = traces / "closer-reference", traces / "closer-port"
    for side, state, folder in zip(sides, beginning, folders, strict=True):
        side.load(state)
        side.describe()
        side.record(folder, batches(config)[: step + 1], step)
    a, b = (read(folder) for folder in folders)
    again = compare(a, b, names=renamed)
    same = (d for d in again.divergences if d.record.key == first.record.key)
    found = next(same, None)
    if found is None or found.reference is None or found.port is None:
        return None
    return _largest(a.values(found.reference), b.values(found.port))


def _largest(x: Any, y: Any) -> Values | None:  # noqa: ANN401 - arrays, or None
    """Find the largest difference of two arrays."""
    if x is None or y is None or x.shape != y.shape or not x.size:
        return None
    flat = int(np.argmax(np.abs(x.astype(np.float64) - y.astype(np.float64))))
    index = tuple(int(i) for i in np.unravel_index(flat, x.shape))
    one, two = x[index], y[index]
    unit = np.spacing(max(abs(one), abs(two))) if x.dtype.kind == "f" else 1
    return Values(index, float(one), float(two), float(abs(float(one) - float(two)) / float(unit)))


def _both(
    one: Callable[[], Any], two: Callable[[], Any]
) -> tuple[tuple[Any, Any] | None, tuple[Exception | None, Exception | None]]:
    """Do the same on both sides, whatever one of them throws."""
    results: list[Any] = []
    errors: list[Exception | None] = []
    for side in (one, two):
        try:
            results.append(side())
            errors.append(None)
        except ConfigError:  # noqa: PERF203 - each side has its own
            raise
        except Exception as error:  # noqa: BLE001 - an exception of the user's code is a finding
            errors.append(error)
    return (tuple(results) if len(results) == 2 else None), (errors[0], errors[1])  # type: ignore[return-value]  # noqa: PLR2004


def _failed(
    place: str,
    errors: tuple[Exception | None, Exception | None],
    findings: list[Finding] | None = None,
) -> Result:
    """Make a result of exceptions; on one side only they are a divergence."""
    texts = [f"the {side}'s {place}: {_line(error)}" for side, error in _sided(errors)]
    verdict = "diverged" if len(texts) == 1 else "incomparable"
    return Result(verdict, f"Exception in {'; '.join(texts)}", findings or [], {})  # type: ignore[arg-type]


def _sided(errors: tuple[Exception | None, Exception | None]) -> list[tuple[str, Exception]]:
    """List the exceptions with their sides."""
    pairs = zip(("reference", "port"), errors, strict=True)
    return [(side, error) for side, error in pairs if error is not None]


def _line(error: Exception) -> str:
    """Write an exception with all that it says of its place."""
    return f"{type(error).__name__}: {error}"


def _layers(names: Mapping[str, str]) -> dict[str, str]:
    """Add the layers of renamed parameters whose last part is the same."""
    layers = {}
    for own, other in names.items():
        (layer, _, last), (its, _, same) = own.rpartition("."), other.rpartition(".")
        key, value = (layer, its) if last == same and layer and its else (own, other)
        layers[key] = value
    return layers
