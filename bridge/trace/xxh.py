"""The hash XXH128, of the package xxhash or the library libxxhash, which Debian always has."""

import ctypes
import ctypes.util
from collections.abc import Callable
from functools import lru_cache

import numpy as np


def xxh128(content: memoryview) -> str:
    """Hash bytes with XXH3's 128 bits and seed 0.

    Args:
        content: contiguous bytes.

    Returns:
        32 hexadecimal digits, the highest first.

    Raises:
        RuntimeError: neither the package nor the library is there.

    Spec: R30.2. Source: https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md
    """
    return _hash()(content)


@lru_cache(maxsize=1)
def _hash() -> Callable[[memoryview], str]:
    """Find the hash."""
    try:
        from xxhash import xxh3_128_hexdigest  # noqa: PLC0415 - it need not be there
    except ImportError:
        return _of_library()
    found: Callable[[memoryview], str] = xxh3_128_hexdigest
    return found


class _Result(ctypes.Structure):
    """What the library returns."""

    _fields_ = (("low", ctypes.c_uint64), ("high", ctypes.c_uint64))


def _of_library() -> Callable[[memoryview], str]:
    """Find the hash in the library."""
    name = ctypes.util.find_library("xxhash")
    if name is None:
        message = "trace: expected the package xxhash or the library libxxhash, found neither"
        raise RuntimeError(message)
    function = ctypes.CDLL(name).XXH3_128bits
    function.restype, function.argtypes = _Result, (ctypes.c_void_p, ctypes.c_size_t)

    def digest(content: memoryview) -> str:
        address = np.frombuffer(content, dtype=np.uint8).ctypes.data
        result = function(address, content.nbytes)
        return f"{result.high:016x}{result.low:016x}"

    return digest
