"""Files that are replaced as a whole."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest
import torch

from bridge.checkpoint import atomic, read, save, save_file, write
from tests.python.spec.checkpoints import FILE, assert_exact, state

ROOT = Path(__file__).parents[3]
SAVER = """
import sys
from itertools import count
import torch
from bridge.checkpoint import write
for step in count():
    write({"model": {"weight": torch.full((300_000,), float(step))}, "step": step}, sys.argv[1])
    print(step, flush=True)
"""
LIMITED = """
import resource, sys
import torch
from bridge.checkpoint import write
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
write({"model": {"weight": torch.ones(300_000)}}, sys.argv[1])
"""


def run(program: str, path: Path) -> subprocess.Popen[str]:
    """Start a program that saves."""
    return subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    """Wait until a process has saved once."""
    assert process.stdout is not None
    return process.stdout.readline()


def test_killed_saves_leave_a_whole_file(tmp_path: Path) -> None:
    """A kill at any moment leaves the file of one save.

    The next save removes the rest. Spec: R26.7, R26.8.
    """
    path = tmp_path / FILE
    moment = random.Random(0)  # noqa: S311 - when to kill
    for _ in range(3):
        process = run(SAVER, path)
        try:
            assert first_line(process) == "0\n"
            time.sleep(moment.uniform(0, 0.05))
        finally:
            process.kill()
            process.communicate()
        tree = read(path)
        assert torch.equal(tree["model"]["weight"], torch.full((300_000,), float(tree["step"])))
    (tmp_path / f".{FILE}.0123456789abcdef.tmp").touch()
    (tmp_path / ".other.0123456789abcdef.tmp").touch()
    write(state(), path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".other.0123456789abcdef.tmp", FILE]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """A file that does not fit is an error that says so; the old one is whole. Spec: R26.7."""
    path = tmp_path / FILE
    write(state(), path)
    process = run(LIMITED, path)
    _, error = process.communicate()
    assert process.returncode == 1
    expected = f"expected to write {path}, which is as it was, got {os.strerror(errno.EFBIG)}"
    assert expected in error
    assert_exact(read(path), state())
    assert list(tmp_path.iterdir()) == [path]


def test_failures_leave_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails before the end leaves the old file, and no other. Spec: R26.7."""
    path = tmp_path / FILE
    write(state(), path)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def interrupted(_: IO[bytes]) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for write_one in (write, save):
            with pytest.raises(OSError, match="which is as it was, got") as caught:
                write_one({}, path)
            assert caught.value.errno == errno.ENOSPC
    with monkeypatch.context() as patch:
        patch.setattr(atomic, "_lock", interrupted)
        with pytest.raises(KeyboardInterrupt):
            save_file({}, path)
    assert_exact(read(path), state())
    assert list(tmp_path.iterdir()) == [path]


def test_folders_that_cannot_take_it(tmp_path: Path) -> None:
    """No folder, and a folder in the place of the file, are errors that name it. Spec: R26.7."""
    with pytest.raises(FileNotFoundError, match=r"expected to write .*none"):
        save({}, tmp_path / "none" / FILE)
    (tmp_path / FILE).mkdir()
    with pytest.raises(OSError, match="expected to write"):
        save({}, tmp_path / FILE)
    assert [p.name for p in tmp_path.iterdir()] == [FILE]


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="this user may write to every folder"
)
def test_read_only_folder_leaves_the_old_file(tmp_path: Path) -> None:
    """A folder that is read-only is an error that says so. Spec: R26.7."""
    path = tmp_path / FILE
    write(state(), path)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="which is as it was"):
            write({}, path)
    finally:
        tmp_path.chmod(0o700)
    assert_exact(read(path), state())


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_links_stay(tmp_path: Path) -> None:
    """A link stays a link, and what it points to is replaced. Spec: R26.7."""
    (tmp_path / "inner").mkdir()
    link = tmp_path / "latest"
    link.symlink_to(tmp_path / "inner" / FILE)
    write(state(), link)
    assert link.is_symlink()
    assert_exact(read(tmp_path / "inner" / FILE), state())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no file that is open")
def test_a_save_leaves_that_of_another_process(tmp_path: Path) -> None:
    """What another process is writing is not removed. Spec: R26.8."""
    path = tmp_path / FILE
    process = run(SAVER, path)
    try:
        first_line(process)
        others: list[Path] = []
        while not any(other.stat().st_size for other in others):
            process.send_signal(signal.SIGCONT)
            time.sleep(0.001)
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
            others = list(tmp_path.glob(".*.tmp"))
        write(state(), path)
        assert list(tmp_path.glob(".*.tmp")) == others
    finally:
        process.kill()
        process.communicate()
