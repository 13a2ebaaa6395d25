"""The accesses of threads since the last barrier, indexed by address.

Regions are hashed by size into buckets of the next power of two bytes, so that each is in at most two; a query looks
only into the buckets that a region overlaps. Reads and writes are separate, since two reads never conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from runnel.compiler.kernels.allocations import Allocation
from runnel.compiler.schedule.partition import TouchedBytes


class Touch(NamedTuple):
    """A region that a thread accesses."""

    thread: int
    region: TouchedBytes
    aged: bool  # by an earlier iteration of the current loop


class Bytes(NamedTuple):
    """A half-open range of addresses in one space: a place's own, or the arena's (None)."""

    key: Allocation | None
    begin: int
    end: int


class Touched:
    """A set of touches. The ``reach`` of a touch are its bytes at all iterations."""

    def __init__(self) -> None:
        self.all: list[Touch] = []
        self._reads: _Files = {}
        self._writes: _Files = {}

    def add(self, touch: Touch, reach: Bytes) -> None:
        self.all.append(touch)
        files = self._writes if touch.region.writes else self._reads
        level = (reach.end - reach.begin - 1).bit_length()
        buckets = files.setdefault((reach.key, level), {})
        for bucket in range(reach.begin >> level, ((reach.end - 1) >> level) + 1):
            buckets.setdefault(bucket, []).append(touch)

    def near(self, reach: Bytes, *, writes: bool) -> Iterator[Touch]:
        """The touches that may conflict with one of ``reach``: writes, and reads too if that one ``writes``."""
        for files in (self._writes, self._reads) if writes else (self._writes,):
            for (key, level), buckets in files.items():
                if key is reach.key:
                    yield from _in_buckets(buckets, reach.begin >> level, (reach.end - 1) >> level)


_Files = dict[tuple[Allocation | None, int], dict[int, list[Touch]]]


def _in_buckets(buckets: dict[int, list[Touch]], first: int, last: int) -> Iterator[Touch]:
    numbers: Iterable[int] = range(first, last + 1)
    if last - first > len(buckets):
        numbers = [n for n in buckets if first <= n <= last]
    for number in numbers:
        yield from buckets.get(number, ())
