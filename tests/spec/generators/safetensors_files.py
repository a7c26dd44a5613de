"""Safetensors files, sound and hostile, byte by byte."""

import json
import struct
from collections.abc import Iterator
from typing import Any

Case = dict[str, Any]
Members = dict[str, Any]

FILE = "data.bin"
"""The name under which the suites read a file."""

VALUES: Members = {
    "bool": ("BOOL", [True, False], "??"),
    "uint8": ("U8", [0, 255], "BB"),
    "int8": ("I8", [-128, 127], "bb"),
    "int16": ("I16", [-32768, 32767], "hh"),
    "int32": ("I32", [-(2**31), 2**31 - 1], "ii"),
    "int64": ("I64", [-(2**63), 2**63 - 1], "qq"),
    "float16": ("F16", [1.5, -0.25], "ee"),
    "float32": ("F32", [1.5, -0.25], "ff"),
    "float64": ("F64", [1.5, -0.25], "dd"),
}
DTYPES = "BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64"
LIMIT = 100_000_000


def safetensors_files() -> Case:
    """Write files by hand, as the format's page has them."""
    about = (
        "load_file of 'file' gives 'tensors', in this order, and load_metadata 'metadata'; where "
        "'written' is true, save_file of them gives exactly these bytes."
    )
    return {"about": about, "cases": [*_sound(), *_hostile()]}


def entry(dtype: str, shape: list[Any], begin: Any, end: Any) -> Members:  # noqa: ANN401 - also what is wrong
    """Describe a tensor."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def packed(header: Members | bytes, data: bytes = b"", length: int | None = None) -> str:
    """Put a file together, its header padded to 8 bytes."""
    content = (
        header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    )
    content += b" " * (-len(content) % 8)
    stated = len(content) if length is None else length
    return (struct.pack("<Q", stated) + content + data).hex()


def _sound() -> Iterator[Case]:
    """Make files of every dtype and of odd shapes."""
    for name, (kind, values, form) in VALUES.items():
        data = struct.pack(f"<{form}", *values)
        header = {"a": entry(kind, [len(values)], 0, len(data))}
        expected = {"a": {"tensor": values, "dtype": name}}
        yield _case(f"{name}", packed(header, data), expected, written=True)
    yield _case(
        "bfloat16",
        packed({"a": entry("BF16", [2], 0, 4)}, bytes.fromhex("c03f80be")),
        {"a": {"tensor": [1.5, -0.25], "dtype": "bfloat16"}},
        written=True,
    )
    odd = {
        "scalar": entry("F32", [], 0, 4),
        "none": entry("F32", [0, 3], 4, 4),
        "row": entry("F32", [1, 2], 4, 12),
    }
    expected = {
        "scalar": {"tensor": 0.5, "dtype": "float32"},
        "none": {"tensor": [], "dtype": "float32", "shape": [0, 3]},
        "row": {"tensor": [[1.0, 2.0]], "dtype": "float32"},
    }
    yield _case("shapes", packed(odd, struct.pack("<3f", 0.5, 1, 2)), expected, written=True)
    mixed = {
        "flag": entry("BOOL", [1], 12, 13),
        "small": entry("F32", [1], 8, 12),
        "large": entry("I64", [1], 0, 8),
    }
    expected = {
        "flag": {"tensor": [True], "dtype": "bool"},
        "small": {"tensor": [0.5], "dtype": "float32"},
        "large": {"tensor": [7], "dtype": "int64"},
    }
    data = struct.pack("<qfB", 7, 0.5, 1)
    yield _case(
        "larger elements come first, names keep their order",
        packed(mixed, data),
        expected,
        written=True,
    )
    texts = {"format": "pt", 'quote " and \\': "line\nand tab\t", "ä€😀": "\x7f\x01"}
    header = {"__metadata__": texts, "ä😀": entry("U8", [1], 0, 1)}
    yield _case(
        "metadata",
        packed(header, b"\x07"),
        {"ä😀": {"tensor": [7], "dtype": "uint8"}},
        texts,
        written=True,
    )
    yield _case("nothing", packed({}), {}, written=True)
    utf8 = '{"ä":{"shape":[1],"data_offsets":[0,1],"dtype":"U8"}}   \n'.encode()
    yield _case(
        "other JSON of the same meaning",
        packed(utf8, b"\x07"),
        {"ä": {"tensor": [7], "dtype": "uint8"}},
    )


def _case(
    name: str,
    file: str,
    tensors: Members,
    metadata: dict[str, str] | None = None,
    *,
    written: bool = False,
) -> Case:
    """Make a case of a sound file."""
    case = {
        "name": name,
        "spec": ["R26.1"],
        "file": file,
        "tensors": tensors,
        "metadata": metadata or {},
    }
    return {**case, "written": written}


def _hostile() -> Iterator[Case]:
    """Make files that no reader may take."""
    for name, (file, expected) in {**_broken(), **_headers(), **_entries(), **_places()}.items():
        text = f"safetensors: expected {expected}".replace("{file}", FILE)
        yield {"name": name, "spec": ["R26.2"], "file": file, "raises": {"ValueError": text}}


def _broken() -> dict[str, tuple[str, str]]:
    """Make files whose start is wrong."""
    one = {"a": entry("U8", [1], 0, 1)}
    return {
        "empty file": ("", "at least 8 bytes in {file}, got 0"),
        "ends in the length": ("00" * 7, "at least 8 bytes in {file}, got 7"),
        "ends in the header": (packed(one)[:32], "a header of 56 bytes in {file}, got 8"),
        "a header longer than the file": (
            packed(one, length=57),
            "a header of 57 bytes in {file}, got 56",
        ),
        "a header of more than the limit": (
            packed(one, length=LIMIT + 1),
            f"a header of at most {LIMIT} bytes in {{file}}, got {LIMIT + 1}",
        ),
        "a header of 2**64 - 1 bytes": (
            packed(one, length=2**64 - 1),
            f"a header of at most {LIMIT} bytes in {{file}}, got {2**64 - 1}",
        ),
        "ends in the data": (
            packed({"a": entry("U8", [2], 0, 2)}, b"\1"),
            "2 bytes of data for 'a' in {file}, got 1",
        ),
        "trailing bytes": (packed(one, b"\1\2"), "1 bytes of data in {file}, got 2"),
        "trailing bytes and no tensor": (packed({}, b"\1"), "0 bytes of data in {file}, got 1"),
    }


def _headers() -> dict[str, tuple[str, str]]:
    """Make headers that are no object, or say something twice."""
    a = '"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
    none = "an object of JSON as header in {file}, got other text"
    metadata = "names and strings as __metadata__ in {file}, got other JSON"
    texts = {
        "no UTF-8": (b'{"\xff":1}', "a header in UTF-8 in {file}, got other bytes"),
        "half of a pair of surrogates": (b'{"\\ud800":1}', none),
        "no JSON": (b"{a}", none),
        "an array": (b"[]", none),
        "a space first": (b" {}", none),
        "a byte order mark": (b"\xef\xbb\xbf{}", none),
        "two objects": (b"{}{}", none),
        "not a number": (b'{"a":NaN}', none),
        "a trailing comma": (f"{{{a},}}".encode(), none),
        "no header": (b"", none),
        "a name twice": (f"{{{a},{a}}}".encode(), "every name once in {file}, got 'a' twice"),
        "a member twice": (
            b'{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
            "every name once in {file}, got 'dtype' twice",
        ),
        "metadata twice": (
            b'{"__metadata__":{},"__metadata__":{}}',
            "every name once in {file}, got '__metadata__' twice",
        ),
        "a text twice": (
            b'{"__metadata__":{"x":"1","x":"2"}}',
            "every name once in {file}, got 'x' twice",
        ),
        "metadata as a list": (b'{"__metadata__":[]}', metadata),
        "metadata as null": (b'{"__metadata__":null}', metadata),
        "metadata with a number": (b'{"__metadata__":{"x":1}}', metadata),
    }
    return {name: (packed(header, b"\1"), expected) for name, (header, expected) in texts.items()}


def _entries() -> dict[str, tuple[str, str]]:
    """Make headers that describe a tensor in another way."""
    members = "dtype, shape and data_offsets of 'a' in {file}, got other JSON"
    dtype = f"one of {DTYPES} as dtype of 'a' in {{file}}, got "
    shape = "whole numbers from 0 as shape of 'a' in {file}, got others"
    offsets = "two whole numbers from 0 as data_offsets of 'a' in {file}, got others"
    good = entry("U8", [1], 0, 1)
    bad: dict[str, tuple[object, str]] = {
        "a tensor as a number": (1, members),
        "a missing member": ({"dtype": "U8", "shape": [1]}, members),
        "a member too many": ({**good, "strides": [1]}, members),
        "a dtype of 8 bits": ({**good, "dtype": "F8_E4M3"}, dtype + "'F8_E4M3'"),
        "a complex dtype": ({**good, "dtype": "C64"}, dtype + "'C64'"),
        "a dtype as a number": ({**good, "dtype": 1}, dtype + "other JSON"),
        "a shape as a number": ({**good, "shape": 1}, shape),
        "a negative size": ({**good, "shape": [-1, -1]}, shape),
        "a size with a fraction": ({**good, "shape": [1.0]}, shape),
        "a size as a boolean": ({**good, "shape": [True]}, shape),
        "a size of 64 bits": ({**good, "shape": [2**63]}, shape),
        "a size of 100 bits": ({**good, "shape": [2**100]}, shape),
        "one offset": ({**good, "data_offsets": [1]}, offsets),
        "a negative offset": ({**good, "data_offsets": [-1, 0]}, offsets),
        "sizes whose product overflows": (
            {**good, "shape": [2**32, 2**32]},
            f"less than 2**63 bytes of 'a' in {{file}}, got shape [{2**32}, {2**32}]",
        ),
        "sizes that overflow to 0": (
            {**good, "dtype": "F64", "shape": [2**61], "data_offsets": [0, 0]},
            f"less than 2**63 bytes of 'a' in {{file}}, got shape [{2**61}]",
        ),
        "no element, strides that overflow": (
            {**good, "shape": [0, 2**32, 2**32], "data_offsets": [0, 0]},
            f"less than 2**63 bytes of 'a' in {{file}}, got shape [0, {2**32}, {2**32}]",
        ),
        "fewer bytes than the shape": (
            {**good, "dtype": "F32"},
            "4 bytes of 'a' in {file}, got offsets 0 to 1",
        ),
        "more bytes than the shape": (
            {**good, "shape": [0]},
            "0 bytes of 'a' in {file}, got offsets 0 to 1",
        ),
        "offsets in the other order": (
            {**good, "data_offsets": [1, 0]},
            "1 bytes of 'a' in {file}, got offsets 1 to 0",
        ),
    }
    return {
        name: (packed({"a": value}, b"\1"), expected) for name, (value, expected) in bad.items()
    }


def _places() -> dict[str, tuple[str, str]]:
    """Make headers whose tensors do not fill the data one after the other."""
    two = {"a": entry("U8", [2], 0, 2)}
    return {
        "overlapping tensors": (
            packed({**two, "b": entry("U8", [2], 1, 3)}, b"\1\2\3"),
            "tensors apart from each other in {file}, got 'b' from 1, before 'a' ends at 2",
        ),
        "a tensor inside of another": (
            packed({**two, "b": entry("U8", [1], 0, 1)}, b"\1\2"),
            "tensors apart from each other in {file}, got 'a' from 0, before 'b' ends at 1",
        ),
        "a hole": (
            packed({**two, "b": entry("U8", [1], 3, 4)}, b"\1\2\3\4"),
            "no hole in {file}, got one from 2 to 3",
        ),
        "a hole at the start": (
            packed({"a": entry("U8", [1], 1, 2)}, b"\1\2"),
            "no hole in {file}, got one from 0 to 1",
        ),
        "out of range": (
            packed({"a": entry("U8", [2**62], 0, 2**62)}, b"\1"),
            f"{2**62} bytes of data for 'a' in {{file}}, got 1",
        ),
        "bytes that are no booleans": (
            packed({"a": entry("BOOL", [3], 0, 3)}, b"\0\1\2"),
            "bytes 0 and 1 as booleans of 'a' in {file}, got others",
        ),
    }
