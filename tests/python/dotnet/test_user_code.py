"""A C# library of the user's own, trained from Python."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

import pytest
import torch

from bridge.dotnet import DotnetError, IsolatedHost
from bridge.dotnet.trainer import Trainer

Make = Callable[..., Trainer]

INPUTS = torch.tensor([[0.5, -1.0, 0.25, 2.0], [1.0, 0.5, -0.5, 0.0], [-1.0, 0.25, 1.5, -2.0]])
TARGETS = torch.tensor([0, 1, 1])


def test_own_model_trains_as_in_torch(make: Make) -> None:
    """Steps of the C# trainer give what the same steps give in Python. Spec: R16.6."""
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    with make("Tiny", momentum=0.5, seed=1) as trainer:
        state = trainer.state_dict()
        assert list(state) == ["layer.weight", "layer.bias"]
        model.load_state_dict({name.removeprefix("layer."): t for name, t in state.items()})
        for _ in range(3):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(INPUTS), TARGETS)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            assert trainer.step(INPUTS, TARGETS) == pytest.approx(loss.item(), rel=1e-5)
        difference = trainer.state_dict()["layer.weight"] - model.weight.detach()
        assert difference.abs().max() < 1e-6


def test_learning_rate_can_be_changed(make: Make) -> None:
    """A learning rate of 0 leaves the parameters as they are. Spec: R16.6."""
    with make("Tiny") as trainer:
        start = trainer.digest()
        trainer.step(INPUTS, TARGETS)
        moved = trainer.digest()
        assert moved != start
        trainer.set(lr=0.0)
        trainer.step(INPUTS, TARGETS)
        assert trainer.digest() == moved


def test_same_seed_gives_the_same_model(make: Make) -> None:
    """Two trainers live side by side, and equal seeds make equal parameters. Spec: R16.6."""
    one = make("Tiny", seed=7)
    two = make("Tiny", seed=7)
    assert one.digest() == two.digest()
    one.step(INPUTS, TARGETS)
    assert one.digest() != two.digest()
    one.close()
    one.close()
    two.step(INPUTS, TARGETS)
    two.close()


def test_wrong_type_is_named(make: Make) -> None:
    """A type that the library does not have is named in the error. Spec: R16.5."""
    with pytest.raises(DotnetError, match=r"UserCode\.Missing"):
        make("Missing")


def test_missing_library_is_named(shared_host: IsolatedHost, tmp_path: Path) -> None:
    """A library that is not there is an error that is a FileNotFoundError too. Spec: R16.5."""
    with pytest.raises(FileNotFoundError, match=r"Nowhere\.dll"):
        shared_host.trainer("UserCode.Tiny", assembly=tmp_path / "Nowhere.dll")


def test_constructor_that_throws(make: Make) -> None:
    """What a constructor throws arrives as itself, not as a reflection error around it.

    Spec: R16.3.
    """
    with pytest.raises(ValueError, match="Bomb: expected calm, got a bomb") as info:
        make("Bomb")
    assert isinstance(info.value, DotnetError)
    assert "Modules.cs" in info.value.stack


def test_forward_that_throws_names_replica_and_device(make: Make) -> None:
    """A failure in one replica says which, where, and both stacks; the trainer stays usable.

    Spec: R16.3.
    """
    with make("Fragile", replicas=2, seed=1) as trainer:
        before = trainer.digest()
        with pytest.raises(
            DotnetError, match=r"in replica 1 on device cpu: .*too negative"
        ) as info:
            trainer.step(INPUTS, TARGETS)
        (failure,) = info.value.failures
        assert (failure.replica, failure.device) == (1, "cpu")
        assert failure.type == "System.ArithmeticException"
        assert "UserCode.Fragile.forward" in failure.stack
        assert "Facade" in info.value.stack
        assert trainer.digest() == before
        trainer.step(INPUTS[:2], TARGETS[:2])


def test_console_output_reaches_stderr(
    shared_host: IsolatedHost, make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    """What C# prints does not disturb the calls, and is shown. Spec: R16.6."""
    with make("Chatty") as trainer:
        for _ in range(3):
            trainer.step(INPUTS, TARGETS)
        trainer.digest()
    shared_host.call("hello")
    errors, deadline = "", monotonic() + 10
    while errors.count("Chatty") < 6 and monotonic() < deadline:
        errors += capsys.readouterr().err
        sleep(0.01)
    assert errors.count("Chatty: to the error stream") == 3
    assert errors.count("Chatty: good day, 世界") == 3


def test_python_computes_while_csharp_does(make: Make) -> None:
    """Steps can be in flight together; their arguments are copied when they are started.

    Spec: R16.6.
    """
    with make("Tiny", lr=0.0, seed=1) as trainer:
        expected = [trainer.step(INPUTS * k, TARGETS) for k in range(3)]
        inputs, steps = INPUTS.clone(), []
        for k in range(3):
            inputs.copy_(INPUTS * k)
            steps.append(trainer.step_async(inputs, TARGETS))
        assert [step.result() for step in steps] == expected


def test_threads_share_a_host(make: Make) -> None:
    """Threads that train at the same time do not disturb each other's batches and states.

    Spec: R16.6.
    """

    def train(seed: int) -> list[object]:
        with make("Tiny", seed=1) as trainer:
            inputs = INPUTS * seed
            return [
                (
                    trainer.step(inputs, TARGETS),
                    trainer.digest(),
                    trainer.state_dict()["layer.bias"],
                )
                for _ in range(20)
            ]

    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(train, range(3)))
    assert repr(together) == repr([train(seed) for seed in range(3)])


def test_reply_fails_alone(shared_host: IsolatedHost) -> None:
    """A method that does not exist is an error of that call, not of the host. Spec: R16.3."""
    with pytest.raises(DotnetError, match=r"no\.such\.method"):
        shared_host.call("no.such.method")
    assert shared_host.call("hello")["dotnet"] == shared_host.versions["dotnet"]
    with pytest.raises(TypeError):
        shared_host.call("hello", unserializable=object())
    assert shared_host.call("hello")
