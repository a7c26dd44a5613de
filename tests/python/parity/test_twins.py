"""The recipe and its C# twin, and what turns the verdict."""

from pathlib import Path

import numpy as np
import pytest

from bridge.dotnet import IsolatedHost
from bridge.parity.compare import Rule
from bridge.parity.twins import Twins
from bridge.recipes import Options

pytestmark = pytest.mark.parity


def twins(host: IsolatedHost, rule: Rule, **options: object) -> Twins:
    """Set up both sides of a short job, in the dtype that the rule asks for."""
    dtype = "float32" if rule == "bitwise" else "float64"
    return Twins(Options(**{"batch": 48, "dtype": dtype, **options}), host, rule)  # type: ignore[arg-type]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_healthy_sides_stay_identical(
    shared_host: IsolatedHost, rule: Rule, optimizer: str
) -> None:
    """Real training steps on the data set leave identical parameters. Spec: R14.2, R15.1."""
    pair = twins(shared_host, rule, optimizer=optimizer)
    for _ in range(5):
        step = pair.step()
        assert step.identical
        assert step.python.batch == step.csharp.batch
    assert pair.first_divergence is None
    assert all(pair.moved().values())
    python, csharp = pair.evaluate(200)
    assert python == csharp
    pair.csharp.close()


def test_last_batch_of_an_epoch_is_smaller(
    shared_host: IsolatedHost, rule: Rule, small_data: Path
) -> None:
    """Nothing is dropped, and the next epoch has another order. Spec: R14.2, R14.3, R10.5."""
    pair = twins(shared_host, rule, data=str(small_data), batch=4, epochs=2)
    assert pair.python.planned_steps == 6
    steps = [pair.step() for _ in range(6)]
    assert [step.csharp.samples for step in steps] == [4, 4, 2, 4, 4, 2]
    assert [step.python.batch for step in steps] == [step.csharp.batch for step in steps]
    assert len({step.python.batch for step in steps}) == 6
    assert pair.first_divergence is None
    pair.csharp.close()


def test_another_learning_rate_diverges(shared_host: IsolatedHost, rule: Rule) -> None:
    """A learning rate changed on one side is noticed at that step. Spec: R15.2, R15.3."""
    pair = twins(shared_host, rule)
    assert pair.step().identical
    pair.csharp.set(lr=0.001 * (1 + 2**-10))
    assert not pair.step().identical
    assert pair.first_divergence is not None
    assert pair.first_divergence.step == 2
    assert pair.first_divergence.parameter in pair.start
    pair.csharp.close()


@pytest.mark.parametrize("name", ["conv1.weight", "fc2.bias"])
def test_one_weight_by_one_ulp_diverges(shared_host: IsolatedHost, rule: Rule, name: str) -> None:
    """One float32 ulp in one weight of one side is noticed, and the tensor named. Spec: R15.3."""
    pair = twins(shared_host, rule)
    assert pair.step().identical
    state = pair.csharp.state_dict()
    flat = state[name].reshape(-1)
    index = int(flat.abs().argmax())
    single = np.float32(flat[index].item())
    flat[index] += float(np.spacing(np.abs(single)))
    pair.csharp.load_state_dict(state)
    step = pair.step()
    assert not step.identical
    assert pair.first_divergence is not None
    assert pair.first_divergence.step == 2
    differing = [tensor.name for tensor in step.tensors if not tensor.same]
    assert name in differing
    pair.csharp.close()


def test_another_order_diverges(shared_host: IsolatedHost, rule: Rule) -> None:
    """Another batch on one side is noticed as such, before the parameters are. Spec: R15.2."""
    pair = twins(shared_host, rule)
    assert pair.step().identical
    next(pair.python._batches)  # noqa: SLF001
    pair.step()
    assert pair.first_divergence is not None
    assert (pair.first_divergence.step, pair.first_divergence.parameter) == (2, "batch")
    pair.csharp.close()
