"""Reads the public members of C# sources: names, parameters with defaults, and doc sentences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# A doc comment, attributes, and the declaration up to its body.
MEMBER = re.compile(
    r"(?P<doc>(?:^[ ]*///.*\n)+)(?:^[ ]*\[.*\]\n)*"
    r"^[ ]*public (?:(?:static|sealed|override|abstract|partial|readonly) )*"
    r"(?P<declaration>[^;{]*?)(?=\s*(?:\{|;|=>|\n[ ]*:|\n[ ]*where\b))",
    re.MULTILINE,
)
CALLABLE = re.compile(r"(?P<name>\w+)(?:<[\w, ]+>)?\((?P<parameters>.*)\)", re.DOTALL)
TYPE = re.compile(r"(?:class|record|record struct|struct) (?P<name>\w+)")


@dataclass(frozen=True)
class Member:
    """One public member: a type, or a method or constructor with its parameters."""

    name: str
    sentence: str
    parameters: dict[str, str | None] | None


def members(path: Path) -> Iterator[Member]:
    """List the documented public types and methods of a file; none where it is missing."""
    source = path.read_text(encoding="utf-8") if path.exists() else ""
    for match in MEMBER.finditer(source):
        declaration = match["declaration"]
        sentence = _sentence(match["doc"])
        if kind := TYPE.match(declaration):
            yield Member(kind["name"], sentence, None)
        elif method := CALLABLE.search(declaration):
            yield Member(method["name"], sentence, _parameters(method["parameters"]))


def _sentence(doc: str) -> str:
    """Take the first sentence of the summary."""
    text = " ".join(line.strip().removeprefix("///").strip() for line in doc.splitlines())
    summary = re.search(r"<summary>(.*?)</summary>", text)
    return first_sentence(summary[1]) if summary else ""


def first_sentence(text: str) -> str:
    """Take the first sentence of a text's first paragraph, without markup; null is None."""
    text = text.partition("\n\n")[0]
    plain = re.sub(r"<\w+ \w+=\"([^\"]*)\"/>|</?\w+>|``?|:\w+:", r"\1", " ".join(text.split()))
    return re.split(r"(?<=\.) (?=[A-Z])", re.sub(r"\bnull\b", "None", plain).strip())[0]


def _parameters(text: str) -> dict[str, str | None]:
    """Split parameters at the commas outside of brackets, into names and defaults."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "(<[") - (character in ")>]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    named = [part.partition(" = ") for part in parts if part.strip()]
    return {left.split()[-1]: default or None for left, _, default in named}
