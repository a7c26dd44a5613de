"""Starts .NET in this process and hands over the C# facade."""

import ctypes
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import Any

from bridge.dotnet.errors import DotnetError
from bridge.dotnet.folders import HOST, hostfxr

Facade = Callable[[str, int, int], str]

_LOAD_ASSEMBLY_AND_GET_FUNCTION_POINTER = 5
_TEXT = ctypes.c_wchar_p if os.name == "nt" else ctypes.c_char_p


class _Parameters(ctypes.Structure):
    """hostfxr_initialize_parameters."""

    _fields_ = (("size", c_size_t), ("host_path", _TEXT), ("dotnet_root", _TEXT))


def load(folder: Path) -> Facade:
    """Start .NET and load the host library.

    pip's pythonnet is used where it is installed, else the Python.Runtime.dll of NuGet's package,
    which the build put into the folder.

    Args:
        folder: it holds BridgeSharp.Host.dll, its runtime configuration and Python.Runtime.dll.

    Returns:
        The facade: a request, an address and a length in, a reply out.

    Raises:
        DotnetError: .NET or a library is missing or does not start.
    """
    root, library = hostfxr()
    configuration = folder / f"{HOST}.runtimeconfig.json"
    if importlib.util.find_spec("pythonnet"):
        _start_installed(root, configuration)
    else:
        _start_packaged(root, library, configuration, folder / "Python.Runtime.dll")
    clr: Any = importlib.import_module("clr")
    clr.AddReference(str(folder / f"{HOST}.dll"))
    call: Facade = importlib.import_module(HOST).Facade.Call
    return call


def _start_installed(root: Path, configuration: Path) -> None:
    """Start .NET with pip's pythonnet."""
    pythonnet: Any = importlib.import_module("pythonnet")
    try:
        pythonnet.load("coreclr", runtime_config=str(configuration), dotnet_root=str(root))
    except Exception as error:
        message = f"load: pythonnet did not start .NET from {root} in {_python()}: {error}"
        raise DotnetError(message) from error


def _start_packaged(root: Path, library: Path, configuration: Path, runtime: Path) -> None:
    """Start .NET with NuGet's Python.Runtime.dll."""
    if sys.version_info < (3, 11):
        message = (
            f"load: expected Python 3.11 or later for NuGet's Python.Runtime, got {_python()}: "
            "install pythonnet there with pip, or name another Python with worker_python or "
            "BRIDGE_WORKER_PYTHON"
        )
        raise DotnetError(message)
    if not runtime.is_file():
        message = (
            f"load: expected {runtime.name} in {runtime.parent}, found none: run ./build.sh setup"
        )
        raise DotnetError(message)
    get = _function_getter(root, library, configuration)
    initialize = c_void_p()
    names = _text("Python.Runtime.Loader, Python.Runtime"), _text("Initialize")
    _check("Python.Runtime", get(_text(runtime), *names, None, None, byref(initialize)))
    run = ctypes.PYFUNCTYPE(c_int, c_void_p, c_int)(initialize.value or 0)
    if run(ctypes.cast(ctypes.create_string_buffer(b""), c_void_p), 0):
        message = f"load: Python.Runtime did not start in {_python()}"
        raise DotnetError(message)


def _function_getter(root: Path, library: Path, configuration: Path) -> Callable[..., int]:
    """Start .NET and return the function that loads a managed function from an assembly."""
    fxr = ctypes.CDLL(str(library))
    context, delegate = c_void_p(), c_void_p()
    parameters = _Parameters(ctypes.sizeof(_Parameters), None, _text(root))
    start = fxr.hostfxr_initialize_for_runtime_config
    _check("hostfxr", start(_text(configuration), byref(parameters), byref(context)))
    kind = _LOAD_ASSEMBLY_AND_GET_FUNCTION_POINTER
    _check("hostfxr", fxr.hostfxr_get_runtime_delegate(context, kind, byref(delegate)))
    prototype = ctypes.CFUNCTYPE(c_int, _TEXT, _TEXT, _TEXT, c_void_p, c_void_p, c_void_p)
    return prototype(delegate.value or 0)


def _text(value: str | Path) -> Any:  # noqa: ANN401 - bytes, or str on Windows
    """Make the text that the functions of hostfxr expect."""
    return str(value) if os.name == "nt" else os.fsencode(value)


def _check(step: str, status: int) -> None:
    """Raise where hostfxr reports a failure; it explains itself on stderr."""
    if status < 0:
        message = f"load: {step} failed with status {status & 0xFFFFFFFF:#x}"
        raise DotnetError(message)


def _python() -> str:
    """Name the Python of this process."""
    return f"Python {sys.version.split()[0]} ({sys.executable})"
