"""Files of ``torch.save``, written by it, and hostile ones, opcode by opcode."""

import io
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Case = dict[str, Any]
File = tuple[bytes, str]

FILE = "data.bin"
HEAD = b"\x80\x02"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"
HOOKS = b"ccollections\nOrderedDict\n)R"


def written() -> Case:
    """Let PyTorch write state dicts and values."""
    about = (
        "What torch.save wrote. load gives 'tree', where a dict stands for an OrderedDict "
        "too; the tensors of 'shared' share storage, and 'strides' are those of tensors."
    )
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.5, -1.25]]))
        model.bias.fill_(2.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    base = torch.arange(6, dtype=torch.float32)
    views = {
        "whole": base,
        "part": base[2:6].view(2, 2).t(),
        "one": torch.tensor(7),
        "none": torch.empty(0, 3),
    }
    dtypes = [
        torch.tensor([1, 0]).to(d)
        for d in (torch.bool, torch.uint8, torch.int16, torch.bfloat16, torch.half)
    ]
    values = {"n": None, "i": 2**40, "j": -1, "f": -0.0, "s": "ä", "l": [1, (2.5, True)], 3: {}}
    trees = {"state dict": model.state_dict(), "views": views, "dtypes": dtypes, "values": values}
    trees["momentum"] = optimizer.state_dict()["state"]
    cases = [
        {"name": name, "spec": ["R26.9", "R26.11"], "tree": _form(tree), "file": _saved(tree)}
        for name, tree in trees.items()
    ]
    cases[1] |= {"shared": ["whole", "part"], "strides": {"part": [1, 2]}}
    return {"about": about, "cases": cases}


def _saved(tree: object) -> str:
    """Save a tree, as a text."""
    file = io.BytesIO()
    torch.save(tree, file)
    return file.getvalue().hex()


def _form(tree: Any) -> Any:  # noqa: ANN401 - any tree
    """Write a tree in the form of the vectors."""
    if isinstance(tree, torch.Tensor):
        name = str(tree.dtype).removeprefix("torch.")
        return {"tensor": tree.tolist(), "dtype": name, "shape": list(tree.shape)}
    if isinstance(tree, dict):
        return {"pairs": [[key, _form(value)] for key, value in tree.items()]}
    if isinstance(tree, tuple):
        return {"tuple": [_form(value) for value in tree]}
    return [_form(value) for value in tree] if isinstance(tree, list) else tree


def hostile() -> Case:
    """Make files that nobody may read."""
    about = "load refuses 'file'; what is in it is never run."
    files = {**_archives(), **_names(), **_opcodes(), **_storages(), **_bombs()}
    cases = [
        {
            "name": name,
            "spec": ["R26.10"],
            "file": file.hex(),
            "raises": {"ValueError": f"load: expected {text}".replace("{file}", FILE)},
        }
        for name, (file, text) in files.items()
    ]
    return {"about": about, "cases": cases}


def archive(pickle: bytes, *data: bytes, records: dict[str, bytes] | None = None) -> bytes:
    """Put an archive together."""
    named = {
        "archive/data.pkl": pickle,
        **{f"archive/data/{i}": part for i, part in enumerate(data)},
    }
    return zipped({**named, **(records or {})})


def zipped(
    records: dict[str, bytes], change: Callable[[zipfile.ZipInfo], None] = lambda _: None
) -> bytes:
    """Write a zip file, always with the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        for name, content in records.items():
            info = zipfile.ZipInfo(name)
            change(info)
            target.writestr(info, content)
    return file.getvalue()


def _archives() -> dict[str, File]:
    """Make zip files that PyTorch does not write."""
    none = HEAD + b"N."
    legacy = io.BytesIO()
    torch.save(1, legacy, _use_new_zipfile_serialization=False)
    zip_ = "a zip file, as torch.save writes since PyTorch 1.6 in {file}, got "
    good = archive(none)
    deflated = zipped(
        {"archive/data.pkl": none + b"\0" * 1000},
        lambda info: setattr(info, "compress_type", zipfile.ZIP_DEFLATED),
    )
    twice = good.replace(b"archive/data.pkl", b"archive/version_")
    both = zipped({"archive/data.pkl": none, "archive/version_": b""}).replace(
        b"archive/version_", b"archive/data.pkl"
    )
    bomb = _overlapping(50)
    folder = "records in one folder in {file}, got "
    return {
        "an empty file": (b"", zip_ + "other bytes"),
        "text": (b"import os", zip_ + "other bytes"),
        "the legacy format": (legacy.getvalue(), zip_ + "the legacy format"),
        "half of a zip file": (
            good[: len(good) // 2],
            "a whole zip file in {file}, got a damaged one",
        ),
        "no pickle": (twice, "a record data.pkl in {file}, got none"),
        "an empty archive": (b"PK\3\4" + zipped({}), "a record data.pkl in {file}, got none"),
        "a path upwards": (archive(none, records={"archive/../x": b""}), folder + "'archive/../x'"),
        "an absolute path": (archive(none, records={"/etc/x": b""}), folder + "'/etc/x'"),
        "a path of Windows": (
            archive(none, records={"archive/C:\\x": b""}),
            folder + "'archive/C:\\x'",
        ),
        "two folders": (archive(none, records={"other/x": b""}), folder + "'other/x'"),
        "no folder": (zipped({"data.pkl": none}), folder + "'data.pkl'"),
        "a record twice": (both, "every record once in {file}, got data.pkl twice"),
        "a compressed record": (
            deflated,
            "records as they are in {file}, got data.pkl compressed or encrypted",
        ),
        "fifty records of one place": (
            bomb,
            f"records of at most {len(bomb)} bytes in {{file}}, got 50000",
        ),
        "a script": (
            archive(none, records={"archive/constants.pkl": b""}),
            "a file of torch.save in {file}, got a TorchScript archive",
        ),
        "big-endian bytes": (
            archive(none, records={"archive/byteorder": b"big"}),
            "little-endian bytes in {file}, got others",
        ),
        "a changed pickle": (
            good.replace(none, HEAD + b"\x88."),
            "a whole record data.pkl in {file}, got a damaged one",
        ),
    }


def _overlapping(count: int) -> bytes:
    """Name the same 1000 bytes many times."""
    one = zipped({"archive/data.000": bytes(1000)})
    directory, end = one.index(b"PK\1\2"), one.index(b"PK\5\6")
    entries = [one[directory:end].replace(b".000", b".%03d" % i) for i in range(count)]
    last = bytearray(one[end:])
    struct.pack_into("<HHI", last, 8, count, count, count * len(entries[0]))
    return one[:directory] + b"".join(entries) + bytes(last)


def _named(module: str, name: str) -> File:
    """Name something, and call it with a text."""
    call = b"c" + module.encode() + b"\n" + name.encode() + b"\n" + b"X\x02\0\0\0id\x85R."
    return archive(
        HEAD + call
    ), f"only what state dicts are made of in {{file}}, got {module}.{name}"


def _names() -> dict[str, File]:
    """Name what a pickle could run."""
    names = [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "eval"),
        ("builtins", "exec"),
        ("__builtin__", "getattr"),
        ("subprocess", "Popen"),
        ("torch.hub", "load"),
        ("torch", "load"),
        ("torch._utils", "_rebuild_sparse_tensor"),
        ("torch", "ComplexFloatStorage"),
        ("numpy.core.multiarray", "scalar"),
        ("collections", "OrderedDict.fromkeys"),
    ]
    return {f"{module}.{name}": _named(module, name) for module, name in names}


def _opcodes() -> dict[str, File]:
    """Use opcodes of other protocols, and some out of place."""
    place = "a sound pickle in {file}, got 0x{code} out of place at {at}"

    def out(pickle: bytes, code: str, at: int) -> File:
        return archive(HEAD + pickle), place.replace("{code}", code).replace("{at}", str(at))

    def unknown(code: bytes) -> File:
        return archive(
            HEAD + code + b"os\nsystem\n."
        ), f"opcodes of state dicts in {{file}}, got 0x{code.hex()} at 2"

    return {
        "protocol 4": (archive(b"\x80\x04N."), "pickle protocol 2 in {file}, got 4"),
        "INST": unknown(b"i"),
        "OBJ": unknown(b"o"),
        "NEWOBJ": unknown(b"\x81"),
        "STACK_GLOBAL": unknown(b"\x93"),
        "EXT1": unknown(b"\x82"),
        "PERSID": unknown(b"P"),
        "an end within": (
            archive(HEAD + b"X\xff\0\0\0a"),
            "a whole pickle in {file}, got its end at 8",
        ),
        "no end": (archive(HEAD + b"N"), "a whole pickle in {file}, got its end at 3"),
        "a line without an end": (
            archive(HEAD + b"cos"),
            "a whole pickle in {file}, got its end at 5",
        ),
        "nothing left": out(b".", "2e", 2),
        "too much left": out(b"NN.", "2e", 4),
        "a mark left": out(b"N(.", "2e", 4),
        "a memo that is not there": out(b"h\x05.", "68", 2),
        "a tuple of too little": out(b"N\x86.", "86", 3),
        "items beyond a mark": out(b"N(\x85.", "85", 4),
        "no mark": out(b"t.", "74", 2),
        "append to a number": out(b"K\x01Na.", "61", 5),
        "an odd number of items": out(b"}(Nu.", "75", 5),
        "a key that is a list": out(b"}]Ns.", "73", 5),
        "a key that is a boolean": out(b"}\x88Ns.", "73", 5),
        "a text that is no UTF-8": out(b"X\x01\0\0\0\xff.", "58", 2),
        "a number called": out(b"K\x01)R.", "52", 5),
        "an integer of 72 bits": (
            archive(HEAD + b"\x8a\x09" + b"\1" * 9 + b"."),
            "integers of 64 bits in {file}, got one of 72",
        ),
        "state of a list": (
            archive(HEAD + b"]}b."),
            "no state but _metadata of an OrderedDict in {file}, got another",
        ),
        "state of a name": (
            archive(HEAD + b"ctorch\nFloatStorage\n}b."),
            "no state but _metadata of an OrderedDict in {file}, got another",
        ),
        "another attribute": (
            archive(HEAD + HOOKS + b"}X\x04\0\0\0keysNsb."),
            "no state but _metadata of an OrderedDict in {file}, got another",
        ),
    }


def storage(kind: str = "FloatStorage", key: str = "0", count: int = 2) -> bytes:
    """Refer to a storage."""
    named = b"(X\x07\0\0\0storage" + b"ctorch\n" + kind.encode() + b"\n"
    return named + b"X\x01\0\0\0" + key.encode() + b"X\x03\0\0\0cpu" + long(count) + b"tQ"


def long(value: int) -> bytes:
    """Write an integer."""
    return b"\x8a\x08" + struct.pack("<q", value)


def tensor(
    reference: bytes,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    grad: bytes = b"\x89",
) -> bytes:
    """Make a tensor of a storage."""
    sizes, strides = (b"(" + b"".join(map(long, values)) + b"t" for values in (size, stride))
    return TENSOR + b"(" + reference + long(offset) + sizes + strides + grad + HOOKS + b"tR"


def _storages() -> dict[str, File]:
    """Make tensors that their storage does not hold."""
    data = struct.pack("<2f", 0.5, 1.5)

    def inside(offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> File:
        got = f"offset {offset}, shape {size}, strides {stride}"
        text = f"a tensor inside of the 2 elements of data/0 in {{file}}, got {got}"
        return archive(HEAD + tensor(storage(), offset, size, stride) + b".", data), text

    def one(reference: bytes, text: str, *content: bytes, grad: bytes = b"\x89") -> File:
        return archive(HEAD + tensor(reference, 0, (2,), (1,), grad) + b".", *content), text

    two = (
        HEAD
        + b"("
        + tensor(storage(), 0, (1,), (1,))
        + tensor(storage("IntStorage"), 0, (1,), (1,))
        + b"t."
    )
    at = len(HEAD + tensor(storage(), 0, (2,), (1,))) - 1
    bare = len(HEAD + tensor(b"N", 0, (2,), (1,))) - 1
    negative = len(HEAD + tensor(storage(), 0, (-1,), (1,))) - 1
    return {
        "an offset out of range": inside(2, (1,), (1,)),
        "a shape out of range": inside(0, (3,), (1,)),
        "strides out of range": inside(0, (2,), (2,)),
        "an offset that overflows": inside(2**63 - 1, (2,), (1,)),
        "strides that overflow": inside(0, (3, 3), (2**62, 2**62)),
        "a shape that overflows": inside(0, (2**62, 2**62), (0, 0)),
        "no element far away": inside(3, (0,), (1,)),
        "a negative size": (
            archive(HEAD + tensor(storage(), 0, (-1,), (1,)) + b".", data),
            f"a sound pickle in {{file}}, got 0x52 out of place at {negative}",
        ),
        "a storage too short": one(storage(), "8 bytes of data/0 in {file}, got 4", data[:4]),
        "a storage of too many elements": one(
            storage(count=2**62), f"{2**64} bytes of data/0 in {{file}}, got 8", data
        ),
        "a storage that is not there": one(
            storage(key="7"), "a record data/7 in {file}, got none", data
        ),
        "a storage outside": one(storage(key="/"), "a record data// in {file}, got none", data),
        "a storage of two types": (
            archive(two, data),
            "one type and size of data/0 in {file}, got two",
        ),
        "bytes that are no booleans": one(
            storage("BoolStorage"),
            "bytes 0 and 1 as booleans of data/0 in {file}, got others",
            b"\1\2",
        ),
        "gradients of integers": one(
            storage("IntStorage"),
            "gradients of floating point in {file}, got int32",
            data,
            grad=b"\x88",
        ),
        "a tensor without a storage": (
            archive(HEAD + tensor(b"N", 0, (2,), (1,)) + b"."),
            f"a sound pickle in {{file}}, got 0x52 out of place at {bare}",
        ),
        "a flag that is none": one(
            storage(), f"a sound pickle in {{file}}, got 0x52 out of place at {at}", data, grad=b"N"
        ),
        "a storage by itself": (
            archive(HEAD + storage() + b".", data),
            "what state dicts are made of at tree in {file}, got Storage",
        ),
    }


def _bombs() -> dict[str, File]:
    """Make trees that grow, or that hold themselves."""
    text = "at most 100 levels and 10000000 places in {file}, got more"
    return {
        "a billion laughs": (archive(HEAD + _laughs(40) + b"."), text),
        "a list in itself": (archive(HEAD + b"]q\0h\0a."), text),
        "a dict in itself": (archive(HEAD + b"}q\0X\x01\0\0\0ah\0s."), text),
        "a thousand levels": (archive(HEAD + b"N" + b"\x85" * 1000 + b"."), text),
    }


def _laughs(depth: int) -> bytes:
    """Make lists of two references to the list before, all in one tuple."""
    lists = b"]q\0"
    for i in range(depth):
        lists += b"]q" + bytes([i + 1]) + b"(" + (b"h" + bytes([i])) * 2 + b"e"
    return b"(" + lists + b"t"
