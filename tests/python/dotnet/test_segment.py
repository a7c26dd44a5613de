"""Memory that two processes share."""

import ctypes

from bridge.dotnet.segment import Segment, View


def test_worker_sees_what_the_caller_writes_also_after_growing() -> None:
    """The view follows the block when it grows, and both sides see the same bytes. Spec: R16.2."""
    segment, view = Segment(), View()
    try:
        for size in (100, 5_000_000, 40_000_000):
            memory = segment.grow(size)
            assert len(memory) >= size
            memory[size - 1] = 77
            address = view.address(segment.name, segment.size)
            assert ctypes.string_at(address + size - 1, 1) == bytes([77])
            ctypes.memset(address, size % 251, 1)
            assert memory[0] == size % 251
    finally:
        segment.close()


def test_earlier_memory_stays_valid_while_the_block_grows() -> None:
    """Memory that someone still holds is not pulled from under them. Spec: R16.2."""
    segment = Segment()
    old = segment.grow(1000)
    old[999] = 5
    segment.grow(9_000_000)
    segment.close()
    assert old[999] == 5


def test_block_does_not_shrink_or_move_without_need() -> None:
    """A smaller request gets the same block. Spec: R16.2."""
    segment = Segment()
    segment.grow(3_000_000)
    before = segment.name, segment.size
    segment.grow(10)
    assert (segment.name, segment.size) == before
    segment.close()


def test_empty_block_has_no_address() -> None:
    """Before the first use there is nothing to map. Spec: R16.2."""
    assert View().address("", 0) == 0
