"""What threads have touched since the last barrier, found again by address.

Regions are filed by their size, in buckets of a power of two bytes that is not smaller, so that each lies in at most
two; a question looks only into the buckets that a region meets. Reads and writes are filed apart, since two reads never
disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from runnel.compiler.kernels.places import Place
from runnel.compiler.schedule.partition import TouchedBytes


class Touch(NamedTuple):
    """A region that a thread touches."""

    thread: int
    region: TouchedBytes
    aged: bool  # by an earlier iteration of the loop that is looked at


class Bytes(NamedTuple):
    """A half-open range of addresses in one space: a place's own, or the arena's (None)."""

    key: Place | None
    begin: int
    end: int


class Touched:
    """A set of touches. ``reach`` of a touch are the bytes that it may meet others in, at any iteration."""

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
        """The touches that may disagree with one of ``reach``: writes, and reads too if that one ``writes``."""
        for files in (self._writes, self._reads) if writes else (self._writes,):
            for (key, level), buckets in files.items():
                if key is reach.key:
                    yield from _in_buckets(buckets, reach.begin >> level, (reach.end - 1) >> level)


_Files = dict[tuple[Place | None, int], dict[int, list[Touch]]]


def _in_buckets(buckets: dict[int, list[Touch]], first: int, last: int) -> Iterator[Touch]:
    numbers: Iterable[int] = range(first, last + 1)
    if last - first > len(buckets):
        numbers = [n for n in buckets if first <= n <= last]
    for number in numbers:
        yield from buckets.get(number, ())
