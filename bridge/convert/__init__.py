"""Weights moved between languages, formats and names."""

from bridge.convert.converter import convert
from bridge.convert.formats import detect, format_for, read_state, write_state
from bridge.convert.likeness import match
from bridge.convert.names import rename
from bridge.convert.plan import Plan, Row
from bridge.convert.torchsharp_file import load_torchsharp, save_torchsharp

__all__ = [
    "Plan",
    "Row",
    "convert",
    "detect",
    "format_for",
    "load_torchsharp",
    "match",
    "read_state",
    "rename",
    "save_torchsharp",
    "write_state",
]
