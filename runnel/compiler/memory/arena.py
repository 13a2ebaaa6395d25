"""The arena: one block of memory for all intermediate values; values not alive at the same time share bytes.

A memory planner is a function from sizes and lifetimes to offsets. Unless the program has its own planner,
``arrangement.py`` searches for offsets that come close to the lower bound, the largest sum of bytes alive at one call.

The order of calls determines which values are alive at the same time, except in stretches of independent branches,
whose calls run concurrently. The values that only one thread accesses in a stretch share one part of the arena, which
is alive for the whole stretch. All other values that are alive in a stretch are alive from its start to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Final, Protocol, TypeAlias

from runnel.compiler.memory.arrangement import Arrangement, Lifetime, arrange, in_time, most_alive
from runnel.compiler.plan_ir.calls import Allocation, Call, MemorySpace
from runnel.compiler.plan_ir.plan import ALIGN, ArenaPlan, Life
from runnel.compiler.plan_ir.regions import AnyRegion
from runnel.compiler.schedule.branches import Stretch
from runnel.core.arrays import short_repr
from runnel.core.errors import VerifierError
from runnel.core.records import record, replace

_LARGEST: Final = 1 << 56  # more than processors address

MemoryPlanner: TypeAlias = Callable[[Sequence[Lifetime]], Sequence[int]]


class Allocator(Protocol):
    """A heap inside of one block of memory."""

    def take(self, nbytes: int) -> int:
        """Return the offset of a free part of ``nbytes``, which is in use from now on."""

    def give_back(self, offset: int, nbytes: int) -> None:
        """Free a part that was taken."""


def search(lifetimes: Sequence[Lifetime]) -> Sequence[int]:
    """Return the planner of programs: the best of several greedy placements, improved by a search
    (``arrangement.py``)."""
    return arrange(lifetimes, *most_alive(lifetimes)).offsets


@record
class Replayed:
    """A planner that carries out the program's allocations and frees, in the order of time, on a new allocator."""

    allocator: Callable[[], Allocator]

    def __call__(self, lifetimes: Sequence[Lifetime]) -> Sequence[int]:
        return in_time(lifetimes, self.allocator())


def name_of(planner: object) -> str:
    """How messages call a planner."""
    if isinstance(planner, Replayed):
        planner = planner.allocator
    return str(getattr(planner, "__name__", type(planner).__name__))


def planned(lifetimes: Sequence[Lifetime], planner: MemoryPlanner) -> Arrangement:
    """What ``planner`` answers. VerifierError unless it is one offset for each lifetime; overlaps are found later, by
    the verifier of plans."""
    if not lifetimes:
        return Arrangement((), 0)
    subject, answer = f"Memory planner '{name_of(planner)}'", planner(tuple(lifetimes))
    try:
        offsets = list(answer)
    except TypeError:
        raise VerifierError(f"{subject} returned {short_repr(answer)}; it returns an offset for each value.") from None
    if len(offsets) != len(lifetimes):
        raise VerifierError(f"{subject} returned {len(offsets)} offsets for {len(lifetimes)} lifetimes.")
    for offset in offsets:
        if not isinstance(offset, Integral) or not 0 <= offset <= _LARGEST or offset % ALIGN:
            raise VerifierError(
                f"{subject} returned the offset {short_repr(offset)}; offsets are multiples of {ALIGN} from 0 on."
            )
    placed = tuple(map(int, offsets))
    return Arrangement(placed, max(offset + x.nbytes for offset, x in zip(placed, lifetimes, strict=True)))


ROOM: Final = 1 << 20  # bytes that branches at the same time may need more than one after another


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
    """Set the offsets of the allocations of ``serial`` again, such that the threads of each stretch share no memory.
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
    """Return the same allocation, alive to the borders of the stretches that it is alive in."""
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
