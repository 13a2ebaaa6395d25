"""Storage and its pool: sharing, alignment, lifetime, reuse and bounds."""

import ctypes
import gc
import itertools
import os
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from runnel.backends.host import memory
from runnel.backends.host.memory import Storage, allocate, size_class


@given(st.integers(0, 1 << 40))
def test_a_size_class_holds_its_size_with_little_waste(nbytes: int) -> None:
    size = size_class(nbytes)
    assert size >= nbytes and size % memory.ALIGNMENT == 0
    assert size <= max(nbytes * 9 / 8, nbytes + memory.ALIGNMENT)
    assert size_class(size) == size


@pytest.mark.parametrize("nbytes", [0, 1, 64, 1000, 100_000, 300_000, 3 << 20])
def test_blocks_are_aligned_and_writable_throughout(nbytes: int) -> None:
    storage = allocate(nbytes)
    assert storage.address % 64 == 0 and storage.nbytes == nbytes
    view = storage.ndarray((nbytes,), np.uint8, writeable=True)
    view[:] = 7
    assert int(view.sum(dtype=np.int64)) == 7 * nbytes


def test_live_blocks_do_not_overlap() -> None:
    blocks = [allocate(n) for n in (1, 64, 200, 5000, 5000, 300_000, 300_000)]
    spans = sorted((b.address, b.address + size_class(b.nbytes)) for b in blocks)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_a_freed_block_is_used_again_without_the_system() -> None:
    first = allocate(123_457)
    address, before = first.address, memory.statistics()
    del first
    assert memory.statistics().pooled >= before.pooled + 123_457
    second = allocate(123_457)
    after = memory.statistics()
    assert second.address == address
    assert after.system_allocations == before.system_allocations and after.allocations == before.allocations + 1


def test_statistics_follow_live_and_peak() -> None:
    gc.collect()
    start = memory.statistics().live
    memory.reset_peak()
    storage = allocate(1_000_001)
    del storage
    end = memory.statistics()
    assert end.live == start and end.peak == start + 1_000_001


def test_the_pool_keeps_no_more_than_its_limit() -> None:
    pool = memory._Pool(limit=1000)
    blocks = [pool.take(384) for _ in range(5)]
    for block in blocks:
        pool.give(block, 384)
    assert pool.statistics().pooled == 768
    pool.trim()
    assert pool.statistics().pooled == 0 and pool.statistics().live == 0


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not hasattr(memory.mmap, "MADV_HUGEPAGE"), reason="blocks share huge pages on Linux")
@pytest.mark.parametrize("nbytes", [300_000, 1_500_000, 5_000_000, 20_000_000])
def test_blocks_are_neighbors_and_return_their_pages(nbytes: int) -> None:
    pool = memory._Pool(limit=0)
    blocks = [pool.take(nbytes) for _ in range(4)]
    size = size_class(nbytes)
    together = [b.address - a.address == -size for a, b in itertools.pairwise(blocks)]
    assert all(together) if nbytes < memory._ALONE_FROM else all(b.address % memory.HUGE_PAGE == 0 for b in blocks)
    kept = blocks.pop(0)
    for block in [kept, *blocks]:
        np.frombuffer((ctypes.c_ubyte * nbytes).from_address(block.address), np.uint8)[:] = 3
    before = resident()
    for block in blocks:
        pool.give(block, nbytes)
    del block, blocks
    gc.collect()
    assert before - resident() > 2 * nbytes
    assert (np.frombuffer((ctypes.c_ubyte * nbytes).from_address(kept.address), np.uint8) == 3).all()


def test_a_view_keeps_its_storage_alive() -> None:
    storage = allocate(800)
    view = storage.ndarray((100,), np.float64, writeable=True)
    address = storage.address
    del storage
    view[:] = 3.0
    others = [allocate(800) for _ in range(8)]
    assert address not in [other.address for other in others]
    assert np.all(view == 3.0)


def test_views_have_dtype_offset_and_strides() -> None:
    storage = allocate(64)
    storage.ndarray((16,), np.int32, writeable=True)[:] = np.arange(16)
    assert storage.ndarray((3, 2), np.int32, 4, (16, 8)).tolist() == [[1, 3], [5, 7], [9, 11]]
    assert storage.ndarray((2, 3), np.int32, 8, (0, 4)).tolist() == [[2, 3, 4]] * 2
    assert storage.ndarray((3,), np.int32, 60, (-4,)).tolist() == [15, 14, 13]
    assert storage.ndarray((), ml_dtypes.bfloat16).dtype == ml_dtypes.bfloat16
    assert storage.ndarray((0, 5), np.float32).shape == (0, 5)


def test_views_are_read_only_unless_asked() -> None:
    storage = allocate(64)
    with pytest.raises(ValueError, match="read-only"):
        storage.ndarray((4,), np.int32)[0] = 1


def test_a_view_beyond_the_bytes_is_refused() -> None:
    storage = allocate(64)
    with pytest.raises((ValueError, TypeError)):
        storage.ndarray((17,), np.int32)
    with pytest.raises((ValueError, TypeError)):
        storage.ndarray((2,), np.int32, 0, (-4,))


@settings(deadline=None, max_examples=60)
@given(
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
    st.tuples(st.sampled_from([-3, -2, -1, 1, 2, 3]), st.sampled_from([-2, -1, 1, 2])),
    st.booleans(),
)
def test_a_wrapped_array_is_shared_whatever_its_strides(
    shape: tuple[int, int], steps: tuple[int, int], turn: bool
) -> None:
    whole = np.arange(12 * 8, dtype=np.int16).reshape(12, 8)
    array = whole[:: steps[0], :: steps[1]][: shape[0], : shape[1]]
    array = array.T if turn else array
    storage = Storage.wrap(array)
    assert storage.address == array.__array_interface__["data"][0]
    view = storage.ndarray(array.shape, array.dtype, 0, array.strides, writeable=True)
    assert np.array_equal(view, array)
    if array.size:
        view[0, 0] = -1
        assert array[0, 0] == -1


def test_a_wrapped_array_lives_with_its_storage() -> None:
    array = np.full(1000, 5.0)
    storage = Storage.wrap(array)
    del array
    assert np.all(storage.ndarray((1000,), np.float64) == 5.0)


def test_a_read_only_array_stays_read_only() -> None:
    array = np.arange(4)
    array.flags.writeable = False
    with pytest.raises(ValueError):
        Storage.wrap(array).ndarray((4,), array.dtype, writeable=True)


def test_threads_may_allocate_at_once() -> None:
    pool = memory._Pool(limit=1 << 30)
    failures: list[int] = []

    def work(mark: int) -> None:
        for _ in range(500):
            storage = memory._Pooled(pool.take(256), 256)
            view = storage.ndarray((256,), np.uint8, writeable=True)
            view[:] = mark
            if not np.all(view == mark):
                failures.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert pool.statistics().live == 0 and pool.statistics().allocations == 3000


def test_what_the_system_refuses_is_a_memory_error() -> None:
    before = memory.statistics().live
    with pytest.raises(MemoryError, match="could not be allocated"):
        allocate(1 << 60)
    assert memory.statistics().live == before


@pytest.mark.suite
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("nbytes", [1 << 10, 1 << 19, 1 << 23])
def test_a_forked_child_has_memory_of_its_own(nbytes: int) -> None:
    """Return whether a block came from malloc or from a mapping, with huge pages or without."""
    block = memory.allocate(nbytes).ndarray((nbytes,), np.uint8, writeable=True)
    block[:] = 1
    child = os.fork()
    if child == 0:
        block[:] = 2
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert block[0] == block[-1] == 1
