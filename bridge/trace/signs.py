"""The fixed random signs behind the projections, the same in both languages."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

BUCKETS = 31
WIDTH = 127 * BUCKETS
ROWS = 32
"""A chunk is ``ROWS`` rows of ``WIDTH`` values. Both factors of the width are odd primes, so that
the columns of a matrix, whose strides are mostly powers of two, fall into all buckets."""

_CHUNK_WORDS = 2048
_TURNS = 2112
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))


def words(first: int, count: int) -> npt.NDArray[np.uint64]:
    """Return the words ``first`` and on of the stream of SplitMix64 with seed 0.

    Args:
        first: the number of the first word, from 0.
        count: how many.

    Spec: R30.2. Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators
    """
    z = (np.arange(count, dtype=np.uint64) + np.uint64(first + 1)) * _GOLDEN
    for shift, factor in _MIX:
        z = (z ^ (z >> np.uint64(shift))) * factor
    mixed: npt.NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed


def row_signs() -> Numbers:
    """Return the signs ``(ROWS, WIDTH)`` by which rows are folded; the first row's are not used."""
    return _signs(0, ROWS * WIDTH).reshape(ROWS, WIDTH)


def column_signs(chunk: int) -> Numbers:
    """Return the signs ``(WIDTH,)`` of the columns of a chunk."""
    return _signs((chunk + 1) * _CHUNK_WORDS, WIDTH)


@lru_cache(maxsize=1)
def places() -> npt.NDArray[np.intp]:
    """Return the places ``(127, BUCKETS)`` of columns, one row for each 31 of them, by bucket.

    Columns 0 to 30 belong to buckets 0 to 30. Each further 31 are rotated by a random number, so
    that what comes every 31 values, or a multiple of it, falls into all buckets too.
    """
    turns = (words(_TURNS, WIDTH // BUCKETS) % np.uint64(BUCKETS)).astype(np.intp)
    turns[0] = 0
    rows = np.arange(WIDTH // BUCKETS)[:, None] * BUCKETS
    return rows + (np.arange(BUCKETS) - turns[:, None]) % BUCKETS


@lru_cache(maxsize=256)
def _signs(first: int, count: int) -> Numbers:
    """Turn the bits of words, lowest first, into signs: 0 is 1, 1 is -1."""
    stream = words(first, -(-count // 64)).astype("<u8").view(np.uint8)
    bits = np.unpackbits(stream, count=count, bitorder="little")
    signs: Numbers = 1.0 - 2.0 * bits
    signs.flags.writeable = False
    return signs
