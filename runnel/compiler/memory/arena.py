"""The arena: offsets of intermediate values, such that values that are not alive at the same time share memory.

The lower bound is the largest sum of bytes alive at one call; ``arrangement.py`` searches for offsets that come close,
unless the program has a memory planner of its own.

What is alive together follows from the order of calls, but for stretches of independent branches, whose calls run at
the same time. The values that one thread alone touches in a stretch share one part of the arena, which is alive for the
whole stretch; all others that are alive in it are so from its begin to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from runnel.compiler.kernels.allocations import Allocation, Call, MemorySpace
from runnel.compiler.memory.arrangement import arrange
from runnel.compiler.memory.planner import ALIGN, MemoryPlanner, planned
from runnel.compiler.memory.sweep import Arrangement, Lifetime, most_alive
from runnel.compiler.schedule.branches import Stretch
from runnel.compiler.schedule.loop_regions import AnyRegion
from runnel.core.records import record, replace

ROOM: Final = 1 << 20  # bytes that branches at the same time may need more than one after another


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
        """The allocations that are alive at a call, largest first."""
        alive = [life for life in self.lives if life.first <= call <= life.last]
        return sorted(alive, key=lambda life: -life.nbytes)


def lay_out(calls: list[Call], regions: Sequence[AnyRegion] = (), planner: MemoryPlanner | None = None) -> ArenaPlan:
    """Set slot and offset of every allocation in the arena. Those of a loop are alive for the whole loop."""
    lives = _lives(calls, regions)
    lifetimes = _lifetimes(lives)
    bound, peak_call = most_alive(lifetimes)
    arrangement = arrange(lifetimes, bound, peak_call) if planner is None else planned(lifetimes, planner)
    for life, offset in zip(lives, arrangement.offsets, strict=True):
        life.allocation.slot, life.allocation.offset = 0, offset
    return ArenaPlan(tuple(lives), arrangement.peak, bound, peak_call)


def lay_out_apart(calls: Sequence[Call], serial: ArenaPlan, stretches: Sequence[Stretch]) -> ArenaPlan | None:
    """Set the offsets of the allocations of ``serial`` anew, such that the threads of each stretch share no memory.
    None, with all as it was, if that needs more than ``ROOM`` bytes more."""
    parts = [(stretch, part) for stretch in stretches for part in _parts(stretch, calls, serial.lives)]
    inside = {life.allocation for _, part in parts for life in part}
    others = [_stretched(life, stretches) for life in serial.lives if life.allocation not in inside]
    arranged = [_arranged(_lifetimes(part)) for _, part in parts]
    whole = _arranged([
        *_lifetimes(others),
        *(Lifetime(own.peak, s.begin, s.end - 1) for (s, _), own in zip(parts, arranged, strict=True)),
    ])  # fmt: skip
    if whole.peak > serial.peak + ROOM:
        return None
    for life, offset in zip(others, whole.offsets[: len(others)], strict=True):
        life.allocation.offset = offset
    for (_, part), own, start in zip(parts, arranged, whole.offsets[len(others) :], strict=True):
        for life, offset in zip(part, own.offsets, strict=True):
            life.allocation.offset = start + offset
    return replace(serial, peak=whole.peak)


def _lifetimes(lives: Sequence[Life]) -> list[Lifetime]:
    return [Lifetime(life.nbytes, life.first, life.last) for life in lives]


def _arranged(lifetimes: Sequence[Lifetime]) -> Arrangement:
    return arrange(lifetimes, *most_alive(lifetimes))


def _parts(stretch: Stretch, calls: Sequence[Call], lives: Sequence[Life]) -> list[list[Life]]:
    """For each thread the allocations that no other one touches, of those that are alive in ``stretch`` only."""
    threads: dict[Allocation, set[int]] = {}
    for index, thread in zip(stretch.calls, stretch.threads, strict=True):
        for access in calls[index].accesses:
            threads.setdefault(access.allocation, set()).add(thread)
    parts: dict[int, list[Life]] = {}
    for life in lives:
        if stretch.begin <= life.first and life.last < stretch.end and len(threads[life.allocation]) == 1:
            parts.setdefault(min(threads[life.allocation]), []).append(life)
    return list(parts.values())


def _stretched(life: Life, stretches: Sequence[Stretch]) -> Life:
    """The same allocation, alive to the borders of the stretches that it is alive in."""
    around = [s for s in stretches if s.begin <= life.last and life.first < s.end]
    first = min([life.first, *(s.begin for s in around)])
    last = max([life.last, *(s.end - 1 for s in around)])
    return Life(life.allocation, first, last)


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
