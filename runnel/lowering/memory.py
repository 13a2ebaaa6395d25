"""The arena: where each intermediate value lies, so that values that are not alive together share memory.

Greedy by size: the largest value first, each at the lowest offset where it overlaps nobody who is alive with it
(Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020). The lower bound is the largest sum
of bytes alive at one call.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from runnel.lowering.places import Call, Place, Space

ALIGN = 64


@dataclass(frozen=True, slots=True)
class Life:
    """A place of the arena, from the call that first writes it to the call that last touches it."""

    place: Place
    first: int
    last: int

    @property
    def nbytes(self) -> int:
        return -(-max(self.place.nbytes, 1) // ALIGN) * ALIGN


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """``peak`` bytes hold every intermediate; no layout can need less than ``lower_bound``."""

    lives: tuple[Life, ...]
    peak: int
    lower_bound: int
    peak_call: int

    def alive_at(self, call: int) -> list[Life]:
        """Who holds memory at a call, largest first."""
        alive = [life for life in self.lives if life.first <= call <= life.last]
        return sorted(alive, key=lambda life: -life.nbytes)


def lay_out(calls: list[Call]) -> ArenaPlan:
    """Set slot and offset of every arena place that ``calls`` touch."""
    lives = _lives(calls)
    bound, peak_call = _lower_bound(lives, len(calls))
    placed: list[tuple[int, int, Life]] = []  # (offset, end, life), sorted by offset
    for life in sorted(lives, key=lambda x: (-x.nbytes, x.first)):
        offset = 0
        for begin, end, other in placed:
            if other.last < life.first or life.last < other.first:
                continue
            if begin >= offset + life.nbytes:
                break
            offset = max(offset, end)
        bisect.insort(placed, (offset, offset + life.nbytes, life), key=lambda entry: entry[0])
        life.place.slot, life.place.offset = 0, offset
    peak = max((end for _, end, _ in placed), default=0)
    return ArenaPlan(tuple(lives), peak, bound, peak_call)


def _lives(calls: list[Call]) -> list[Life]:
    first: dict[Place, int] = {}
    last: dict[Place, int] = {}
    for index, call in enumerate(calls):
        for access in call.accesses:
            if access.place.space is Space.ARENA:
                first.setdefault(access.place, index)
                last[access.place] = index
    return [Life(place, first[place], last[place]) for place in first]


def _lower_bound(lives: list[Life], calls: int) -> tuple[int, int]:
    change = [0] * (calls + 1)
    for life in lives:
        change[life.first] += life.nbytes
        change[life.last + 1] -= life.nbytes
    alive = best = where = 0
    for index, delta in enumerate(change):
        alive += delta
        if alive > best:
            best, where = alive, index
    return best, where
