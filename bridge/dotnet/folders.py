"""Where .NET and the C# side of bridge are on this machine."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from bridge.dotnet.errors import DotnetError

HOST = "BridgeSharp.Host"
FILES = (
    f"{HOST}.dll",
    f"{HOST}.runtimeconfig.json",
    "BridgeSharp.dll",
    "BridgeSharp.Models.dll",
    "TorchSharp.dll",
)
_BUILT = Path(__file__).parents[2] / "csharp" / "artifacts" / "bin" / HOST / "release"
HOSTFXR = {"win32": "hostfxr.dll", "darwin": "libhostfxr.dylib"}.get(sys.platform, "libhostfxr.so")


def host_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Find the folder with BridgeSharp.Host.dll and what it needs.

    Args:
        folder: where it is; else ``BRIDGE_HOST_FOLDER``, else the build output of the repository.

    Raises:
        DotnetError: something is missing there.
    """
    found = Path(folder or os.environ.get("BRIDGE_HOST_FOLDER") or _BUILT).absolute()
    for name in FILES:
        if not (found / name).is_file():
            message = (
                f"host_folder: expected {name} in {found}, found none: "
                "run ./build.sh setup, or name the folder with BRIDGE_HOST_FOLDER"
            )
            raise DotnetError(message)
    return found


def hostfxr() -> tuple[Path, Path]:
    """Find .NET.

    Returns:
        Its root folder, and the newest library in it that starts a runtime.

    Raises:
        DotnetError: there is none on this machine.
    """
    roots = list(dict.fromkeys(_roots()))
    for root in roots:
        libraries = [lib for lib in (root / "host" / "fxr").glob(f"*/{HOSTFXR}") if lib.is_file()]
        if libraries:
            return root, max(libraries, key=lambda library: version(library.parent.name))
    searched = ", ".join(str(root) for root in roots)
    message = (
        f"hostfxr: expected .NET 10 on this machine, found none in {searched}: "
        "install it from https://dot.net, or name its folder with DOTNET_ROOT"
    )
    raise DotnetError(message)


def version(text: str) -> tuple[tuple[int, ...], bool, list[tuple[int, str]]]:
    """Return a key that sorts as .NET does: 9.0.1 < 10.0.0-rc.2 < 10.0.0-rc.10 < 10.0.0."""
    numbers, _, label = text.partition("-")
    parts = [(int(part), "") if part.isdigit() else (-1, part) for part in label.split(".")]
    return tuple(int(number) for number in re.findall(r"\d+", numbers)), not label, parts


def _roots() -> Iterator[Path]:
    """List the folders where .NET may be, the most specific first."""
    if named := os.environ.get("DOTNET_ROOT"):
        yield Path(named)
    if command := shutil.which("dotnet"):
        yield Path(command).resolve().parent
    if sys.platform == "win32":
        for variable, under in (("ProgramFiles", ""), ("LOCALAPPDATA", "Microsoft")):
            if base := os.environ.get(variable):
                yield Path(base, under, "dotnet")
        return
    installed = Path("/etc/dotnet/install_location")
    if installed.is_file():
        yield Path(installed.read_text(encoding="utf-8").strip())
    yield from (Path("/usr/local/share/dotnet"), Path("/opt/homebrew/opt/dotnet/libexec"))
    yield from (Path("/usr/share/dotnet"), Path("/usr/lib/dotnet"), Path("/usr/lib64/dotnet"))
    if home := os.environ.get("HOME"):
        yield Path(home, ".dotnet")
