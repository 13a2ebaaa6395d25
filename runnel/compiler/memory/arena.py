"""The arena: offsets of intermediate values, such that values that are not alive at the same time share memory.

The lower bound is the largest sum of bytes alive at one call; ``arrangement.py`` searches for offsets that come close,
unless the program has a memory planner of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from runnel.compiler.kernels.allocations import Allocation, Call, MemorySpace
from runnel.compiler.memory.arrangement import arrange
from runnel.compiler.memory.planner import ALIGN, MemoryPlanner, planned
from runnel.compiler.memory.sweep import Lifetime, most_alive
from runnel.compiler.schedule.loop_regions import AnyRegion
from runnel.core.records import record


@record
class Life:
    """The lifetime of a place in the arena, from the first call that writes it to the last that accesses it."""

    allocation: Allocation
    first: int
    last: int

    @property
    def nbytes(self) -> int:
        return -(-max(self.allocation.nbytes, 1) // ALIGN) * ALIGN


@record
class ArenaPlan:
    """The arena has ``peak`` bytes; no layout needs less than ``lower_bound``."""

    lives: tuple[Life, ...]
    peak: int
    lower_bound: int
    peak_call: int

    def alive_at(self, call: int) -> list[Life]:
        """The places that are alive at a call, largest first."""
        alive = [life for life in self.lives if life.first <= call <= life.last]
        return sorted(alive, key=lambda life: -life.nbytes)


def lay_out(calls: list[Call], regions: Sequence[AnyRegion] = (), planner: MemoryPlanner | None = None) -> ArenaPlan:
    """Set slot and offset of every arena place of ``calls``. The places of a loop are alive for the whole loop."""
    lives = _lives(calls, regions)
    lifetimes = [Lifetime(life.nbytes, life.first, life.last) for life in lives]
    bound, peak_call = most_alive(lifetimes)
    arrangement = arrange(lifetimes, bound, peak_call) if planner is None else planned(lifetimes, planner)
    for life, offset in zip(lives, arrangement.offsets, strict=True):
        life.allocation.slot, life.allocation.offset = 0, offset
    return ArenaPlan(tuple(lives), arrangement.peak, bound, peak_call)


def _lives(calls: list[Call], regions: Sequence[AnyRegion]) -> list[Life]:
    first: dict[Allocation, int] = {}
    last: dict[Allocation, int] = {}
    for index, call in enumerate(calls):
        for access in call.accesses:
            if access.allocation.space is MemorySpace.ARENA:
                first.setdefault(access.allocation, index)
                last[access.allocation] = index
    for region in regions:
        inside = [a for call in calls[region.begin : region.end] for a in call.accesses]
        for allocation in {
            a.allocation for a in (*inside, *region.touched()) if a.allocation.space is MemorySpace.ARENA
        }:
            first[allocation] = min(first[allocation], region.begin)
            last[allocation] = max(last[allocation], region.end - 1)
    return [Life(allocation, first[allocation], last[allocation]) for allocation in first]
