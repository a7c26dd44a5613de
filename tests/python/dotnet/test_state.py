"""The state of a C# model, out and in, through shared memory."""

from collections.abc import Callable

import pytest
import torch

from bridge.dotnet import DotnetError
from bridge.dotnet.tensors import DTYPES
from bridge.dotnet.trainer import Trainer

Make = Callable[..., Trainer]

COUNT = 10_000_000


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """View a float32 tensor as integers, so that equal means the same bits."""
    return tensor.view(torch.int32)


def test_ten_million_values_keep_their_bits(make: Make) -> None:
    """Any bits go in and come out again, also those of NaN, -0 and denormal numbers.

    Spec: R16.2.
    """
    with make("Large", COUNT) as trainer:
        generator = torch.Generator().manual_seed(1)
        raw = torch.randint(-(2**31), 2**31 - 1, (COUNT,), generator=generator, dtype=torch.int64)
        weight = raw.to(torch.int32).view(torch.float32)
        trainer.load_state_dict({"weight": weight})
        first, second = trainer.state_dict()["weight"], trainer.state_dict()["weight"]
        assert torch.equal(bits(first), bits(weight))
        first.zero_()
        assert torch.equal(bits(second), bits(weight))


def test_every_dtype_crosses(make: Make) -> None:
    """Buffers of every dtype that a float32 model has, a scalar and an empty tensor cross.

    Spec: R16.2.
    """
    kept = {dtype for dtype in DTYPES.values() if not dtype.is_floating_point}
    with make("Mixed") as trainer:
        state = trainer.state_dict()
        assert {t.dtype for t in state.values()} == kept | {torch.float32}
        changed = {name: torch.ones_like(tensor) for name, tensor in state.items()}
        trainer.load_state_dict(changed)
        for name, tensor in trainer.state_dict().items():
            assert tensor.dtype == changed[name].dtype
            assert torch.equal(tensor, changed[name]), name


def test_manifest_describes_the_state(make: Make) -> None:
    """The manifest lists the tensors in the order of the module, apart in memory. Spec: R16.2."""
    with make("Mixed") as trainer:
        manifest = trainer.manifest
        assert [entry["name"] for entry in manifest] == list(trainer.state_dict())
        assert all(entry["offset"] % 64 == 0 for entry in manifest)
        kinds = {entry["name"]: (entry["kind"], entry["trainable"]) for entry in manifest}
        assert kinds["layer.weight"] == ("parameter", True)
        assert kinds["scalar"] == ("buffer", False)


def test_wrong_names_and_shapes_are_refused(make: Make) -> None:
    """A strict load names what is missing, unexpected or of another shape, and changes nothing.

    Spec: R16.2.
    """
    with make("Tiny") as trainer:
        before = trainer.digest()
        with pytest.raises(DotnetError, match=r"(?s)layer\.bias.*other"):
            trainer.load_state_dict({"layer.weight": torch.zeros(2, 4), "other": torch.zeros(1)})
        with pytest.raises(DotnetError, match=r"layer\.weight"):
            trainer.load_state_dict(
                {"layer.weight": torch.zeros(4, 2), "layer.bias": torch.zeros(2)}
            )
        assert trainer.digest() == before


def test_step_follows_a_loaded_state_in_every_replica(make: Make) -> None:
    """A loaded state reaches all replicas, and the loss of the next step is its loss.

    Spec: R16.2.
    """
    inputs, targets = torch.ones(4, 4), torch.tensor([0, 1, 0, 1])
    state = {"layer.weight": torch.zeros(2, 4).double(), "layer.bias": torch.zeros(2).double()}
    with make("Tiny", replicas=3, dtype="float64") as trainer:
        trainer.load_state_dict(state)
        loss = trainer.step(inputs.double(), targets)
        assert loss == pytest.approx(0.6931471805599453, rel=1e-14)
