"""The names of devices."""

import pytest
import torch

from bridge import scatter
from bridge.parallel.devices import as_devices
from tests.python.spec.vectors import Case, cases, refusal


@cases("devices")
def test_vectors(case: Case) -> None:
    """Devices are read, or refused in the words of the vectors. Spec: R1.5, R1.8."""
    with refusal(case):
        devices = as_devices("scatter", case["devices"])
        assert [str(device) for device in devices] == case["devices"]


def test_a_gpu_that_is_not_there_is_refused() -> None:
    """The error says which, and how many there are. Spec: R1.8."""
    count = torch.cuda.device_count()
    with pytest.raises(ValueError, match="scatter") as caught:
        scatter(torch.ones(2), ["cpu", f"cuda:{count}"])
    expected = f"scatter: expected device cuda:{count} on this machine, got {count} GPUs"
    assert str(caught.value) == expected
