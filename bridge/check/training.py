"""Trains both sides, compares, and looks closer where they part."""

from collections.abc import Mapping
from pathlib import Path

from bridge.check import failures
from bridge.check.again import Again
from bridge.check.batches import batches
from bridge.check.config import Config
from bridge.check.result import Finding, Result
from bridge.check.sides import Port, Reference, Side
from bridge.dotnet import Host
from bridge.parity import family
from bridge.trace import compare, read
from bridge.trace.diagnosis import diagnose
from bridge.trace.outcome import Outcome


def trained(
    config: Config,
    traces: Path,
    host: Host,
    sides: tuple[Side, Side],
    known: tuple[list[Finding], dict[str, str]],
) -> Result:
    """Record both sides, compare, and say what differs.

    Args:
        config: of the check.
        traces: a folder for them.
        host: where C# runs.
        sides: the reference and the port, as training begins.
        known: what the preflight found, and the names that it matched.

    Spec: R34.3, R34.7
    """
    reference, port = sides
    findings, other = known
    data = batches(config)
    names = {**config.names, **_layers(other)}
    again = Again(
        config, traces, lambda: Reference(config), lambda: Port(config, host),
        [side.state() for side in sides], data, names,
    )  # fmt: skip
    for side in sides:
        side.describe()  # It seeds.
    folders = traces / "reference", traces / "port"
    _, errors = failures.both(
        lambda: reference.record(folders[0], data), lambda: port.record(folders[1], data)
    )
    rule = family.rule(family.compare(host, config.threads))
    outcome = compare(*folders, rule=rule, names=names)
    if outcome.verdict == "incomparable" and any(errors):
        return failures.result("run", errors, findings)
    if errors[0] is None and _measurable(outcome):
        outcome = compare(*folders, rule=rule, names=names, envelope=again.envelope())
    first = outcome.cause or outcome.first
    values = None if first is None or any(errors) else again.closer(first)
    found = diagnose(outcome, read(folders[0]), read(folders[1]), names)
    texts = [f" {side}: {failures.line(error)}" for side, error in failures.sided(errors)]
    return Result(
        outcome.verdict, outcome.reason + "".join(texts), findings, other, outcome, values,
        [item.sentence for item in found], failures.details(errors),
    )  # fmt: skip


def _measurable(outcome: Outcome) -> bool:
    """Tell whether there is a difference that rounding may explain."""
    return any(item.fault == "value" and item.distance for item in outcome.divergences)


def _layers(names: Mapping[str, str]) -> dict[str, str]:
    """Add the layers of renamed parameters whose last part is the same."""
    layers = {}
    for own, other in names.items():
        (layer, _, last), (its, _, same) = own.rpartition("."), other.rpartition(".")
        key, value = (layer, its) if last == same and layer and its else (own, other)
        layers[key] = value
    return layers
