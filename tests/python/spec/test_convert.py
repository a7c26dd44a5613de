"""Weights that go from file to file."""

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from bridge.checkpoint import CheckpointError, load, load_file, read, save, save_file, write
from bridge.cli import app
from bridge.convert import convert, detect, format_for, load_torchsharp, rename, save_torchsharp
from bridge.convert.formats import EXTENSIONS
from bridge.convert.mapping import read_mapping
from bridge.parity.digest import digest

# One tensor "w": float32, shape (2, 1), values 0.5 and -1.25, as TorchSharp's Module.save writes.
TORCHSHARP = bytes.fromhex("010177060202010000003f0000a0bf")


def state() -> dict[str, torch.Tensor]:
    """Make weights of all dtypes, shapes with and without elements."""
    kinds = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool)
    fractions = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    values = {str(kind): torch.tensor([1, 0, 1]).to(kind) for kind in kinds + fractions}
    return {**values, "scalar": torch.tensor(1.5), "empty": torch.empty(0, 200), "é": torch.ones(1)}


def two() -> dict[str, torch.Tensor]:
    """Make two layers of one shape."""
    return {"a.weight": torch.zeros(3, 2), "b.weight": torch.ones(3, 2), "bias": torch.ones(3)}


@pytest.mark.parametrize("kind", ["torch", "safetensors", "torchsharp", "tree"])
def test_every_format_holds_all_weights(kind: str, tmp_path: Path) -> None:
    """Names, dtypes, shapes, bits and order come back from each format. Spec: R29.1."""
    save(state(), tmp_path / "in.pt")
    plan = convert(tmp_path / "in.pt", tmp_path / "mid", kind)
    assert plan.written
    assert detect(tmp_path / "mid") == kind
    convert(tmp_path / "mid", tmp_path / "out.pt")
    back = load(tmp_path / "out.pt")
    assert list(back) == list(state()) == [row.target for row in plan.rows]
    assert digest(back.items()) == digest(state().items())


def test_formats_have_extensions() -> None:
    """An extension that says nothing needs a format by name. Spec: R29.1."""
    assert {format_for(f"a{end.upper()}") for end in EXTENSIONS} == set(EXTENSIONS.values())
    with pytest.raises(ValueError, match=r"expected a format, or an extension of .*, got '.bin'"):
        format_for("a.bin")
    with pytest.raises(ValueError, match=r"expected a format of torch, .*, got 'onnx'"):
        format_for("a.pt", "onnx")


def test_a_tree_goes_whole_or_in_parts(tmp_path: Path) -> None:
    """A checkpoint gives its model, a part or all; some formats refuse trees. Spec: R29.1."""
    source, target = tmp_path / "run.safetensors", tmp_path / "out.pt"
    optimizer = {"state": {0: {"exp_avg": torch.ones(2)}}, "param_groups": [{"lr": 0.5}]}
    write({"model": two(), "optimizers": [optimizer], "step": 3}, source)
    convert(source, target)
    assert list(load(target)) == list(two())
    plan = convert(source, target, part="optimizers/0", force=True)
    assert [row.target for row in plan.rows] == ['["state"][0]["exp_avg"]']
    assert load(target)["param_groups"] == [{"lr": 0.5}]
    convert(target, tmp_path / "tree", "tree")
    assert read(tmp_path / "tree")["param_groups"] == [{"lr": 0.5}]
    convert(source, tmp_path / "flat.dat", part="optimizers/0/state/0")
    assert list(load_torchsharp(tmp_path / "flat.dat")) == ["exp_avg"]
    with pytest.raises(ValueError, match=r"format safetensors, got a tree of state, param_groups"):
        convert(target, tmp_path / "no.safetensors")
    with pytest.raises(ValueError, match=r"to rename or cast, got a tree"):
        convert(target, tmp_path / "no.pt", prefix="net.")
    with pytest.raises(ValueError, match=r"expected '9' of part 'optimizers/9', got 1 items"):
        convert(source, tmp_path / "no.pt", part="optimizers/9")
    with pytest.raises(ValueError, match=r"expected 'x' of part 'x', got model, optimizers, step"):
        convert(source, tmp_path / "no.pt", part="x")
    assert not list(tmp_path.glob("no*"))


def test_torchsharp_bytes(tmp_path: Path) -> None:
    """The bytes are those of TorchSharp's format. Spec: R29.2."""
    tensors = {"w": torch.tensor([[0.5], [-1.25]])}
    save_torchsharp(tensors, tmp_path / "m.dat")
    assert (tmp_path / "m.dat").read_bytes() == TORCHSHARP
    assert torch.equal(load_torchsharp(tmp_path / "m.dat")["w"], tensors["w"])


@pytest.mark.parametrize(
    ("content", "got"),
    [
        *((TORCHSHARP[:end], "got") for end in range(len(TORCHSHARP))),
        (TORCHSHARP + b"\0", "an end after the last tensor in m.dat, got 1 more bytes"),
        (b"\2" + TORCHSHARP[1:] + TORCHSHARP[1:], "every name once in m.dat, got 'w' twice"),
        (TORCHSHARP[:3] + b"\x08" + TORCHSHARP[4:], "a dtype of 'w' in m.dat, got number 8"),
        (b"\1\1\xff", "a name in UTF-8 in m.dat, got other bytes"),
        (b"\1\1\n", "a name in m.dat, got one with control characters"),
        (b"\xff" * 9 + b"\1", "a number of tensors in m.dat, got a number beyond 63 bits"),
        (b"\1\1w\6\2\0" + b"\xff" * 8 + b"\x7f", "bytes at most for 'w' in m.dat, got shape"),
        (b"\1\1w\x0b\1\1\2", "bytes 0 and 1 as booleans of 'w' in m.dat, got others"),
    ],
)
def test_damaged_torchsharp_files_are_refused(content: bytes, got: str, tmp_path: Path) -> None:
    """No part of a file is taken for a whole one, no size believed. Spec: R29.2."""
    (tmp_path / "m.dat").write_bytes(content)
    with pytest.raises(CheckpointError, match=got):
        load_torchsharp(tmp_path / "m.dat")


def test_names_change() -> None:
    """A prefix goes, the first pattern that fits maps, a prefix comes. Spec: R29.3."""
    names = ["m.layers.0.weight", "m.layers.1.weight", "m.head", "other"]
    table = [("layers.0.*", "first.*"), ("layers.*.*", "blocks.*.w.*"), ("head", "top")]
    assert list(rename(names, table, "m.", "net.").values()) == [
        "net.first.weight",
        "net.blocks.1.w.weight",
        "net.top",
        "net.other",
    ]
    assert rename(["a+b"], [("a+b", "c\\1")]) == {"a+b": "c\\1"}


@pytest.mark.parametrize(
    ("table", "strip", "got"),
    [
        ([("a", "b")], None, "expected every new name once, got 'b' for 'a' and 'b'"),
        (
            [("x*", "y*"), ("a", "c")],
            None,
            r"expected a name for every pattern, got none for 'x\*'",
        ),
        ([("*", "c"), ("a", "d")], None, r"expected as many \* in 'c' as in '\*', got 0"),
        ([], "m.", "expected names that start with 'm.', got none"),
    ],
)
def test_names_that_do_not_fit_are_refused(
    table: list[tuple[str, str]], strip: str | None, got: str
) -> None:
    """Two of one name, and what fits nothing, are errors. Spec: R29.3."""
    with pytest.raises(ValueError, match=got):
        rename(["a", "b"], table, strip)


def test_maps_are_files(tmp_path: Path) -> None:
    """TOML and JSON say the same; tables are names with points. Spec: R29.3."""
    expected = [("a.*", "b.*"), ("c.d", "e")]
    (tmp_path / "m.json").write_text('{"a.*": "b.*", "c": {"d": "e"}}')
    assert read_mapping(tmp_path / "m.json") == expected
    (tmp_path / "m.json").write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r"expected a new name for 'a' in m\.json, got 1"):
        read_mapping(tmp_path / "m.json")
    (tmp_path / "m.json").write_text("[]")
    with pytest.raises(ValueError, match=r"expected names and new names in m\.json"):
        read_mapping(tmp_path / "m.json")
    pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    (tmp_path / "m.toml").write_text('"a.*" = "b.*"\nc.d = "e"\n')
    assert read_mapping(tmp_path / "m.toml") == expected
    (tmp_path / "m.toml").write_text("= 1")
    with pytest.raises(ValueError, match="expected TOML, got"):
        read_mapping(tmp_path / "m.toml")


def test_likeness_by_name_then_shape_and_order(tmp_path: Path) -> None:
    """A name comes before a shape, and the order of the target is kept. Spec: R29.4."""
    save(two(), tmp_path / "in.pt")
    like = {"bias": torch.empty(3), "y": torch.empty(3, 2), "z": torch.empty(3, 2).double()}
    save_file(like, tmp_path / "like.safetensors")
    plan = convert(tmp_path / "in.pt", tmp_path / "out.dat", like=tmp_path / "like.safetensors")
    assert [(row.source, row.target, row.note) for row in plan.rows] == [
        ("bias", "bias", ""),
        ("a.weight", "y", "by shape and order, first of 2"),
        ("b.weight", "z", "by shape, there float64"),
    ]
    assert float(load_torchsharp(tmp_path / "out.dat")["z"].sum()) == 6


def test_what_does_not_match_is_listed(tmp_path: Path) -> None:
    """Tensors and places without the other are named, nothing is written. Spec: R29.4."""
    save(two(), tmp_path / "in.pt")
    save(
        {"bias": torch.empty(4), "y": torch.empty(3, 2), "w": torch.empty(9)}, tmp_path / "like.pt"
    )
    plan = convert(tmp_path / "in.pt", tmp_path / "out.pt", like=tmp_path / "like.pt")
    assert plan.faults == [
        "shape differs: bias is (3,), expected (4,)",
        "missing: w (9,), no tensor of its name or shape left",
        "unexpected: b.weight (3, 2), no place of its name or shape left",
    ]
    assert not plan.written
    assert not (tmp_path / "out.pt").exists()


def test_dtypes(tmp_path: Path) -> None:
    """Integers stay; what becomes infinite is counted. Spec: R29.5."""
    save(
        {"i": torch.ones(1).long(), "f": torch.tensor([1e6, 1.0, float("inf")])}, tmp_path / "a.pt"
    )
    plan = convert(tmp_path / "a.pt", tmp_path / "b.safetensors", dtype="float16")
    assert [row.note for row in plan.rows] == ["", "from float32, 1 became infinite"]
    assert [t.dtype for t in load_file(tmp_path / "b.safetensors").values()] == [
        torch.int64,
        torch.float16,
    ]
    with pytest.raises(ValueError, match=r"expected a dtype of float16, .*, got 'int8'"):
        convert(tmp_path / "a.pt", tmp_path / "c.pt", dtype="int8")


def test_the_command(tmp_path: Path) -> None:
    """Targets are kept unless forced, a dry run writes nothing, exit codes tell. Spec: R29.6."""
    save(two(), tmp_path / "in.pt")
    save({"x": torch.empty(9)}, tmp_path / "like.pt")
    source, target = str(tmp_path / "in.pt"), str(tmp_path / "out.dat")

    def run(*options: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["convert", source, target, *options])
        return result.exit_code, result.output

    code, output = run("--dry-run")
    assert (code, "dry run: 3 tensors would go to" in output) == (0, True)
    assert not Path(target).exists()
    code, output = run("--like", str(tmp_path / "like.pt"))
    assert (code, "not written: 4 did not match" in output) == (1, True)
    assert not Path(target).exists()
    assert run()[0] == 0
    before = Path(target).read_bytes()
    assert run("--prefix", "n.")[0] == 2
    assert Path(target).read_bytes() == before
    assert run("--prefix", "n.", "--force")[0] == 0
    assert next(iter(load_torchsharp(target))) == "n.a.weight"
    assert run("--format", "onnx", "--force")[0] == 2
    target = str(tmp_path / "none" / "out.dat")
    assert run() == (2, f"error: convert: expected a folder for {target}, got none\n")
    source, target = str(tmp_path / "none.pt"), str(tmp_path / "out.dat")
    assert run("--force")[0] == 2
