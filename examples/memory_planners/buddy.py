"""The buddy system as a memory planner (K. Knowlton, "A fast storage allocator", 1965).

Parts are powers of two; a part that is too large is split into two buddies, and free buddies are merged. It is simple
and quick, and rounds each value up to a power of two.

    rn.compile(f, memory_planner=BUDDY)
"""

from __future__ import annotations

from runnel import memory

SMALLEST = 64  # bytes of a part


class Buddy:
    """A heap that grows by doubling: when nothing free is large enough, another half is put beside what there is."""

    def __init__(self) -> None:
        self.size = 0  # of the heap, a power of two
        self.free: dict[int, set[int]] = {}  # offsets of the free parts, by size
        self.taken: dict[int, int] = {}  # the size of the part at an offset

    def take(self, nbytes: int) -> int:
        size = rounded(nbytes)
        while not any(self.free.get(larger) for larger in powers(size, self.size)):
            self._grow(size)
        part = next(larger for larger in powers(size, self.size) if self.free.get(larger))
        offset = min(self.free[part])
        self.free[part].remove(offset)
        while part > size:
            part //= 2
            self.free.setdefault(part, set()).add(offset + part)
        self.taken[offset] = size
        return offset

    def give_back(self, offset: int, nbytes: int) -> None:
        self._put(offset, self.taken.pop(offset))

    def _put(self, offset: int, size: int) -> None:
        """Free a part, merged with its buddy as long as that is free."""
        while size < self.size and (buddy := offset ^ size) in self.free.get(size, ()):
            self.free[size].remove(buddy)
            offset, size = min(offset, buddy), 2 * size
        self.free.setdefault(size, set()).add(offset)

    def _grow(self, least: int) -> None:
        """Twice the heap; the first time, so much."""
        begin, self.size = self.size, 2 * self.size or least
        self._put(begin, self.size - begin)


def rounded(nbytes: int) -> int:
    """The size of the part for so many bytes."""
    return max(SMALLEST, 1 << (nbytes - 1).bit_length())


def powers(first: int, last: int) -> list[int]:
    """The powers of two from ``first`` to ``last``, both included."""
    sizes = []
    while first <= last:
        sizes.append(first)
        first *= 2
    return sizes


BUDDY = memory.replay(Buddy)
