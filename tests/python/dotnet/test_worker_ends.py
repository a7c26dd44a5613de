"""However the caller or the worker ends, the other one learns of it, and nothing stays behind."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bridge.dotnet import IsolatedHost, WorkerDied, start
from tests.python.dotnet.programs import HANG, Parent, alive, wait_until_gone

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")

BATCH = torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64)
Run = Callable[[str], Parent]


def shared_memory() -> list[str]:
    """List what lies in /dev/shm."""
    folder = Path("/dev/shm")  # noqa: S108 - looks, and writes nothing
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def test_killed_worker_fails_the_step_and_all_later_calls(
    host: IsolatedHost, user_code: Path
) -> None:
    """A worker killed in mid-step is an error at once that says what happened to it.

    Spec: R16.4.
    """
    trainer = host.trainer("UserCode.Sleeper", assembly=user_code, arguments=[60.0])
    steps = [trainer.step_async(*BATCH), host.submit("hello")]
    os.kill(host.pid, signal.SIGKILL)
    expected = (
        rf"dotnet worker \(pid {host.pid}\) was killed by SIGKILL while running 'trainer.step'"
    )
    for step in steps:
        with pytest.raises(WorkerDied, match=expected):
            step.result(HANG)
    with pytest.raises(WorkerDied, match=expected):
        trainer.step(*BATCH)
    trainer.close()
    host.close()
    assert not alive(host.pid)


def test_worker_that_ends_itself_is_an_error_with_its_last_lines(
    host: IsolatedHost, user_code: Path
) -> None:
    """C# code that exits the process is told apart from a kill. Spec: R16.4."""
    host.trainer("UserCode.Chatty", assembly=user_code).step(*BATCH)
    trainer = host.trainer("UserCode.Quitter", assembly=user_code, arguments=[3])
    with pytest.raises(WorkerDied, match="exited with code 3 while running") as info:
        trainer.step(*BATCH)
    assert "Chatty: to the error stream" in info.value.output


def test_closed_host_leaves_no_process(host: IsolatedHost) -> None:
    """Closing ends and reaps the worker, once or twice; a later call says that it is closed.

    Spec: R16.4.
    """
    host.close()
    host.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(host.pid, os.WNOHANG)
    with pytest.raises(WorkerDied, match=r"the host of dotnet worker \(pid \d+\) is closed"):
        host.call("hello")


def test_closing_in_mid_step_does_not_wait_for_it(host: IsolatedHost, user_code: Path) -> None:
    """A step that would take a minute ends with its host. Spec: R16.4."""
    trainer = host.trainer("UserCode.Sleeper", assembly=user_code, arguments=[60.0])
    step = trainer.step_async(*BATCH)
    host.close()
    assert not alive(host.pid)
    with pytest.raises(WorkerDied, match="is closed"):
        step.result(HANG)


def test_forgotten_host_ends(host_folder: Path) -> None:
    """A host that nobody holds any more takes its worker along. Spec: R16.4."""
    pid = start(host_folder=host_folder).pid
    wait_until_gone(pid)


def test_killed_parent_takes_its_worker_along(parent: Run) -> None:
    """A parent killed in mid-step leaves no worker and no shared memory. Spec: R16.4."""
    before = shared_memory()
    program = parent(
        "host = bridge.dotnet.start()\nstep = sleeper(host).step_async(*batch())\n"
        "say(host.pid)\nstep.result()"
    )
    (worker,) = program.said()
    assert alive(worker)
    program.send(signal.SIGKILL)
    wait_until_gone(worker)
    assert shared_memory() == before


def test_killed_parent_takes_its_worker_along_although_a_fork_lives_on(parent: Run) -> None:
    """A fork of the parent that keeps the pipes open does not keep the worker alive.

    Spec: R16.4.
    """
    program = parent(
        "host = bridge.dotnet.start()\nstep = sleeper(host).step_async(*batch())\n"
        "fork = os.fork()\nif fork == 0:\n    time.sleep(60)\n    os._exit(0)\n"
        "say(host.pid, fork)\nstep.result()"
    )
    worker, fork = program.said()
    program.send(signal.SIGKILL)
    try:
        wait_until_gone(worker)
        assert alive(fork)
    finally:
        os.kill(fork, signal.SIGKILL)


def test_interrupt_ends_both(parent: Run) -> None:
    """Ctrl-C in mid-step ends the parent as it would any program, and the worker with it.

    Spec: R16.4.
    """
    program = parent(
        "with bridge.dotnet.start() as host, sleeper(host) as trainer:\n"
        "    say(host.pid)\n    trainer.step(*batch())"
    )
    (worker,) = program.said()
    program.send(signal.SIGINT)
    code, errors = program.ended()
    assert code == -signal.SIGINT
    assert errors.strip().endswith("KeyboardInterrupt")
    wait_until_gone(worker)


def test_program_that_closes_nothing_ends_cleanly(parent: Run) -> None:
    """A program that ends with a host open, in mid-step, ends at once and quietly. Spec: R16.4."""
    program = parent(
        "host = bridge.dotnet.start()\nstep = sleeper(host).step_async(*batch())\nsay(host.pid)"
    )
    (worker,) = program.said()
    assert program.ended() == (0, "")
    wait_until_gone(worker)


def test_fork_cannot_use_or_end_the_host_of_its_parent(parent: Run) -> None:
    """A forked child gets an error instead of a hang, and its end leaves the worker alone.

    Spec: R16.4.
    """
    program = parent(
        "host = bridge.dotnet.start()\nfork = os.fork()\nif fork == 0:\n"
        "    try:\n        host.call('hello')\n"
        "    except bridge.dotnet.DotnetError as error:\n"
        "        host.close()\n        sys.exit('not to its forks' not in str(error))\n"
        "_, status = os.waitpid(fork, 0)\nsay(status)\nhost.call('hello')"
    )
    assert program.said() == [0]
    assert program.ended() == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_worker_has_no_torch_in_it(shared_host: IsolatedHost) -> None:
    """The worker maps one libtorch, TorchSharp's, and no Python torch. Spec: R16.4."""
    maps = Path(f"/proc/{shared_host.pid}/maps").read_text(encoding="utf-8")
    libraries = {line.split()[-1] for line in maps.splitlines() if "libtorch_cpu" in line}
    assert len(libraries) == 1
    assert "libtorch_python" not in maps
