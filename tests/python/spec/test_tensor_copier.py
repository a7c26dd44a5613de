"""Copying the tensors of a model."""

from typing import Any

import pytest
import torch
from torch import nn

from bridge import replicate
from tests.python.spec.holder import Holder
from tests.python.spec.vectors import assert_same


def copied(model: Holder) -> Holder:
    """Make one copy."""
    return replicate(model, ["cpu", "cpu"])[1]


def test_shared_storage_stays_shared() -> None:
    """Tensors that share storage do so in the copy, and not with the original. Spec: R4.7."""
    flat = torch.arange(6.0)
    transposed = nn.Parameter(flat[2:].reshape(2, 2).t())
    copy, view = copied(Holder((flat, transposed))).held
    assert_same(view, transposed)
    with torch.no_grad():
        view.zero_()
    assert copy.tolist() == [0, 1, 0, 0, 0, 0]
    assert flat.tolist() == [0, 1, 2, 3, 4, 5]
    (view.sum() * 2).backward()
    assert float(view.grad.sum()) == 8


def test_kinds_are_copied() -> None:
    """Values of every kind come along: dtype, strides, sparse, scalar, empty. Spec: R4.7."""
    channels_last = torch.rand(1, 2, 3, 3).permute(0, 3, 1, 2)
    tensors = [
        channels_last,
        torch.tensor([True]),
        torch.empty(0, 3),
        torch.ones(2, dtype=torch.bfloat16),
        torch.ones(2, dtype=torch.int64),
        torch.eye(3).to_sparse(),
    ]
    copies = copied(Holder(tensors)).held
    assert [copy.layout for copy in copies] == [tensor.layout for tensor in tensors]
    assert_same(
        [copy.to_dense() if copy.is_sparse else copy for copy in copies],
        [tensor.to_dense() if tensor.is_sparse else tensor for tensor in tensors],
    )
    assert copies[0].stride() == channels_last.stride()


def test_results_are_copied_as_values() -> None:
    """What a forward left behind is copied as a value, without its graph. Spec: R4.7."""
    model = Holder()
    model.held = model(torch.ones(1, 2))
    copy = copied(model).held
    assert_same(copy, model.held.detach())
    assert not copy.requires_grad


def test_generators_are_copied() -> None:
    """A generator goes on from the same state, on its own. Spec: R4.7."""
    generator = torch.Generator().manual_seed(7)
    torch.rand(3, generator=generator)
    copy = copied(Holder(generator)).held
    assert_same(torch.rand(5, generator=copy), torch.rand(5, generator=generator))


def test_tensors_elsewhere_stay_there() -> None:
    """What is not on the model's device is copied where it is. Spec: R4.7."""
    copy = copied(Holder(torch.ones(2, device="meta"))).held
    assert copy.device.type == "meta"


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="no two GPUs here")
def test_copies_go_to_their_device() -> None:
    """A copy lives on the device of its replica. Spec: R4.6, R4.7."""
    layers: Any = nn
    recurrent = layers.LSTM(3, 4)
    model = Holder([torch.ones(2, device="cuda:0"), recurrent.to("cuda:0")]).to("cuda:0")
    copy = replicate(model, ["cuda:0", "cuda:1"])[1]
    tensors = [*copy.parameters(), copy.held[0], *copy.held[1].parameters()]
    assert {str(tensor.device) for tensor in tensors} == {"cuda:1"}
    assert copy.held[1](torch.ones(2, 2, 3, device="cuda:1"))[0].device.index == 1
