"""Names that change on the way."""

import re
from collections.abc import Iterable, Sequence


def rename(
    names: Iterable[str],
    table: Sequence[tuple[str, str]] = (),
    strip: str | None = None,
    prefix: str | None = None,
) -> dict[str, str]:
    """Strip a prefix, map by the first pattern that fits the whole name, add a prefix.

    Args:
        names: the names as they are.
        table: names and new names; each ``*`` stands for any text, the same in both.
        strip: what is taken from the names that start with it.
        prefix: what all names get.

    Returns:
        New names by old ones, in their order.

    Raises:
        ValueError: a pattern or a prefix that fits no name, other counts of ``*`` in a pattern and
            its new name, or a new name twice.

    Spec: R29.3
    """
    rules = [_rule(pattern, new) for pattern, new in table]
    unused = dict.fromkeys(pattern for pattern, _ in table)
    listed = list(names)
    if strip and not any(name.startswith(strip) for name in listed):
        message = f"convert: expected names that start with '{strip}', got none"
        raise ValueError(message)
    renamed: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in listed:
        new = name.removeprefix(strip or "")
        for (pattern, _), (form, parts) in zip(table, rules, strict=True):
            found = form.fullmatch(new)
            if found:
                unused.pop(pattern, None)
                new = parts[0] + "".join(a + b for a, b in zip(found.groups(), parts[1:]))  # noqa: B905 - as many
                break
        new = (prefix or "") + new
        if new in taken:
            got = f"'{new}' for '{taken[new]}' and '{name}'"
            message = f"convert: expected every new name once, got {got}"
            raise ValueError(message)
        taken[new] = name
        renamed[name] = new
    if unused:
        quoted = ", ".join(f"'{pattern}'" for pattern in unused)
        message = f"convert: expected a name for every pattern, got none for {quoted}"
        raise ValueError(message)
    return renamed


def _rule(pattern: str, new: str) -> tuple[re.Pattern[str], list[str]]:
    """Compile a pattern, and split the new name where its texts go."""
    own, parts = pattern.split("*"), new.split("*")
    if len(own) != len(parts):
        message = f"convert: expected as many * in '{new}' as in '{pattern}', got {len(parts) - 1}"
        raise ValueError(message)
    return re.compile("(.*)".join(map(re.escape, own)), re.DOTALL), parts
