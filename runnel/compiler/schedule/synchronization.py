"""Barriers: where a thread needs the results of another, or overwrites memory that another still reads.

The analysis makes two passes over a loop's calls: the first iteration, and any later one. A later iteration starts
with the accesses of earlier iterations since their last barrier. Two accesses that advance are compared at every
distance of iterations at once, so the second pass is valid for all that follow: each starts with no more accesses than
the second, since its barriers include the barriers of the first pass. Calls before and after a loop are
compared with the accesses of all iterations.

A stretch of independent branches (``branches.py``) has its barrier before the first of its calls, whichever of them
needs it: a barrier further on would make the other branches wait as well.

Accesses are indexed by address. Each region is hashed by size into buckets of the next power of two bytes, so that it
is in at most two of them; a query looks only into the buckets that a region overlaps. Reads and writes are separate,
since two reads never conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call, MemorySpace
from runnel.compiler.plan_ir.cost import Block
from runnel.compiler.plan_ir.plan import AnyRegion, Branch, Repeat, While, sequence
from runnel.compiler.schedule.partition import Stretch, TouchedBytes, touched_bytes
from runnel.core.records import replace


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
        """Yield the touches that may conflict with one of ``reach``: writes, and reads too if that one ``writes``."""
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


_WHOLE: Block = (0, 1, 0, 1)


class Barriers(NamedTuple):
    """True where there is a barrier before a call: at the first iteration of the loop around it (or its only run), and
    at later iterations."""

    first: list[bool]
    again: list[bool]


def barriers(
    calls: Sequence[Call],
    blocks: Sequence[Sequence[Block | None]],
    regions: Sequence[AnyRegion],
    stretches: Sequence[Stretch] = (),
) -> Barriers:
    """Return the barriers before calls; those before regions are stored in the regions."""
    walk = _Walk(calls, blocks, stretches)
    if blocks and len(blocks[0]) > 1:
        walk.one_pass(sequence(0, len(calls), regions), [], (), again=False)
    return Barriers(walk.first, walk.again)


class _Walk:
    """The barriers so far."""

    def __init__(
        self, calls: Sequence[Call], blocks: Sequence[Sequence[Block | None]], stretches: Sequence[Stretch]
    ) -> None:
        self.calls = calls
        self.blocks = blocks
        self.stretch_at = {stretch.begin: stretch.calls for stretch in stretches}
        self.first = [False] * len(calls)
        self.again = [False] * len(calls)
        self.unsettled = False  # whether a bounds check of another thread may be pending

    def one_pass(
        self, items: Iterable[int | AnyRegion], since: list[Touch], counts: tuple[int, ...], *, again: bool
    ) -> tuple[list[Touch], bool]:
        """Set the barriers of ``items``; ``counts`` are the iterations of the loops around them. Returns the accesses
        since the last barrier, and whether there was one."""
        cleared = False
        touched = _filed(since, counts)
        for item in items:
            if isinstance(item, int):
                mine = self._touched(item)
                needed = _meet(mine, touched, counts) or self._must_settle(item)
                needed = needed or any(
                    _meet(self._touched(i), touched, counts) or self._must_settle(i)
                    for i in self.stretch_at.get(item, ())
                )
                self.unsettled = self.calls[item].checks or (self.unsettled and not needed)
                (self.again if again else self.first)[item] = needed
                left, inside = mine, False
            else:
                mine = self._all_of(item, counts)
                needed = _meet(mine, touched, counts)
                if again:
                    item.again = needed
                else:
                    item.barrier = needed
                left, inside = self._inside(item, counts)
                self.unsettled |= any(call.checks for call in self.calls[item.begin : item.end])
            if needed or inside:
                touched, cleared = _filed(left, counts), True
            else:
                _file(touched, left, counts)
        return touched.all, cleared

    def _must_settle(self, index: int) -> bool:
        return self.unsettled and any(
            a.writes and a.allocation.space is MemorySpace.VARIABLE for a in self.calls[index].accesses
        )

    def _touched(self, index: int) -> list[Touch]:
        call = self.calls[index]
        return [
            Touch(thread, touched_bytes(access, block, call), False)
            for thread, block in enumerate(self.blocks[index])
            if block is not None
            for access in call.accesses
            if access.allocation.space is not MemorySpace.SCRATCH and not access.past
        ]

    def _flag(self, flag: BufferAccess | None) -> list[Touch]:
        """Let every thread read the flag of a loop or branch."""
        if flag is None:
            return []
        size = flag.allocation.dtype.itemsize
        start = (flag.allocation.offset if flag.allocation.space is MemorySpace.ARENA else 0) + flag.offset * size
        key = None if flag.allocation.space is MemorySpace.ARENA else flag.allocation
        region_bytes = TouchedBytes(
            key, start, start + flag.span * size, None, _WHOLE, False, tuple(s * size for s in flag.steps)
        )
        return [Touch(thread, region_bytes, False) for thread in range(len(self.blocks[0]))]

    def _all_of(self, region: AnyRegion, counts: tuple[int, ...]) -> list[Touch]:
        """Return the accesses of all iterations of ``region``."""
        own = (*counts, region.count) if isinstance(region, Repeat) else counts
        touches = self._flag(region.flag)
        for item in sequence(region.begin, region.end, region.inner):
            touches += self._touched(item) if isinstance(item, int) else self._all_of(item, own)
        return [t._replace(region=_hull(t.region, len(counts), own)) for t in touches]

    def _inside(self, region: AnyRegion, counts: tuple[int, ...]) -> tuple[list[Touch], bool]:
        """Set the barriers inside ``region``. Returns the accesses after its last one, and whether it always has
        one."""
        own = (*counts, region.count) if isinstance(region, Repeat) else counts
        if isinstance(region, Repeat):
            items = list(sequence(region.begin, region.end, region.inner))
            left, cleared = self.one_pass(items, [], own, again=False)
            if region.count > 1:
                left, later = self.one_pass(items, [t._replace(aged=True) for t in left], own, again=True)
                cleared |= later
            return [Touch(t.thread, _hull(t.region, len(counts), own), False) for t in left], cleared
        flag = self._flag(region.flag)
        if isinstance(region, Branch):
            then, otherwise = (self.one_pass(part, flag, counts, again=False)[0] for part in region.parts())
            return [*then, *otherwise, *flag], False
        return self._while(region, flag, counts)

    def _while(self, region: While, flag: list[Touch], counts: tuple[int, ...]) -> tuple[list[Touch], bool]:
        """There is a barrier before the flag is read, so the flag is the only access at the end."""
        test, body = region.parts()
        left: list[Touch] = []
        for again in (False, True):
            self.one_pass(test, left, counts, again=again)
            left, _ = self.one_pass(body, flag, counts, again=again)
        return flag, True


def _filed(touches: Iterable[Touch], counts: tuple[int, ...]) -> Touched:
    touched = Touched()
    _file(touched, touches, counts)
    return touched


def _file(touched: Touched, touches: Iterable[Touch], counts: tuple[int, ...]) -> None:
    for touch in touches:
        touched.add(touch, _reach(touch.region, counts))


def _reach(moving: TouchedBytes, counts: tuple[int, ...]) -> Bytes:
    """Return the bytes of all iterations of the loops around it."""
    whole = _hull(moving, 0, counts) if counts else moving
    return Bytes(whole.key, whole.begin, max(whole.end, whole.begin + 1))


def _meet(mine: Sequence[Touch], touched: Touched, counts: tuple[int, ...]) -> bool:
    return any(
        t.thread != s.thread and _conflict(t.region, s.region, counts, aged=s.aged)
        for t in mine
        for s in touched.near(_reach(t.region, counts), writes=t.region.writes)
    )


def _conflict(new: TouchedBytes, old: TouchedBytes, counts: tuple[int, ...], *, aged: bool) -> bool:
    """Return whether two regions may overlap, at equal iterations of the loops around both; ``aged``: ``old`` at any
    earlier iteration of the innermost loop."""
    if not (new.writes or old.writes) or new.key is not old.key:
        return False
    depth = len(counts)
    for level in range(depth):
        if new.steps[level] != old.steps[level]:
            new, old = _spread(new, level, counts[level]), _spread(old, level, counts[level])
    step = new.steps[-1] if aged and counts else 0
    if not step:
        return new.conflicts(old)
    begin, end = (new.begin, new.end) if step > 0 else (-new.end, -new.begin)
    first, last = (old.begin, old.end) if step > 0 else (-old.end, -old.begin)
    step = abs(step)  # is there a distance d, 1 ≤ d < count, with begin + d·step < last and first < end + d·step?
    least = max(1, (first - end) // step + 1)
    most = min(counts[-1] - 1, -((begin - last) // step) - 1)
    return least <= most


def _spread(moving: TouchedBytes, level: int, count: int) -> TouchedBytes:
    """Return all iterations of one loop as one region."""
    step = moving.steps[level]
    if not step:
        return moving
    reach = (count - 1) * step
    steps = (*moving.steps[:level], 0, *moving.steps[level + 1 :])
    return replace(moving, begin=moving.begin + min(reach, 0), end=moving.end + max(reach, 0), grid=None, steps=steps)


def _hull(moving: TouchedBytes, depth: int, counts: tuple[int, ...]) -> TouchedBytes:
    """Return all iterations of the loops below the first ``depth`` as one region."""
    for level in range(depth, len(counts)):
        moving = _spread(moving, level, counts[level])
    return replace(moving, steps=moving.steps[:depth])
