"""The functions of the example that trains from raw tensors."""

from pathlib import Path

import pytest
import torch

from bridge.examples import Setting
from bridge.examples.from_scratch import allreduce, get_params, lenet, run, split_batch, train_batch
from bridge.examples.from_scratch.raw_lenet import NAMES, draw_params, gradients
from bridge.models import LeNet


def test_raw_parameters_are_those_of_the_model() -> None:
    """The model takes them by their names, and returns the same logits. Spec: R23.1."""
    params, model = draw_params(1, torch.float64), LeNet().double()
    model.load_state_dict(dict(zip(NAMES, params, strict=True)))
    images = torch.randn(2, 1, 28, 28, dtype=torch.float64)
    assert torch.equal(lenet(images, params), model(images))


def test_get_params_copies() -> None:
    """Parameters that are on the device already are copied too. Spec: R23.3."""
    params = draw_params(1, torch.float64)
    copies = get_params(params, "cpu")
    assert all(copy.requires_grad and copy.is_leaf for copy in copies)
    assert all(a.data_ptr() != b.data_ptr() for a, b in zip(copies, params, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(copies, params, strict=True))


def test_allreduce_leaves_the_sum_everywhere() -> None:
    """Each tensor becomes the sum of all. Spec: R23.3."""
    data = [torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.0]), torch.tensor([-4.0, 1.0])]
    allreduce(data)
    assert [tensor.tolist() for tensor in data] == [[-2.5, 3.0]] * 3


def test_split_batch_names_what_does_not_fit() -> None:
    """Images and labels of different numbers are refused. Spec: R23.3."""
    with pytest.raises(ValueError, match=r"^scatter: expected inputs\[1\] to have the batch size"):
        split_batch(torch.zeros(3, 1, 28, 28), torch.zeros(2), ["cpu"])


@pytest.mark.parametrize("samples", [2, 5])
def test_devices_without_samples_follow(samples: int) -> None:
    """However many devices have samples, all end as one device does. Spec: R23.3."""
    params = draw_params(1, torch.float64)
    images = torch.randn(samples, 1, 28, 28, dtype=torch.float64)
    labels = torch.arange(samples)
    ends = []
    for count in (1, 3):
        device_params = [get_params(params, "cpu") for _ in range(count)]
        losses = [
            train_batch(images, labels, device_params, ["cpu"] * count, 0.01) for _ in range(2)
        ]
        assert losses[1] < losses[0]
        for other in device_params[1:]:
            assert all(torch.equal(a, b) for a, b in zip(other, device_params[0], strict=True))
        ends.append([*device_params[0], *gradients(device_params[0])])
    largest = max(tensor.abs().max().item() for tensor in ends[0])
    for one, other in zip(*ends, strict=True):
        assert (one - other).abs().max() <= 1e-12 * largest


def test_every_way_trains_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """More replicas than channels, and no data set: all ways end with one loss. Spec: R23.3."""
    monkeypatch.setattr("bridge.data.fashion_mnist.DEBIAN_FOLDER", tmp_path)
    lines: list[str] = []
    numbers = run(Setting(steps=2, replicas=21, dtype="float64"), lines.append).numbers
    assert lines[0] == "data: drawn, for Fashion-MNIST is not here"
    last = [value for name, value in numbers.items() if name.startswith("last loss")]
    assert len(last) == 4
    assert max(last) - min(last) < 1e-12
    assert last[0] < numbers["first loss"]
