"""What the doctor finds in Python."""

import importlib
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from bridge.doctor.finding import Finding

PACKAGES = ("torch", "numpy", "rich", "typer", "jinja2", "matplotlib")
VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "ATEN_CPU_CAPABILITY",
    "MKL_CBWR",
)
_OLDEST = (3, 10)


def findings(threads: int) -> Iterator[Finding]:
    """Look at Python, its packages, and how its torch was built and set.

    Args:
        threads: of a BLAS that has threads of its own.

    Spec: R32.1
    """
    version = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info >= _OLDEST:
        yield Finding("python", "ok", version)
    else:
        yield Finding("python", "missing", version, "install Python 3.10 or later")
    given = [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
    yield Finding("environment", "ok", ", ".join(given) or "no variable for threads or CPU is set")
    # OpenBLAS has threads of its own, which torch does not govern; it reads this when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))
    modules = {}
    for name in PACKAGES:
        module, finding = _package(name)
        modules[name] = module
        yield finding
    if modules["torch"] is not None:
        yield from _torch(modules["torch"])


def _package(name: str) -> tuple[Any, Finding]:
    """Import a package; one that is there and does not work is missing as well."""
    remedy = f"./build.sh setup, or {sys.executable} -m pip install {name}"
    if importlib.util.find_spec(name) is None:
        return None, Finding(name, "missing", "not installed", remedy)
    try:
        module = importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - whatever an import raises, the finding says it
        text = str(error).partition("\n")[0]
        return None, Finding(name, "missing", f"does not load: {text}", remedy)
    return module, Finding(name, "ok", _version(name, module))


def _version(name: str, module: Any) -> str:  # noqa: ANN401 - any module
    """Tell the version of a package; not each that works has been installed by name."""
    try:
        return str(getattr(module, "__version__", None) or metadata.version(name))
    except metadata.PackageNotFoundError:
        return "of no version"


def _torch(torch: Any) -> Iterator[Finding]:  # noqa: ANN401 - a module that may not be there
    """Look at how torch was built, and at its threads and flags."""
    build = torch.__config__.show()
    yield Finding("torch BLAS", "ok", _first(r"BLAS_INFO=(\w+)", build))
    yield Finding("torch CPU capability", "ok", _first(r"CPU capability usage: (.+)", build))
    threads = f"{torch.get_num_threads()}, between operations {torch.get_num_interop_threads()}"
    yield Finding("torch threads", "ok", threads)
    flags = {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "oneDNN": torch.backends.mkldnn.is_available(),
        "CUDA": torch.cuda.is_available(),
    }
    words = ", ".join(f"{name} {'on' if flag else 'off'}" for name, flag in flags.items())
    yield Finding("torch flags", "ok", f"{words}, default {torch.get_default_dtype()}")


def _first(pattern: str, text: str) -> str:
    """Find a part of the build's description."""
    match = re.search(pattern, text)
    return match[1].strip() if match else "not told"
