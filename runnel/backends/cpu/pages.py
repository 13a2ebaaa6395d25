"""Pages of memory for machine code: written first, then executable, and freed when nothing refers to them.

They are never both writable and executable. They are not freed at the end of the interpreter: threads may still run in
them.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import weakref
from typing import Any, Final

from runnel.core.records import record

_READ, _WRITE, _EXECUTE = 1, 2, 4  # PROT_… of <sys/mman.h>, the same on all systems
_FAILED: Final = ctypes.c_void_p(-1).value


@record(frozen=False)
class Statistics:
    """Blocks of pages that hold machine code now, and their bytes."""

    blocks: int = 0
    nbytes: int = 0


statistics: Final = Statistics()


class Pages:
    """Zeroed pages for ``nbytes`` bytes, at ``address``, to be written and then made read-only."""

    __slots__ = ("__weakref__", "address", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self.nbytes: Final = whole_pages(nbytes)
        library = _library()
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.address: Final[int] = library.mmap(None, self.nbytes, _READ | _WRITE, flags, -1, 0)
        if self.address == _FAILED:
            raise MemoryError(f"{self.nbytes} bytes for machine code could not be allocated: {_reason()}.")
        statistics.blocks += 1
        statistics.nbytes += self.nbytes
        weakref.finalize(self, _give_back, self.address, self.nbytes).atexit = False

    def fill(self, content: bytes | bytearray, executable: int) -> None:
        """Write ``content``, and make the first ``executable`` bytes executable and read-only."""
        ctypes.memmove(self.address, bytes(content), len(content))
        if _library().mprotect(self.address, whole_pages(executable), _READ | _EXECUTE):
            raise MemoryError(f"Memory cannot be made executable here: {_reason()}.")


def whole_pages(nbytes: int) -> int:
    """``nbytes``, rounded up to pages."""
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE


def _give_back(address: int, nbytes: int) -> None:
    _library().munmap(address, nbytes)
    statistics.blocks -= 1
    statistics.nbytes -= nbytes


@functools.cache
def _library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    size, address, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    library.mmap.argtypes = (address, size, number, number, number, ctypes.c_long)
    library.munmap.argtypes = (address, size)
    library.mprotect.argtypes = (address, size, number)
    return library


def _reason() -> str:
    return os.strerror(ctypes.get_errno())
