"""Where a run took place, and with which versions."""

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch

import bridge
from bridge.dotnet import Host


def versions(host: Host) -> dict[str, dict[str, Any]]:
    """List the versions of both sides."""
    python = {
        "bridge": bridge.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    return {"python": python, "csharp": dict(host.versions)}


def describe() -> dict[str, Any]:
    """Name the operating system, the processor and the number of cores."""
    return {"os": platform.platform(), "cpu": _cpu(), "cores": os.cpu_count() or 1}


def _cpu() -> str:
    """Name the processor; Linux tells it in a file only."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
