"""The allocator of tensors, arenas and scratch: the bottom of the runtime, which depends only on NumPy.

Freed blocks go to free lists by size class, so that steady-state allocation touches no new page and costs well under a
microsecond. Large blocks are in anonymous mappings, on Linux with huge pages: in small ones, the weights of a network
take up to 1.7 times as long to read. Blocks smaller than ``_ALONE_FROM`` share mappings.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import sys
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from runnel.core.records import record

if TYPE_CHECKING:
    from numpy.typing import NDArray


ALIGNMENT: Final = 128  # two cache lines, because processors fetch them in pairs
HUGE_PAGE: Final = 2 << 20
POOL_LIMIT: Final = 1 << 30  # free bytes kept for reuse; blocks freed beyond go back to the system
SLACK: Final = 64 << 20  # free bytes that are always kept
_MAPPED_FROM: Final = 256 << 10  # smaller blocks come from malloc, which packs them
_ALONE_FROM: Final = 8 << 20 if hasattr(mmap, "MADV_HUGEPAGE") else 0  # larger blocks fill huge pages by themselves
_REGION: Final = 32 << 20  # bytes that smaller ones share


class _Block:
    """Memory obtained from the system: its aligned address, the size of its class and the object that owns it."""

    __slots__ = ("address", "holder", "pool", "size")

    def __init__(self, size: int, pool: _Pool) -> None:
        self.size: Final = size
        self.pool: Final = pool
        if size < _MAPPED_FROM:
            array = np.empty(size + ALIGNMENT, np.uint8)
            self.holder: Any = array
            self.address = _aligned(array.__array_interface__["data"][0], ALIGNMENT)
            return
        self.holder, self.address = pool.piece(size)

    def __del__(self) -> None:
        if isinstance(holder := getattr(self, "holder", None), _Region):
            holder.give_back(self.address, self.size)


class _Region:
    """Anonymous memory that blocks share: each takes the next piece, and returns its pages to the system at its end.
    Memory that was never touched costs only addresses."""

    __slots__ = ("base", "left", "mapping", "size", "start")

    def __init__(self, size: int) -> None:
        self.mapping: Final = _mapping(size + HUGE_PAGE)
        self.base: Final[int] = np.frombuffer(self.mapping, np.uint8).__array_interface__["data"][0]
        self.start: Final = _aligned(self.base, HUGE_PAGE)
        self.size: Final = size
        self.left = size
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without huge pages: the memory is only slower to touch
                self.mapping.madvise(mmap.MADV_HUGEPAGE)

    def piece(self, size: int) -> int:
        """Return the address of the last ``size`` bytes that are left."""
        self.left -= size
        return self.start + self.left

    def give_back(self, address: int, size: int, advice: int = getattr(mmap, "MADV_DONTNEED", 0)) -> None:
        """Return the pages of a piece to the system. Its address space is not used again."""
        if self.size > size:
            with contextlib.suppress(OSError):  # locked in memory: the pages stay until the mapping ends
                self.mapping.madvise(advice, address - self.base, size)


def _mapping(size: int) -> mmap.mmap:
    """Map anonymous memory. Private: by default a mapping would be shared with the child of a fork."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _aligned(address: int, alignment: int) -> int:
    return -(-address // alignment) * alignment


@functools.lru_cache(4096)
def size_class(nbytes: int) -> int:
    """Return the block size for ``nbytes``: eight classes in each power of two, so at most an eighth is unused."""
    if nbytes <= 1024:
        return max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT
    shift = (nbytes - 1).bit_length() - 4
    return -(-nbytes >> shift) << shift if shift >= 7 else _aligned(nbytes, ALIGNMENT)


@record
class Statistics:
    """Bytes in use, as requested; bytes of free blocks; the peak of the former; allocations, and those that reached the
    system.
    """

    live: int
    pooled: int
    peak: int
    allocations: int
    system_allocations: int


class _Pool:
    """Free blocks by size class.

    Blocks of sizes that are no longer used must not be kept forever. If no free block fits, others are returned to the
    system before a new one is allocated, so that the total stays within 1.5 times the peak use (plus ``SLACK``): a loop
    over models of ever new sizes stays within that, and a loop that repeats itself does not reach the system.

    There is no lock: ``pop`` and ``append`` of lists are atomic, and a counter's ``+=`` is not interrupted under the
    GIL. (Without a GIL only the statistics could drift.)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.free: dict[int, list[_Block]] = {}
        self.regions: list[_Region] = []
        self.live = self.pooled = self.peak = self.allocations = self.system_allocations = 0

    def take(self, nbytes: int) -> _Block:
        size = size_class(nbytes)
        try:
            block = self.free[size].pop()
            self.pooled -= size
        except (KeyError, IndexError):
            block = self._from_system(size)
        self.allocations += 1
        self.live += nbytes
        if self.live > self.peak:
            self.peak = self.live
        return block

    def _from_system(self, size: int) -> _Block:
        self.free.setdefault(size, [])
        self.system_allocations += 1
        self._make_room(size)
        try:
            return _Block(size, self)
        except (OSError, OverflowError) as error:
            raise MemoryError(f"[allocate] {size} bytes could not be allocated: {error}.") from error

    def piece(self, size: int) -> tuple[_Region, int]:
        """Return new memory for a block and its address. A region is in the list only while nobody takes from it."""
        region = None
        if size < _ALONE_FROM:
            with contextlib.suppress(IndexError):
                region = self.regions.pop()
        if region is None or region.left < size:
            region = _Region(_REGION if size < _ALONE_FROM else size)
        address = region.piece(size)
        if region.left:
            self.regions.append(region)
        return region, address

    def _make_room(self, size: int) -> None:
        surplus = self.live + self.pooled + size - (max(self.peak, self.live + size) * 3 // 2 + SLACK)
        if surplus <= 0:
            return
        for other, waiting in list(self.free.items()):  # in order of the first use of each size
            while waiting and surplus > 0:
                try:
                    waiting.pop()
                except IndexError:
                    break  # another thread was quicker
                self.pooled -= other
                surplus -= other

    def give(self, block: _Block, nbytes: int) -> None:
        size = block.size
        self.live -= nbytes
        if self.pooled + size <= self.limit:
            self.pooled += size
            self.free[size].append(block)

    def trim(self) -> None:
        for size, waiting in list(self.free.items()):
            while waiting:
                waiting.pop()
                self.pooled -= size

    def statistics(self) -> Statistics:
        return Statistics(self.live, self.pooled, self.peak, self.allocations, self.system_allocations)


class Storage:
    """``nbytes`` bytes at ``address``, from :func:`allocate` or :meth:`wrap`; the bytes live as long as it.

    A copy, also by pickling, is new memory with the same bytes.

    ``is_ours``: the bytes are accessible only through this object.
    ``is_whole``: every byte is part of a value, and the values belong together, so that a copy takes all of them.
    ``below``: the number of bytes before ``address``.
    """

    __slots__ = ("__weakref__", "address", "nbytes")

    address: int
    nbytes: int
    below = 0
    is_ours = True
    is_whole = True

    @staticmethod
    def wrap(array: NDArray[Any]) -> Storage:
        """Share ``array``'s memory, whatever its strides: ``address`` is that of its first element."""
        return _Shared(array)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """All bytes, up to the last of the ``nbytes``, for NumPy."""
        raise NotImplementedError

    def ndarray(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        offset_bytes: int = 0,
        strides_bytes: tuple[int, ...] | None = None,
        writeable: bool = False,
    ) -> NDArray[Any]:
        """Return a NumPy view of these bytes that keeps them alive. ``offset_bytes`` counts from ``address``. One that
        is not ``writeable`` cannot be made so by its flags."""
        data = np.asarray(self)
        if not writeable:
            data.flags.writeable = False
        elif not data.flags.writeable:
            raise ValueError(f"{self!r} shows an array that is read-only.")
        return np.ndarray(shape, dtype, data, offset_bytes + self.below, strides_bytes)

    def __deepcopy__(self, memo: dict[int, Any]) -> Storage:
        return filled(np.asarray(self))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        data = np.asarray(self)
        data.flags.writeable = False
        return filled, (PickleBuffer(data.data) if protocol >= 5 else data.tobytes(),)

    def __repr__(self) -> str:
        return f"<Storage of {self.nbytes} bytes at {self.address:#x}>"


class _Pooled(Storage):
    """A block of a pool, given back when the last reference to this is gone."""

    __slots__ = ("_block",)

    def __init__(self, block: _Block, nbytes: int) -> None:
        self._block = block
        self.address = block.address
        self.nbytes = nbytes

    def __del__(self) -> None:
        try:
            block = self._block
        except AttributeError:  # Ctrl-C came before there was one
            return
        block.pool.give(block, self.nbytes)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return _interface(self.address, self.nbytes, False)


class _Slab(_Pooled):
    """A block that small unrelated values share."""

    __slots__ = ()

    is_whole = False


class _Shared(Storage):
    """Memory of a NumPy array. With negative strides some of it is below ``address``."""

    __slots__ = ("_array", "below", "is_whole")

    is_ours = False

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.address = array.__array_interface__["data"][0]
        reaches = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)] if array.size else []
        self.below = -sum(reach for reach in reaches if reach < 0)
        self.nbytes = sum(reach for reach in reaches if reach > 0) + (array.itemsize if array.size else 0)
        self.is_whole = self.below + self.nbytes == array.nbytes and 0 not in array.strides

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return _interface(self.address - self.below, self.below + self.nbytes, not self._array.flags.writeable)


def _interface(address: int, nbytes: int, readonly: bool) -> dict[str, Any]:
    return {"version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (address, readonly)}


_POOL: Final = _Pool(POOL_LIMIT)


def allocate(nbytes: int) -> Storage:
    """Return a block of ``nbytes`` bytes aligned to 128, contents unspecified; from the pool if possible."""
    return _Pooled(_POOL.take(nbytes), nbytes)


def allocate_slab(nbytes: int) -> Storage:
    """Return the same, for small unrelated values: a copy of one takes only its own bytes."""
    return _Slab(_POOL.take(nbytes), nbytes)


def filled(data: Any) -> Storage:
    """Return a block with the bytes of ``data``: any contiguous object with the buffer protocol."""
    source = memoryview(data)
    storage = allocate(source.nbytes)
    if source.nbytes:  # an empty view cannot be cast
        storage.ndarray((source.nbytes,), np.uint8, writeable=True)[...] = source.cast("B")
    return storage


def statistics() -> Statistics:
    """Return the allocator's statistics."""
    return _POOL.statistics()


def reset_peak() -> None:
    """Restart measuring the peak of live bytes."""
    _POOL.peak = _POOL.live


def trim() -> None:
    """Return all free blocks to the system."""
    _POOL.trim()


class HostMemory:
    """The part of a backend that allocates memory."""

    allocate = staticmethod(allocate)
    allocate_slab = staticmethod(allocate_slab)
