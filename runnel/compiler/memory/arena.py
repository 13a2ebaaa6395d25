"""The arena: one block of memory for all intermediate values; values not alive at the same time share bytes.

A memory planner is a function from sizes and lifetimes to offsets. The order of calls determines which values are alive
at the same time, except in stretches of independent branches, whose calls run concurrently. The values that only one
thread accesses in a stretch share one part of the arena, which is alive for the whole stretch. All other values that
are alive in a stretch are alive from its start to its end.

The usual planner searches among greedy placements. It places a value in the smallest gap among the values that are
alive at the same time, and tries several orders (by size: Y. Pisarchyk, J. Lee, "Efficient Memory Management for Deep
Neural Net Inference", 2020; values alive at the peak first; by bytes times length; by length; by start). Then it
improves the best order: it moves the value that ends highest, or one that is alive with it, to a position drawn by a
fixed generator. It stops at the first placement close to the lower bound, the largest sum of bytes alive at one call.
It counts effort in pairs of lifetimes, not in seconds, so equal programs get equal memory.

Very many overlapping lifetimes are placed like heap allocations, in time linear in their number. A lifetime that
begins takes the smallest hole that fits, or else the end of the used part. A lifetime that ends leaves a hole, which
is merged with adjacent holes. So the values of a forward and a backward pass, the first of which end last, form a
stack. Both directions of time are tried.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from runnel.compiler.plan_ir.calls import Allocation, Call, MemorySpace
from runnel.compiler.plan_ir.plan import ALIGN, AnyRegion, ArenaPlan, Life
from runnel.compiler.schedule.partition import Stretch
from runnel.core.arrays import short_repr
from runnel.core.errors import VerifierError
from runnel.core.kinds import declare
from runnel.core.records import record, replace


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
    """Return the number of ordered pairs of overlapping lifetimes."""
    begins = sorted(x.first for x in lifetimes)
    ends = sorted(x.last for x in lifetimes)
    # of those that begin at or before a lifetime's end, all but those that ended before its begin
    return sum(bisect.bisect_right(begins, s.last) - bisect.bisect_left(ends, s.first) - 1 for s in lifetimes)


def most_alive(lifetimes: Sequence[Lifetime]) -> tuple[int, int]:
    """Return the most bytes that are alive at one moment, and the first such moment: no placement needs fewer bytes."""
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
    """Return offsets for ``lifetimes``."""
    backwards = [Lifetime(s.nbytes, -s.last, -s.first) for s in lifetimes]
    return min(_by_heap(lifetimes), _by_heap(backwards), key=lambda arrangement: arrangement.peak)


def _by_heap(lifetimes: Sequence[Lifetime]) -> Arrangement:
    heap = Heap()
    return Arrangement(tuple(in_time(lifetimes, heap)), heap.peak)


def in_time(lifetimes: Sequence[Lifetime], heap: Any) -> list[int]:
    """Return the offsets that ``heap`` gives: ``take(nbytes)`` where a lifetime begins, ``give_back(offset, nbytes)``
    after it has ended."""
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
        """Return the offset of a new block of ``nbytes``."""
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


CLOSE: Final = 1.02  # times the lower bound: good enough to stop
FAR: Final = 1.05  # times the lower bound: worth more effort
LOSSES: Final = (1.0, 1.01, 1.02)  # times the best peak: the limits of a step of the search
EFFORT: Final = 400_000  # pairs of lifetimes compared in a search: some 50 ms


def arrange(lifetimes: Sequence[Lifetime], bound: int, fullest: int, effort: int = EFFORT) -> Arrangement:
    """Return offsets for ``lifetimes``, of which ``bound`` bytes are alive at the moment ``fullest``."""
    if pairs_alive(lifetimes) > effort:
        return swept(lifetimes)
    search = _Search(lifetimes, int(bound * CLOSE), 3 * effort // 4)
    for key in _keys(lifetimes, fullest):
        if search.try_order(sorted(range(len(lifetimes)), key=key)):
            return search.best
    for loss in LOSSES:
        search.improve(loss, effort // len(LOSSES))
    for loss in LOSSES if search.best.peak > bound * FAR else ():
        search.improve(loss, effort // 2)
    return search.best


def _keys(lifetimes: Sequence[Lifetime], fullest: int) -> Iterable[Callable[[int], tuple[int, ...]]]:
    """Return the greedy orders. Each ends with the value's number, so that none depends on how ties are sorted."""

    def alive_then_large(i: int) -> tuple[int, ...]:
        nbytes, first, last = lifetimes[i]
        return (0, first - last, i) if first <= fullest <= last else (1, -nbytes, first, i)

    def away_from_fullest(i: int) -> tuple[int, ...]:
        nbytes, first, last = lifetimes[i]
        return (max(first - fullest, fullest - last, 0), first - last, -nbytes, i)

    return (
        lambda i: (-lifetimes[i].nbytes, lifetimes[i].first, i),
        alive_then_large,
        lambda i: (-lifetimes[i].nbytes * (lifetimes[i].last - lifetimes[i].first + 1), i),
        lambda i: (lifetimes[i].first - lifetimes[i].last, -lifetimes[i].nbytes, i),
        lambda i: (lifetimes[i].first, -lifetimes[i].nbytes, i),
        away_from_fullest,
    )


class _Search:
    """The best placement so far, and the remaining effort."""

    def __init__(self, lifetimes: Sequence[Lifetime], goal: int, effort: int) -> None:
        self.sizes = [x.nbytes for x in lifetimes]
        self.together = _together(lifetimes)
        self.pairs = sum(map(len, self.together)) + len(lifetimes)
        self.goal = goal
        self.effort = effort
        self.order: list[int] = []
        self.best = Arrangement((), 0)

    def try_order(self, order: list[int]) -> bool:
        """Place the lifetimes in ``order``; returns whether the search is over."""
        if self.order and self.effort < self.pairs:
            return False
        arrangement = self._place(order, self.best.peak if self.order else None)
        if arrangement is not None:
            self.order, self.best = order, arrangement
        return self.best.peak <= self.goal

    def improve(self, loss: float, effort: int) -> None:
        """Move values, starting from the best order, for this much more effort. Steps with a small loss are accepted
        (G. Dueck, T. Scheuer, "Threshold accepting", 1990)."""
        self.effort = max(self.effort, 0) + effort
        state = 1
        count = len(self.sizes)
        order, placed = self.order, self.best
        while self.effort >= self.pairs and self.best.peak > self.goal:
            ends = [offset + size for offset, size in zip(placed.offsets, self.sizes, strict=True)]
            highest = max(range(count), key=lambda i: (ends[i], i))
            state = (state * 1103515245 + 12345) % (1 << 31)  # the generator of the C standard's example
            draw = state >> 8
            kind, draw = draw % 3, draw // 3
            moved = order.copy()
            neighbours = self.together[highest]
            if kind == 0 or not neighbours:
                at = order.index(highest)
                moved.insert(draw % (at + 1), moved.pop(at))
            else:
                among = neighbours if kind == 1 else order
                other = among[draw % len(among)]
                moved.remove(other)
                moved.insert(draw // len(among) % count, other)
            arrangement = self._place(moved, int(self.best.peak * loss) + 1)
            if arrangement is not None:
                order, placed = moved, arrangement
                if arrangement.peak < self.best.peak:
                    self.order, self.best = moved, arrangement

    def _place(self, order: list[int], limit: int | None) -> Arrangement | None:
        """Place each value in the smallest gap that fits; None if that does not end below ``limit``."""
        self.effort -= self.pairs
        sizes, together = self.sizes, self.together
        offsets = [-1] * len(sizes)
        peak = 0
        for i in order:
            size = sizes[i]
            occupied = sorted([(offsets[j], sizes[j]) for j in together[i] if offsets[j] >= 0])
            end, chosen, room = 0, -1, 0
            for begin, length in occupied:
                gap = begin - end
                if gap >= size and (chosen < 0 or gap < room):
                    chosen, room = end, gap
                if begin + length > end:
                    end = begin + length
            offsets[i] = end if chosen < 0 else chosen
            if offsets[i] + size > peak:
                peak = offsets[i] + size
                if limit is not None and peak >= limit:
                    return None
        return Arrangement(tuple(offsets), peak)


def _together(lifetimes: Sequence[Lifetime]) -> list[list[int]]:
    """Return, for each value, the values whose lifetimes overlap with it."""
    together: list[list[int]] = [[] for _ in lifetimes]
    alive: list[int] = []
    for i in sorted(range(len(lifetimes)), key=lambda i: lifetimes[i].first):
        first = lifetimes[i].first
        alive = [j for j in alive if lifetimes[j].last >= first]
        for j in alive:
            together[i].append(j)
            together[j].append(i)
        alive.append(i)
    return together


_LARGEST: Final = 1 << 56  # more than processors address

MemoryPlanner: TypeAlias = Callable[[Sequence[Lifetime]], Sequence[int]]


class Allocator(Protocol):
    """A heap inside one block of memory."""

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
    """Return the name of a planner for messages."""
    if isinstance(planner, Replayed):
        planner = planner.allocator
    return str(getattr(planner, "__name__", type(planner).__name__))


def planned(lifetimes: Sequence[Lifetime], planner: MemoryPlanner) -> Arrangement:
    """Call ``planner``. VerifierError unless it returns one offset for each lifetime; the verifier of plans finds
    overlaps later."""
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
    """Set slot and offset of every allocation in the arena. Allocations of a loop are alive for the whole loop."""
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
    """Return, for each thread, the allocations alive only in ``stretch`` that no other thread touches."""
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
