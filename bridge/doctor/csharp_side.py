"""What the doctor finds of C#, from outside and from inside."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from bridge.doctor import glibcxx
from bridge.doctor.finding import Finding
from bridge.dotnet import DotnetError, Host, folders, start

_BINDING = "libLibTorchSharp.so"


def outside() -> Iterator[Finding]:
    """Look for .NET, the built C# side, the worker's Python, and libstdc++.

    Spec: R32.1, R32.3
    """
    try:
        root, library = folders.hostfxr()
        yield Finding(".NET", "ok", f"{library.parent.name} in {root}")
    except DotnetError as error:
        yield _missing(".NET", error)
    command = shutil.which("dotnet")
    if command:
        yield Finding("dotnet command", "ok", command)
    else:
        remedy = "install the .NET 10 SDK from https://dot.net"
        yield Finding("dotnet command", "note", "not on PATH: C# cannot be built", remedy)
    try:
        folder = folders.host_folder()
        yield Finding("BridgeSharp.Host", "ok", str(folder))
        yield from _libstdcxx(folder)
    except DotnetError as error:
        yield _missing("BridgeSharp.Host", error)
    worker = os.environ.get("BRIDGE_WORKER_PYTHON")
    yield Finding("worker's Python", "ok", worker or f"{sys.executable} (the caller's)")


def connect() -> tuple[Host | None, Finding]:
    """Start a host; it is what tells whether all of it works together.

    Spec: R32.2
    """
    try:
        host = start()
    except DotnetError as error:
        return None, _missing("host isolated", error)
    versions = host.versions
    text = f"works: BridgeSharp {versions['bridgesharp']}, {versions['dotnet']}"
    return host, Finding("host isolated", "ok", text)


def inside(host: Host) -> Iterator[Finding]:
    """Ask C# what it finds itself.

    Spec: R32.1
    """
    for finding in host.call("doctor"):
        yield Finding(f"C# {finding.pop('name')}", **finding)


def _missing(name: str, error: DotnetError) -> Finding:
    """Split an error of the way to C# into what is missing and what mends it."""
    value, *lines = error.message.splitlines()
    if lines:  # libtorch does not load: the folders searched, and in the end what to do
        return Finding(name, "missing", value, " ".join(line.strip() for line in lines[-2:]))
    value, _, remedy = error.message.partition(": run ")
    if remedy:
        return Finding(name, "missing", value, f"run {remedy}")
    value, _, remedy = error.message.rpartition(": ")
    return Finding(name, "missing", value or error.message, remedy if value else "")


def _libstdcxx(folder: Path) -> Iterator[Finding]:
    """Compare what TorchSharp's binding needs of libstdc++ with what the system has."""
    binding = next((path for path in _bindings(folder) if path.is_file()), None)
    library = glibcxx.library()
    if binding is None or library is None:
        return
    needed, there = glibcxx.newest(binding), glibcxx.newest(library)
    if needed is None or there is None:
        return
    text = f"TorchSharp needs GLIBCXX_{needed}, the system has {there} ({library})"
    if glibcxx.older(there, needed):
        text += "; BridgeSharp loads a copy without that need"
        yield Finding("libstdc++", "note", text)
    else:
        yield Finding("libstdc++", "ok", text)


def _bindings(folder: Path) -> Iterator[Path]:
    """List where TorchSharp's binding can be: in the output, or in NuGet's package folders."""
    yield from folder.rglob(_BINDING)
    options = json.loads((folder / f"{folders.HOST}.runtimeconfig.json").read_text("utf-8"))
    named = options["runtimeOptions"].get("configProperties", {})
    for root in str(named.get("BridgeSharp.NuGetPackageFolders", "")).split(";"):
        if root:
            yield from Path(root, "torchsharp").rglob(_BINDING)
