"""Trees in files, byte by byte."""

import hashlib
import json
import struct
from typing import Any

from tests.spec.generators.safetensors_files import FILE, entry

Case = dict[str, Any]
SEAL = "bridge_sha256"


def trees() -> Case:
    """Write files by hand, as docs/checkpoints.md has them."""
    about = (
        "write(tree) gives exactly the bytes of 'file', and read gives 'tree' back; "
        '{"float": bits} is a number by its 64 bits.'
    )
    return {"about": about, "cases": [*_sound(), *_hostile()]}


def sealed(tree: object, tensors: dict[str, Any], data: bytes, **other: str) -> bytes:
    """Put a file together, with its digest."""
    text = tree if isinstance(tree, str) else json.dumps(tree, separators=(",", ":"))
    metadata = {"format": "pt", "bridge_version": "1", "bridge_tree": text, SEAL: "0" * 64, **other}
    header = json.dumps({"__metadata__": metadata, **tensors}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    content = struct.pack("<Q", len(header)) + header + data
    digest = hashlib.sha256(content).hexdigest()
    return content.replace(b'"' + b"0" * 64 + b'"', f'"{digest}"'.encode())


def _sound() -> list[Case]:
    """Make a checkpoint's tree, and values of all kinds."""
    pair = {"tensor": [0.5, -1.25], "dtype": "float32"}
    step = {"tensor": 3, "dtype": "int64"}
    checkpoint = {
        "dict": {
            "model": {"dict": {"weight": pair, "__odd": step}},
            "optimizer": {"dict": {"state": {"pairs": [[0, {"dict": {"exp_avg": pair}}]]}}},
            "epoch": 2,
        }
    }
    odd, average = '__bridge__["model"]["__odd"]', '__bridge__["optimizer"]["state"][0]["exp_avg"]'
    state = {"dict": [[0, {"dict": [["exp_avg", {"tensor": average}]]}]]}
    form = {
        "dict": [
            ["model", {"dict": [["weight", {"tensor": "weight"}], ["__odd", {"tensor": odd}]]}],
            ["optimizer", {"dict": [["state", state]]}],
            ["epoch", 2],
        ]
    }
    entries = {
        "weight": entry("F32", [2], 8, 16),
        odd: entry("I64", [], 0, 8),
        average: entry("F32", [2], 16, 24),
    }
    data = struct.pack("<q4f", 3, 0.5, -1.25, 0.5, -1.25)
    values = {
        "dict": {
            "n": None,
            "t": True,
            "f": False,
            "i": -(2**63),
            "j": 2**63 - 1,
            "s": 'ä"\\\n😀\x7f',
        }
    }
    plain = {"dict": [[key, value] for key, value in values["dict"].items()]}
    numbers = [0.5, -1.25, 1.0, -0.0, 0.1, 100.0, 0.001, 0.0001, 1e-05, 1.5e-05, 1e15, 1e16, 1e17]
    numbers += [1234567890123456.5, 123456789012345678.0, 1.5e300, 1e22, 5e-324, 2.0**53 + 2]
    special = ["7ff8000000000000", "fff8000000000001", "7ff0000000000000", "fff0000000000000"]
    floats = [{"float": bits} for bits in special]
    nested = {"tuple": [{"tuple": []}, [], {"tuple": [[1, {"tuple": [2.0]}]]}]}
    cases = [
        ("a checkpoint", checkpoint, sealed(form, entries, data)),
        ("values", values, sealed(plain, {}, b"")),
        ("numbers", numbers, sealed(numbers, {}, b"")),
        ("numbers that are not finite", floats, sealed(floats, {}, b"")),
        ("lists and tuples", nested, sealed(nested, {}, b"")),
        ("an empty dict", {"dict": {}}, sealed({"dict": []}, {}, b"")),
        (
            "one tensor",
            pair,
            sealed({"tensor": "__bridge__"}, {"__bridge__": entry("F32", [2], 0, 8)}, data[8:16]),
        ),
    ]
    return [
        {"name": name, "spec": ["R26.4", "R26.5"], "tree": tree, "file": file.hex()}
        for name, tree, file in cases
    ]


def _hostile() -> list[Case]:
    """Make files of another maker or version, changed files, and trees that are none."""
    good = sealed([1], {}, b"")
    digest = good[good.index(b'sha256":"') + 9 :][:64].decode()
    changed = good.replace(b"[1]", b"[2]")
    actual = hashlib.sha256(changed.replace(digest.encode(), b"0" * 64)).hexdigest()
    other = "a tree in {file}, got other JSON"
    files = {
        "another maker": (
            b"\x08" + b"\0" * 7 + b"{}      ",
            "a checkpoint in {file}, got a plain safetensors file: see load_file",
        ),
        "another version": (
            sealed([1], {}, b"", bridge_version="2"),
            "version 1 in {file}, got '2'",
        ),
        "a changed value": (changed, f"SHA-256 {digest} of {{file}}, got {actual}"),
        "no JSON": (sealed("[1", {}, b""), other),
        "an unknown kind": (sealed({"set": []}, {}, b""), other),
        "two kinds": (sealed({"tuple": [], "dict": []}, {}, b""), other),
        "a kind twice": (sealed('{"tuple":[],"tuple":[]}', {}, b""), other),
        "a key twice": (sealed({"dict": [[1, 1], [1, 2]]}, {}, b""), other),
        "a key with a fraction": (sealed({"dict": [[1.5, 1]]}, {}, b""), other),
        "a key as a boolean": (sealed({"dict": [[True, 1]]}, {}, b""), other),
        "a key without a value": (sealed({"dict": [[1]]}, {}, b""), other),
        "a tuple of a number": (sealed({"tuple": 1}, {}, b""), other),
        "an integer of 65 bits": (sealed([2**64], {}, b""), other),
        "a number beyond float64": (sealed("[1e999]", {}, b""), other),
        "not a number": (sealed("[NaN]", {}, b""), other),
        "half of a pair of surrogates": (sealed('["\\ud800"]', {}, b""), other),
        "bits of another length": (sealed({"float": "7ff8"}, {}, b""), other),
        "a tensor that is not there": (sealed({"tensor": "a"}, {}, b""), other),
        "a tensor in two places": (
            sealed([{"tensor": "a"}] * 2, {"a": entry("U8", [0], 0, 0)}, b""),
            other,
        ),
        "a tensor in no place": (
            sealed([], {"a": entry("U8", [0], 0, 0)}, b""),
            "a place for every tensor in {file}, got none for 'a'",
        ),
        "too many levels": (sealed("[" * 102 + "]" * 102, {}, b""), other),
    }
    return [
        {
            "name": name,
            "spec": ["R26.5"],
            "file": file.hex(),
            "raises": {"ValueError": f"read: expected {text}".replace("{file}", FILE)},
        }
        for name, (file, text) in files.items()
    ]
