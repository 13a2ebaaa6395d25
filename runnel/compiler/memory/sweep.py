"""Spans of time and bytes placed in one block of memory as a heap would place them: in time linear in their number.

Moments are gone through in order. A span that begins takes the smallest hole that holds it, or else the end of what is
in use; a span that ends leaves a hole, which grows together with its neighbours. Values of a forward and a backward
pass, the first of which end last, so come to lie like a stack. Both directions of time are tried.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """``nbytes`` of memory from the moment ``first`` to the moment ``last``, both included."""

    nbytes: int
    first: int
    last: int


class Arrangement(NamedTuple):
    """The offset of each span, and where the highest of them ends."""

    offsets: tuple[int, ...]
    peak: int


def pairs_alive(spans: Sequence[Span]) -> int:
    """How many ordered pairs of spans are alive at some moment together."""
    begins = sorted(span.first for span in spans)
    ends = sorted(span.last for span in spans)
    # of those that begin at or before a span's end, all but those that ended before its begin
    return sum(bisect.bisect_right(begins, s.last) - bisect.bisect_left(ends, s.first) - 1 for s in spans)


def swept(spans: Sequence[Span]) -> Arrangement:
    """Offsets for ``spans``."""
    backwards = [Span(s.nbytes, -s.last, -s.first) for s in spans]
    return min(_in_time(spans), _in_time(backwards), key=lambda found: found.peak)


def _in_time(spans: Sequence[Span]) -> Arrangement:
    heap = _Heap()
    offsets = [0] * len(spans)
    ending = sorted(range(len(spans)), key=lambda i: (spans[i].last, i))
    ended = 0
    for i in sorted(range(len(spans)), key=lambda i: (spans[i].first, -spans[i].nbytes, i)):
        while ended < len(ending) and spans[ending[ended]].last < spans[i].first:
            gone = ending[ended]
            heap.give_back(offsets[gone], spans[gone].nbytes)
            ended += 1
        offsets[i] = heap.take(spans[i].nbytes)
    return Arrangement(tuple(offsets), heap.peak)


class _Heap:
    """The holes below the end of what is in use, by offset."""

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.sizes: list[int] = []
        self.end = 0
        self.peak = 0

    def take(self, nbytes: int) -> int:
        """Where ``nbytes`` lie from now on."""
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
        """Make a hole, together with those beside it."""
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
