"""Pass batches between processes: arrays in shared memory, everything else as a small pickle."""

from __future__ import annotations

import io
import math
import mmap
import os
import pickle
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from runnel.core import pytree
from runnel.core.errors import ArgumentError
from runnel.data.workers.shared_memory import Lease, aligned, array_at, mapped, new_block
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods

_GROWTH = 1.25  # a block has that much more room than its first batch needs


class Placed(NamedTuple):
    """An array in a block."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
    is_tensor: bool


class Parcel(NamedTuple):
    """A batch in transit: a pickle with the numbers of its arrays, their places, and changes of blocks.

    ``block`` is the number of the block, or None for a batch without arrays. ``is_new`` says that its handle is sent
    along. ``dropped`` are the numbers of blocks that the sender will not use again.
    """

    skeleton: bytes
    arrays: tuple[Placed, ...]
    block: int | None
    is_new: bool
    dropped: tuple[int, ...]


class _Skeleton(pickle.Pickler):
    """A pickler that lists arrays instead of pickling them."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.arrays: list[tuple[np.ndarray, bool]] = []

    def persistent_id(self, value: Any) -> int | None:
        if isinstance(value, ArrayMethods) and not pytree.is_registered(type(value)):
            self.arrays.append((value.numpy(), True))
        elif type(value) in (np.ndarray, np.memmap) and not value.dtype.hasobject:
            self.arrays.append((value, False))
        else:
            return None
        return len(self.arrays) - 1


class _Block:
    """A block on the writer's side."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.handle, self._mapping = new_block(size)
        self.size = size
        self.is_sent = False  # whether the reader has its handle
        self.is_read = False  # whether the reader has a batch in it
        self._is_written = False  # whether an array of this process lies in it

    @property
    def is_free(self) -> bool:
        return not self.is_read and not self._is_written

    def memory(self) -> np.ndarray:
        """Return its bytes; the block is in use while this array and arrays made from it exist."""
        self._is_written = True
        return np.asarray(Lease(self._mapping, self._left))

    def _left(self) -> None:
        self._is_written = False

    def lend(self) -> tuple[int, ...]:
        """Mark the block as read, and return the handle if the reader does not have it yet."""
        self.is_read = True
        return () if self.is_sent else (self.handle,)

    def sent(self) -> None:
        """Note that the reader has the handle."""
        if not self.is_sent:
            os.close(self.handle)
            self.is_sent = True

    def take_back(self) -> None:
        self.is_read = False


class Writer:
    """The sender's side: the blocks of one worker, and the block in which a batch is built."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._count = 0
        self._current: _Block | None = None
        self._memory: np.ndarray | None = None
        self._used = 0
        self._usual_size = 0

    def begin(self) -> None:
        """Start a batch."""
        self._used, self._memory = 0, None
        self._current = self._free_block(self._usual_size) if self._usual_size else None
        if self._current is not None:
            self._memory = self._current.memory()

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Return an array for a part of the batch, in the block if there is room."""
        size = math.prod(shape) * dtype.itemsize
        if self._memory is None or dtype.hasobject or self._used + size > len(self._memory):
            return np.empty(shape, dtype)
        array = array_at(self._memory, self._used, shape, dtype)
        self._used = aligned(self._used + size)
        return array

    def pack(self, batch: Any) -> tuple[Parcel, tuple[int, ...]]:
        """Return the batch as a parcel, and the handles to send with it. Call :meth:`sent` afterwards."""
        file = io.BytesIO()
        pickler = _Skeleton(file)
        try:
            pickler.dump(batch)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ArgumentError(
                f"[DataLoader] a batch cannot be sent by the worker: {error}. Let collate_fn give tensors, arrays and "
                "what can be pickled, or pass multiprocessing_context='thread'."
            ) from error
        placed = self._placed(pickler.arrays)
        block, self._memory = self._current, None
        if not placed or block is None:
            return Parcel(file.getvalue(), placed, None, False, self._dropped()), ()
        handles = block.lend()
        return Parcel(file.getvalue(), placed, block.number, bool(handles), self._dropped()), handles

    def sent(self) -> None:
        """Note that the batch, or an error in its place, has been sent."""
        if self._current is not None and self._current.is_read:
            self._current.sent()
        self._current = self._memory = None

    def take_back(self, blocks: Iterable[int]) -> None:
        """Reuse blocks that the reader has released."""
        for number in blocks:
            if number in self._blocks:
                self._blocks[number].take_back()

    def _placed(self, arrays: list[tuple[np.ndarray, bool]]) -> tuple[Placed, ...]:
        """Return the places of the arrays; copy those outside the block into it, or all into a larger one."""
        needed = self._used + sum(aligned(a.nbytes) for a, _ in arrays if self._offset(a) is None)
        if not arrays:
            return ()
        if self._memory is None or needed > len(self._memory):
            needed = max(sum(aligned(a.nbytes) for a, _ in arrays), 1)
            self._usual_size = max(self._usual_size, int(needed * _GROWTH))
            self._current = self._free_block(self._usual_size)
            self._memory = self._current.memory()
            self._used = 0
        return tuple(self._put(array, is_tensor) for array, is_tensor in arrays)

    def _put(self, array: np.ndarray, is_tensor: bool) -> Placed:
        offset = self._offset(array)
        if offset is None:
            copy = self.allocate(array.shape, array.dtype)
            copy[...] = array
            offset = self._offset(copy) or 0
        return Placed(offset, array.shape, array.dtype, is_tensor)

    def _offset(self, array: np.ndarray) -> int | None:
        """Return the array's offset in the block, if it is there in one piece."""
        if self._memory is None or not array.flags.c_contiguous:
            return None
        offset: int = array.ctypes.data - self._memory.ctypes.data
        return offset if offset >= 0 and offset + array.nbytes <= len(self._memory) else None

    def _free_block(self, size: int) -> _Block:
        for block in self._blocks.values():
            if block.is_free and block.size >= size:
                return block
        self._count += 1
        block = self._blocks[self._count] = _Block(self._count, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        return block

    def _dropped(self) -> tuple[int, ...]:
        """Forget blocks that have become too small."""
        small = [
            n for n, b in self._blocks.items() if b.is_free and b.size < self._usual_size and b is not self._current
        ]
        for number in small:
            self._blocks.pop(number).sent()
        return tuple(small)


class Reader:
    """The receiver's side of one worker: mappings of its blocks, and which of them can be reused.

    When ``most_mapped`` of them are mapped because batches are kept, later ones are copied.
    """

    def __init__(self, most_mapped: int) -> None:
        self._most_mapped = most_mapped
        self._mappings: dict[int, mmap.mmap] = {}
        self._freed: deque[int] = deque()  # filled by whatever thread drops the last array

    def freed(self) -> list[int]:
        """Return the numbers of the blocks released since the last call."""
        return [self._freed.popleft() for _ in range(len(self._freed))]

    def unpack(self, parcel: Parcel, handle: int | None) -> Any:
        """Return the batch of a parcel. Its arrays are in the block, which they keep alive."""
        arrays: list[Any] = []
        if parcel.block is not None:
            if handle is not None:
                self._mappings[parcel.block] = mapped(handle)
            memory = self._memory(parcel.block)
            copied = len(self._mappings) >= self._most_mapped
            for offset, shape, dtype, is_tensor in parcel.arrays:
                array = array_at(memory, offset, shape, dtype)
                array = array.copy() if copied else array
                arrays.append(asarray(array, copy=False) if is_tensor else array)
        for number in parcel.dropped:
            self._mappings.pop(number, None)
        return _Assembled(io.BytesIO(parcel.skeleton), arrays).load()

    def discard(self, parcel: Parcel, handle: int | None) -> None:
        """Release a parcel that is not needed."""
        if parcel.block is not None:
            if handle is not None:
                self._mappings[parcel.block] = mapped(handle)
            self._freed.append(parcel.block)
        for number in parcel.dropped:
            self._mappings.pop(number, None)

    def _memory(self, block: int) -> np.ndarray:
        return np.asarray(Lease(self._mappings[block], partial(self._freed.append, block)))


class _Assembled(pickle.Unpickler):
    """An unpickler that inserts the arrays."""

    def __init__(self, file: io.BytesIO, arrays: list[Any]) -> None:
        super().__init__(file)
        self._arrays = arrays

    def persistent_load(self, pid: int) -> Any:
        return self._arrays[pid]
