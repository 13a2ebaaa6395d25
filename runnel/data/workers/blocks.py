"""Memory that processes share: blocks without a name, which end with the last process that has them."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Callable
from typing import Final

import numpy as np

ALIGNMENT: Final = 64  # bytes, a cache line


def new_block(size: int) -> tuple[int, mmap.mmap]:
    """A handle to pass on and the mapping of a new block of zeros. MemoryError where there is no memory for it: pages
    are reserved at once, as a process that runs out of them when it writes is killed."""
    handle = _unnamed_file()
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)
        else:
            os.ftruncate(handle, size)
        return handle, mmap.mmap(handle, size)
    except OSError as error:
        os.close(handle)
        raise MemoryError(f"no shared memory of {size} bytes for a batch: {error.strerror}") from None
    except BaseException:
        os.close(handle)
        raise


def mapped(handle: int) -> mmap.mmap:
    """The block behind a handle that another process passed on; the handle is closed."""
    try:
        return mmap.mmap(handle, os.fstat(handle).st_size)
    finally:
        os.close(handle)


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("runnel-batch", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Lease:
    """The use of a block: arrays made of it keep it, and ``on_end`` is called when the last of them is gone."""

    def __init__(self, mapping: mmap.mmap, on_end: Callable[[], None]) -> None:
        self._whole = np.frombuffer(mapping, np.uint8)  # holds the mapping
        self._on_end = on_end

    @property
    def __array_interface__(self) -> dict[str, object]:
        # not the interface of the array itself: what is made of it shall keep this object
        address, _ = self._whole.__array_interface__["data"]
        return {"version": 3, "shape": self._whole.shape, "typestr": "|u1", "data": (address, False)}

    def __del__(self) -> None:
        self._on_end()


def aligned(offset: int) -> int:
    """The next multiple of the alignment."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def array_at(memory: np.ndarray, offset: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The array that begins ``offset`` bytes into the bytes ``memory``, which it keeps."""
    size = math.prod(shape) * dtype.itemsize
    return memory[offset : offset + size].view(dtype).reshape(shape)
