"""Offsets in one block of memory for many lifetimes: a search among greedy placements.

A value is placed in the smallest gap among the values that are alive at the same time. The search tries several orders
(by size: Y. Pisarchyk, J. Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020; values alive at the
peak first; by bytes times length; by length; by start). Then it improves the best order: it moves the value that ends
highest, or one that is alive with it, to a position drawn by a fixed generator. It stops at the first placement close
to the lower bound. It counts effort in pairs of lifetimes, not in seconds, so equal programs get equal memory.

Very many overlapping lifetimes are placed like heap allocations, in time linear in their number. A lifetime that
begins takes the smallest hole that fits, or else the end of the used part. A lifetime that ends leaves a hole, which
is merged with adjacent holes. So the values of a forward and a backward pass, the first of which end last, form a
stack. Both directions of time are tried.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

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
    """Offsets for ``lifetimes``."""
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
    """Offsets for ``lifetimes``, of which those alive at the moment ``fullest`` have ``bound`` bytes."""
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
    """For each value, those whose lifetimes overlap with it."""
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
