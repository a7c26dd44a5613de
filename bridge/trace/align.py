"""Pairs the records of two traces."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bridge.trace.outcome import where
from bridge.trace.record import Key, Record

Layer = tuple[int, str, int, str]
Pair = tuple[Record | None, Record | None]
_NONE: Key = (0, "", 0, "", "", 0, "")


def align(a: Iterable[Record], b: Iterable[Record], names: Mapping[str, str]) -> list[Pair]:
    """Pair the records of two traces by their keys, in the order of execution of the first.

    A record that only the second has comes where it comes there: before the next common one.

    Args:
        a: the records of the reference.
        b: those of the port.
        names: names of layers or parameters of ``a`` and what ``b`` calls them; what is inside a
            layer goes along.

    Spec: R30.9
    """
    others = {record.key: record for record in b}
    pairs: list[tuple[float, Pair]] = []
    place: dict[Key, float] = {}
    for index, record in enumerate(a):
        key = renamed(record, names)
        place[key] = index
        pairs.append((index, (record, others.get(key))))
    after = float(len(place))
    for record in reversed(list(others.values())):
        after = place.get(record.key, after)
        if record.key not in place:
            pairs.append((after - 0.5, (None, record)))
    pairs[len(place) :] = reversed(pairs[len(place) :])
    return [pair for _, pair in sorted(pairs, key=lambda item: item[0])]


def observed(pairs: Iterable[Pair], names: Mapping[str, str]) -> tuple[list[Pair], list[str]]:
    """Part the pairs that both traces saw from those that one of them says it did not.

    A layer that was not observed stands for all of its calls, inputs and outputs in that step.

    Returns:
        The pairs that can be compared, and in words what cannot.
    """
    keyed = [(_key(pair, names), pair) for pair in pairs]
    unseen = {_layer(key): side for key, pair in keyed for side in pair if side and side.unobserved}
    known, blind = [], {}
    for key, pair in keyed:
        found = unseen.get(_layer(key))
        if found is None:
            known.append(pair)
        else:
            blind[_layer(key)] = f"{where(found)}: {found.unobserved}"
    return known, list(blind.values())


def _key(pair: Pair, names: Mapping[str, str]) -> Key:
    """Return the key of a pair, by the names of the second trace."""
    one, other = pair
    return renamed(one, names) if one is not None else other.key if other is not None else _NONE


def _layer(key: Key) -> Layer:
    """Take step, phase, replica and name of a key."""
    return key[0], key[1], key[2], key[4]


def reordered(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """List the pairs that are in another order in the second trace, as few as there can be.

    Each replica is looked at by itself, phase by phase.
    """
    groups: dict[Any, list[tuple[Record, Record]]] = defaultdict(list)
    for one, other in pairs:
        if one is not None and other is not None:
            groups[one.step, one.phase, one.replica].append((one, other))
    for group in groups.values():
        kept = _rising([other.order for _, other in group])
        yield from (pair for index, pair in enumerate(group) if index not in kept)


def _rising(numbers: list[int]) -> set[int]:
    """Return the places of a longest rising subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, number in enumerate(numbers):
        at = bisect_left(tails, number)
        before.append(ends[at - 1] if at else -1)
        tails[at : at + 1] = [number]
        ends[at : at + 1] = [index]
    places, index = set(), ends[-1] if ends else -1
    while index >= 0:
        places.add(index)
        index = before[index]
    return places


def renamed(record: Record, names: Mapping[str, str]) -> Key:
    """Return the key that a record has in the other trace."""
    name = record.name
    for own, other in names.items():
        if name == own or name.startswith(f"{own}."):
            name = other + name[len(own) :]
            break
    key = record.key
    return (*key[:4], name, *key[5:])
