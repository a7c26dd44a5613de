"""What tests of every folder share: a host, and a small data set."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import bridge.dotnet
from bridge.dotnet import folders


@pytest.fixture(scope="session")
def host_folder() -> Path:
    """Find the built host, or skip, where there is no C# side on this machine."""
    try:
        folders.hostfxr()
        return folders.host_folder()
    except bridge.dotnet.DotnetError as error:
        pytest.skip(f"no C# side: {error}")


@pytest.fixture(scope="session")
def shared_host(host_folder: Path) -> Iterator[bridge.dotnet.IsolatedHost]:
    """Start a host for all tests that leave it alive."""
    with bridge.dotnet.start(host_folder=host_folder) as host:
        yield host


@pytest.fixture
def small_data(tmp_path: Path) -> Path:
    """Write a data set of Fashion-MNIST's form: 10 training and 6 test images."""
    folder = tmp_path / "data"
    folder.mkdir()
    generator = torch.Generator().manual_seed(1)
    for stem, count in (("train", 10), ("t10k", 6)):
        images = torch.randint(0, 256, (count, 28, 28), generator=generator, dtype=torch.uint8)
        labels = torch.randint(0, 10, (count,), generator=generator, dtype=torch.uint8)
        for name, values in (("images-idx3", images), ("labels-idx1", labels)):
            sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
            head = bytes([0, 0, 8, values.dim()]) + sizes
            (folder / f"{stem}-{name}-ubyte").write_bytes(head + values.numpy().tobytes())
    return folder
