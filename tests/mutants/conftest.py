"""A host, and the assembly of ports."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import bridge.dotnet
from bridge.dotnet import folders

NAME = "BridgeSharp.Mutants"


@pytest.fixture(scope="session")
def host_folder() -> Path:
    """Find the built host, or skip, where there is no C# side on this machine."""
    try:
        folders.hostfxr()
        return folders.host_folder()
    except bridge.dotnet.DotnetError as error:
        pytest.skip(f"no C# side: {error}")


@pytest.fixture(scope="session")
def host(host_folder: Path) -> Iterator[bridge.dotnet.Host]:
    """Start a host for all ports."""
    with bridge.dotnet.start(host_folder=host_folder) as host:
        yield host


@pytest.fixture(scope="session")
def assembly(host_folder: Path) -> Path:
    """Find the ports beside the host in the build output, or skip."""
    found = host_folder.parents[1] / NAME / "release" / f"{NAME}.dll"
    if not found.is_file():
        pytest.skip(f"no {found.name} at {found}: run ./build.sh setup")
    return found
