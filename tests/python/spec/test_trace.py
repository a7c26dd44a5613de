"""What a trace keeps of tensors, and that it is written as the program runs."""

import json
import math
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from bridge.trace import Record, TraceError, read
from bridge.trace.keeper import Keeper, observe
from bridge.trace.record import from_json
from bridge.trace.signs import words
from bridge.trace.writer import Writer
from tests.python.spec.vectors import Case, cases, number

ROOT = Path(__file__).parents[3]


def given(case: Case) -> torch.Tensor:
    """Read the tensor of a case."""
    if "ramp" not in case:
        numbers = np.array(case["tensor"]["tensor"], dtype=np.float64)
        return torch.from_numpy(numbers).to(getattr(torch, case["tensor"]["dtype"]))
    values = (torch.arange(case["ramp"]) * 7 % 64 - 32) / 8
    return values.to(getattr(torch, case["dtype"]))


@cases("trace")
def test_vectors_hold(case: Case) -> None:
    """Records of tensors are those of the vectors. Spec: R30.2."""
    contents, _ = observe(given(case))
    summary = contents.summary
    assert contents.digest == case.get("digest", contents.digest)
    assert (summary.nan, summary.infinite) == (case["nan"], case["inf"])
    numbers = [summary.norm, summary.minimum, summary.maximum]
    expected = [number(case[key]) for key in ("norm", "min", "max")]
    assert [repr(value) for value in numbers] == [repr(float(value)) for value in expected]
    projections = case["projections"]
    assert summary.projections == (None if projections is None else tuple(projections))


def test_stream_is_splitmix64() -> None:
    """The words behind the signs are those that others publish for seed 0. Spec: R30.2."""
    assert [hex(word) for word in words(0, 3).tolist()] == [
        "0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f",
    ]  # fmt: skip
    assert words(7, 2).tolist() == words(0, 9)[7:].tolist()


def test_layout_does_not_count() -> None:
    """A tensor of any layout, sparse or not, has the record of its copy. Spec: R30.2."""
    table = torch.arange(24.0).reshape(4, 6).requires_grad_()
    for view in (table.t(), table[:, 1:5], table[0].expand(3, 6)):
        assert observe(view)[0] == observe(view.detach().clone().contiguous())[0]
    assert observe(table.detach().to_sparse())[0] == observe(table)[0]


def test_a_complex_tensor_counts_as_two() -> None:
    """The summary of a complex tensor is that of its parts; its bytes are its own. Spec: R30.2."""
    parts = torch.tensor([[1.0, -2.0], [0.5, 4.0]])
    complex_, plain = observe(torch.view_as_complex(parts))[0], observe(parts)[0]
    assert (complex_.summary, complex_.digest) == (plain.summary, plain.digest)
    assert (complex_.dtype, complex_.shape) == ("complex64", (2,))


def test_what_cannot_be_taken_down_says_why() -> None:
    """A tensor without values is a record that was not observed. Spec: R30.5."""
    record = Record(0, "loss", 0, "loss", "loss")
    entry, content = Keeper(None, None).entry(record, torch.empty(3, device="meta"))
    assert entry.unobserved
    assert (entry.tensor, content) == (None, None)


def test_a_record_survives_json() -> None:
    """What is written is read again, numbers that are not finite included. Spec: R30.1."""
    place = (3, "forward", 1, "activation", "größe.0")
    for values in ([0.1, -3.0], [math.nan], [math.inf, 1.0], []):
        contents = observe(torch.tensor(values, dtype=torch.float64))[0]
        record = Record(*place, call=2, part="1", order=17, at="loop.py:3", tensor=contents)
        assert repr(from_json(json.loads(json.dumps(record.to_json())))) == repr(record)
    for value in (None, True, 3, 0.5, "SGD", [0.9, 0.999]):
        record = Record(*place, value=value)
        assert from_json(json.loads(json.dumps(record.to_json()))) == record


def test_whole_tensors_lie_beside(tmp_path: Path) -> None:
    """A tensor is kept whole where its name and step are asked for. Spec: R30.3."""
    values = torch.tensor([[0.5, -1.25], [3.0, 4.0]])
    keeper = Keeper("fc1.*", [1])
    with Writer(tmp_path, {}) as writer:
        places = [(step, name) for step in (0, 1) for name in ("fc1.weight", "fc10.weight")]
        records = [Record(step, "step", 0, "parameter", name) for step, name in places]
        writer.write([keeper.entry(record, values) for record in records])
        writer.close(2)
    trace = read(tmp_path)
    assert [trace.values(record) is not None for record in trace.records] == [0, 0, 1, 0]
    whole = trace.values(trace.records[2])
    assert whole is not None
    assert np.array_equal(whole, values.numpy())


LOOP = """
import os, signal, sys, torch, bridge
model = torch.nn.Linear(3, 2)
trace = bridge.trace(sys.argv[1], model)
for step in range(3):
    trace.inputs(torch.ones(1, 3))
    trace.loss(model(torch.ones(1, 3)).sum())
    trace.step()
trace.inputs(torch.ones(1, 3))
os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
"""


def test_a_killed_program_leaves_a_trace(tmp_path: Path) -> None:
    """What was recorded before a kill can be read, and the trace has no end. Spec: R30.3."""
    command = [sys.executable, "-c", LOOP, str(tmp_path / "trace")]
    ended = subprocess.run(command, cwd=ROOT, timeout=60, check=False)
    assert ended.returncode == -getattr(signal, "SIGKILL", signal.SIGTERM)
    trace = read(tmp_path / "trace")
    assert not trace.complete
    assert trace.steps == 4
    assert trace.records[-1].phase == "scatter"


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    """The last line may be half written; a damaged line before it is refused. Spec: R30.3."""
    with Writer(tmp_path, {}) as writer:
        writer.write([(Record(0, "loss", 0, "loss", "loss", value=1.0), None)] * 2)
    file = tmp_path / "trace.jsonl"
    text = file.read_text(encoding="utf-8")
    file.write_text(text[:-9], encoding="utf-8")
    assert len(read(tmp_path).records) == 1
    file.write_text(text.replace('"loss"', '"lo', 1), encoding="utf-8")
    with pytest.raises(TraceError, match=r"^trace: expected JSON in .*, line 2, got '"):
        read(tmp_path)


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    """A folder without a trace and a trace of another version are refused. Spec: R30.3."""
    with pytest.raises(TraceError, match=r"^trace: expected a folder with trace.jsonl, got "):
        read(tmp_path)
    (tmp_path / "trace.jsonl").write_text('{"format":"bridge trace","version":2}\n')
    with pytest.raises(
        TraceError, match=r"^trace: expected bridge trace 1 in .*, got bridge trace 2$"
    ):
        read(tmp_path)
    (tmp_path / "trace.jsonl").write_text('{"format":"bridge trace","version":1}\n{"step":1}\n')
    with pytest.raises(
        TraceError, match=r"^trace: expected records in .*, got one without 'phase'$"
    ):
        read(tmp_path)


def test_reading_needs_no_torch(tmp_path: Path) -> None:
    """Traces are read and compared in a Python without torch. Spec: R30.3."""
    Writer(tmp_path, {}).close(0)
    check = "import sys; sys.modules['torch'] = None; from bridge.trace import compare; "
    check += "print(compare(sys.argv[1], sys.argv[1]).verdict)"
    ended = subprocess.run(
        [sys.executable, "-c", check, str(tmp_path)],
        cwd=ROOT, timeout=60, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.stdout.strip() == "incomparable"
