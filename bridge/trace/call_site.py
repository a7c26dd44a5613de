"""Where in the user's code something was called."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from types import FrameType

_OURS = tuple(
    str(folder) + "/"
    for folder in (
        Path(__file__).parent,
        Path(__file__).parents[1] / "parallel",
        Path(torch.__file__).parent,
    )
)


def call_site() -> str | None:
    """Return ``file:line`` of the innermost frame that is neither PyTorch's nor this package's."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to look up
    while frame is not None:
        file = frame.f_code.co_filename.replace("\\", "/")
        if not file.startswith(_OURS) and not file.startswith("<"):
            return None if _is_thread(file) else f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def _is_thread(file: str) -> bool:
    """Tell whether a frame belongs to the machinery of threads: the caller is on another stack."""
    return file.endswith(("/threading.py", "/concurrent/futures/thread.py"))
