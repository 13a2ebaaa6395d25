"""Lifetimes placed in one block like heap allocations, in time linear in their number.

Events are processed in order of time. A lifetime that begins takes the smallest hole that fits, or else the end of the
used part; one that ends leaves a hole, which is merged with adjacent holes. So values of a forward and a backward pass,
the first of which end last, form a stack. Both directions of time are tried.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any, NamedTuple

from runnel.core.kinds import declare


@declare
class Lifetime(NamedTuple):
    """``nbytes`` of memory from the moment ``first`` to the moment ``last``, both included."""

    nbytes: int
    first: int
    last: int


class Arrangement(NamedTuple):
    """The offset of each lifetime, and the end of the highest one."""

    offsets: tuple[int, ...]
    peak: int


def pairs_alive(lifetimes: Sequence[Lifetime]) -> int:
    """The number of ordered pairs of overlapping lifetimes."""
    begins = sorted(x.first for x in lifetimes)
    ends = sorted(x.last for x in lifetimes)
    # of those that begin at or before a lifetime's end, all but those that ended before its begin
    return sum(bisect.bisect_right(begins, s.last) - bisect.bisect_left(ends, s.first) - 1 for s in lifetimes)


def most_alive(lifetimes: Sequence[Lifetime]) -> tuple[int, int]:
    """The most bytes that are alive at one moment, and the first such moment: no placement needs fewer bytes."""
    change = [0] * (max((x.last for x in lifetimes), default=0) + 2)
    for x in lifetimes:
        change[x.first] += x.nbytes
        change[x.last + 1] -= x.nbytes
    alive = best = where = 0
    for index, delta in enumerate(change):
        alive += delta
        if alive > best:
            best, where = alive, index
    return best, where


def swept(lifetimes: Sequence[Lifetime]) -> Arrangement:
    """Offsets for ``lifetimes``."""
    backwards = [Lifetime(s.nbytes, -s.last, -s.first) for s in lifetimes]
    return min(_by_heap(lifetimes), _by_heap(backwards), key=lambda arrangement: arrangement.peak)


def _by_heap(lifetimes: Sequence[Lifetime]) -> Arrangement:
    heap = Heap()
    return Arrangement(tuple(in_time(lifetimes, heap)), heap.peak)


def in_time(lifetimes: Sequence[Lifetime], heap: Any) -> list[int]:
    """The offsets that ``heap`` gives: ``take(nbytes)`` where a lifetime begins, ``give_back(offset, nbytes)`` after
    it has ended."""
    offsets = [0] * len(lifetimes)
    ending = sorted(range(len(lifetimes)), key=lambda i: (lifetimes[i].last, i))
    ended = 0
    for i in sorted(range(len(lifetimes)), key=lambda i: (lifetimes[i].first, -lifetimes[i].nbytes, i)):
        while ended < len(ending) and lifetimes[ending[ended]].last < lifetimes[i].first:
            dead = ending[ended]
            heap.give_back(offsets[dead], lifetimes[dead].nbytes)
            ended += 1
        offsets[i] = heap.take(lifetimes[i].nbytes)
    return offsets


class Heap:
    """The smallest hole that fits, or else the end. It keeps the holes below the end of the used part, by offset."""

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.sizes: list[int] = []
        self.end = 0
        self.peak = 0

    def take(self, nbytes: int) -> int:
        """The offset of a new block of ``nbytes``."""
        fitting = [(size, at) for at, size in enumerate(self.sizes) if size >= nbytes]
        if not fitting:
            if self.begins and self.begins[-1] + self.sizes[-1] == self.end:  # the last hole grows
                begin = self.begins.pop()
                self.sizes.pop()
            else:
                begin = self.end
            self.end = begin + nbytes
            self.peak = max(self.peak, self.end)
            return begin
        size, at = min(fitting)
        begin = self.begins[at]
        if size == nbytes:
            del self.begins[at], self.sizes[at]
        else:
            self.begins[at], self.sizes[at] = begin + nbytes, size - nbytes
        return begin

    def give_back(self, begin: int, nbytes: int) -> None:
        """Free a block, and merge it with adjacent holes."""
        at = bisect.bisect_left(self.begins, begin)
        if at < len(self.begins) and begin + nbytes == self.begins[at]:
            nbytes += self.sizes[at]
            del self.begins[at], self.sizes[at]
        if at > 0 and self.begins[at - 1] + self.sizes[at - 1] == begin:
            begin, nbytes = self.begins[at - 1], nbytes + self.sizes[at - 1]
            del self.begins[at - 1], self.sizes[at - 1]
            at -= 1
        self.begins.insert(at, begin)
        self.sizes.insert(at, nbytes)
