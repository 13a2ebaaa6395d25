"""Partitioning: each call is split into one block per thread; calls too small to split go to different threads.

A program can be stopped between two records, which are kept short, and only before its commit point. It writes no
persistent state before the commit point, and it cannot be stopped afterwards: a run changes all Variables or none.

A *stretch* is a range of calls that are not split. Calls of a stretch that depend on one another run on the same
thread, so its threads need not wait for one another; they wait once before it, and once after it where other threads
read the results. Values that only one thread touches in a stretch do not share memory with values of other threads
(``memory/arena.py``), so memory makes no more calls dependent. The most expensive group of dependent calls goes first,
each to the thread with the least work so far (R. Graham, "Bounds on Multiprocessing Timing Anomalies", 1969).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final

from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call, MemorySpace
from runnel.compiler.plan_ir.cost import Block
from runnel.compiler.plan_ir.plan import AnyRegion, Waves, sequence
from runnel.core.records import record

WORTH_SPLITTING = 2e-6  # seconds of predicted work in a call
WORTH_A_WAVE = 10e-6  # seconds of predicted work in a wave
WORTH_A_TEAM = 20e-6  # seconds of predicted work in a program
FEW_ROWS = 48  # of a product
MANY_ROWS = 2048  # of a product, from which on packing is a small cost
DEEP = 64  # products in a long sum


def split_calls(
    calls: list[Call], threads: int, regions: Sequence[AnyRegion] = ()
) -> tuple[int, list[list[Block | None]]]:
    """Return the number of threads worth using, and each call's blocks."""
    if not is_worth_a_team(calls):
        threads = 1
    rows = [0] * len(calls)
    for region in regions:
        inside = range(region.begin, region.end)
        if threads > 1 and any(calls[i].seconds >= WORTH_SPLITTING for i in inside):
            owned = next((calls[i].rows for i in inside if calls[i].depth and calls[i].rows >= threads * 4), 1)
            rows[region.begin : region.end] = [owned] * len(inside)
    blocks = [split(call, threads, owned) for call, owned in zip(calls, rows, strict=True)]
    for region in regions:
        if isinstance(region, Waves):
            _split_waves(region, calls, blocks, threads)
    if not any(b is not None for per_call in blocks for b in per_call[1:]):
        threads, blocks = 1, [per_call[:1] for per_call in blocks]
    return threads, blocks


def _split_waves(region: Waves, calls: list[Call], blocks: list[list[Block | None]], threads: int) -> None:
    """Split windowed calls by rows of the waves. Every thread computes the same share of each wave in all of them, so
    threads wait for one another only where a call reads rows of earlier waves."""
    inside = range(region.begin, region.end)
    work = sum(calls[i].seconds for i in inside if calls[i].window)
    parts = threads if work >= WORTH_A_WAVE * region.waves else 1
    edges = [region.rows * t // parts for t in range(parts + 1)]
    for i in inside:
        call = calls[i]
        k = abs(call.window)
        whole: Block = (0, call.rows, 0, call.columns)
        mine: list[Block | None] = [whole]
        if call.window > 0 and parts > 1:
            mine = [(a * k, b * k, 0, call.columns) if b > a else None for a, b in pairwise(edges)]
        elif call.window and parts > 1:
            mine = [(0, call.rows, a * k, b * k) if b > a else None for a, b in pairwise(edges)]
        blocks[i] = [*mine, *[None] * (threads - len(mine))]


def is_worth_a_team(calls: Sequence[Call]) -> bool:
    """Return whether there is enough work for several threads, and no host function, which may need the team itself."""
    return sum(c.seconds * c.times for c in calls) >= WORTH_A_TEAM and all(c.host is None for c in calls)


def split(call: Call, threads: int, owned: int = 0) -> list[Block | None]:
    """Blocks of nearly equal size along the better axis; a small call is done by the first thread.

    In a loop with split calls, small calls are split, too, all by the same ``owned`` rows where they have these: then a
    thread reads what it wrote itself, and need not wait for the others at each iteration.
    """
    whole: list[Block | None] = [(0, call.rows, 0, call.columns)]
    whole += [None] * (threads - 1)
    if threads == 1 or not call.split or (call.seconds < WORTH_SPLITTING and not owned):
        return whole
    by_rows = call.split == "rows" or (
        call.split == "both" and call.rows >= threads * 4 and not _prefers_columns(call, owned)
    )
    if by_rows:
        grain = call.rows // owned if owned > 1 and call.rows % owned == 0 else 1
        edges = [call.rows // grain * t // threads * grain for t in range(threads + 1)]
        return [(a, b, 0, call.columns) if b > a else None for a, b in pairwise(edges)]
    if call.split == "rows":
        return whole
    grain = call.columns // owned if owned > 1 and call.rows == 1 and call.columns % owned == 0 else call.grain
    grains = -(-call.columns // grain)
    edges = [min(call.columns, grains * t // threads * grain) for t in range(threads + 1)]
    return [(0, call.rows, a, b) if b > a else None for a, b in pairwise(edges)]


def _prefers_columns(call: Call, owned: int = 0) -> bool:
    """Return whether to split columns instead of rows.

    Splitting columns pays if sums are long, because each thread then packs only its columns of the second operand. It
    also pays if there are few rows, because splitting rows would cut tiles; but not if rows are ``owned``, because
    waiting for another thread's rows costs more."""
    if call.columns < 64 or not call.depth or call.rows >= MANY_ROWS:
        return False
    return (call.rows < FEW_ROWS and not owned) or (call.packs and call.depth >= DEEP)


@record
class TouchedBytes:
    """The bytes of one place that one thread accesses, in first iterations of loops: a hull, and the exact rectangle if
    the access is one."""

    key: Allocation | None  # None: the arena, whose allocations share memory
    begin: int
    end: int
    grid: tuple[Allocation, int, int, int, int, int] | None  # place, offset, steps, extents: comparable rectangles
    block: Block
    writes: bool
    steps: tuple[int, ...] = ()  # bytes to advance at each iteration of the loops around, outermost first

    def conflicts(self, other: TouchedBytes) -> bool:
        if not (self.writes or other.writes) or self.key is not other.key:
            return False
        if self.end <= other.begin or other.end <= self.begin:
            return False
        if self.grid is not None and self.grid == other.grid:
            a, b = self.block, other.block
            return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
        return True


def touched_bytes(access: BufferAccess, block: Block, call: Call) -> TouchedBytes:
    """Return the bytes that ``block`` of ``call`` accesses through ``access``."""
    i0, i1, j0, j1 = block
    allocation = access.allocation
    size = allocation.dtype.itemsize
    start = allocation.offset if allocation.space is MemorySpace.ARENA else 0
    rows, columns = access.row_step, access.column_step
    key = None if allocation.space is MemorySpace.ARENA else allocation
    steps = tuple(step * size for step in access.steps)
    if rows is None or columns is None or rows < 0 or columns < 0:
        return TouchedBytes(
            key, start, start + max(allocation.nbytes, 1), None, block, access.writes, (0,) * len(steps)
        )
    low = access.offset - access.before + i0 * rows + j0 * columns
    high = access.offset + (i1 - 1) * rows + (j1 - 1) * columns + access.span
    inner = access.before + access.span
    columns_apart = call.columns == 1 or columns >= inner
    rows_apart = call.rows == 1 or rows >= (call.columns - 1) * columns + inner
    exact = columns_apart and rows_apart and (rows or call.rows == 1) and (columns or call.columns == 1)
    grid = (allocation, access.offset, rows, columns, call.rows, call.columns) if exact else None
    if allocation.strided:  # steps are in its real memory, and inputs are never written
        return TouchedBytes(key, 0, 1, None, block, access.writes, (0,) * len(steps))
    return TouchedBytes(key, start + low * size, start + high * size, grid, block, access.writes, steps)


LONG: Final = 1e-3  # seconds of predicted work that outweigh the cost of stopping: a barrier and watching for a signal
PIECE: Final = 10e-3  # most seconds of predicted work in a record that can be split

_MOST: Final = 4096  # most pieces of a call; longer calls may take longer to stop


def is_long(calls: Sequence[Call]) -> bool:
    """Return whether the program is long enough to be stoppable."""
    return sum(call.seconds * call.times for call in calls) > LONG


def commit_point(calls: Sequence[Call]) -> int:
    """Return the call after the commit point: the first one that writes a Variable; ``len(calls)`` if none does."""
    writers = (
        i
        for i, c in enumerate(calls)
        if any(a.writes and a.allocation.space is MemorySpace.VARIABLE for a in c.accesses)
    )
    return next(writers, len(calls))


def pieces(call: Call, block: Block) -> list[Block]:
    """Cut ``block`` into parts of about PIECE or less, to be computed one after another."""
    i0, i1, j0, j1 = block
    share = (i1 - i0) * (j1 - j0) / max(call.rows * call.columns, 1)
    parts = min(int(call.seconds * share / PIECE) + 1, _MOST)
    rows, columns = [i0, i1], [j0, j1]
    if call.packed_block is not None:
        few_rows, panel = call.packed_block
        columns = _edges(j0, j1, parts, math.lcm(panel, call.grain))
        rows = _edges(i0, i1, -(-parts // (len(columns) - 1)), few_rows)
    else:
        if call.split in ("rows", "both"):
            rows = _edges(i0, i1, parts, 1)
        if call.split in ("columns", "both"):
            columns = _edges(j0, j1, -(-parts // (len(rows) - 1)), call.grain)
    return [(*r, *c) for r in pairwise(rows) for c in pairwise(columns)]


def _edges(begin: int, end: int, parts: int, grain: int) -> list[int]:
    """Return the bounds of ``parts`` of [begin, end) of nearly equal size, or fewer; all but the last part are
    multiples of ``grain``."""
    grains = -(-(end - begin) // grain)
    parts = max(min(parts, grains), 1)
    return [min(end, begin + grains * p // parts * grain) for p in range(parts + 1)]


WORTH_DEALING = 5e-6  # seconds of predicted work that a stretch must save: more than its barriers cost
WORTH_MEMORY = 0.25  # of the work of a stretch that it must save: its threads use memory apart from one another
_LONGEST: Final = 128  # calls of a stretch
_NEVER_WRITTEN: Final = (MemorySpace.INPUT, MemorySpace.CONSTANT, MemorySpace.SCRATCH)  # scratch is each thread's own


@record
class Stretch:
    """The calls from ``begin`` on, each with the thread that computes it; ``saved`` are seconds."""

    begin: int
    threads: tuple[int, ...]
    saved: float

    @property
    def end(self) -> int:
        return self.begin + len(self.threads)

    @property
    def calls(self) -> range:
        return range(self.begin, self.end)


def find_stretches(
    calls: Sequence[Call], blocks: Sequence[Sequence[Block | None]], threads: int, regions: Sequence[AnyRegion]
) -> list[Stretch]:
    """Return the stretches that are worth their barriers, and a team of threads where no call is split."""
    if threads == 1 or not is_worth_a_team(calls):
        return []
    stretches = [stretch for run in _serial_runs(calls, blocks, regions) for stretch in _stretches(calls, run, threads)]
    has_team = any(len(of_call) > 1 for of_call in blocks)
    least = 0.0 if has_team else WORTH_A_TEAM / 2  # what two threads save of a program that is just worth it
    return stretches if sum(stretch.saved for stretch in stretches) >= least else []


def dealt(
    blocks: Sequence[Sequence[Block | None]], stretches: Sequence[Stretch]
) -> tuple[int, list[list[Block | None]]]:
    """Return the number of threads, and each call's blocks, with the calls of ``stretches`` on their threads."""
    threads = max([len(of_call) for of_call in blocks] + [1 + max(stretch.threads) for stretch in stretches], default=1)
    moved = [[*of_call, *[None] * (threads - len(of_call))] for of_call in blocks]
    for stretch in stretches:
        for index, thread in zip(stretch.calls, stretch.threads, strict=True):
            moved[index][0], moved[index][thread] = None, moved[index][0]
    return threads, moved


def _serial_runs(
    calls: Sequence[Call], blocks: Sequence[Sequence[Block | None]], regions: Sequence[AnyRegion]
) -> Iterator[range]:
    """Yield ranges of calls outside loops that only the first thread computes. They do not cross the commit point,
    at which threads wait for one another; and checks of bounds stay where they are, so the first fault is the one
    reported."""
    committed = commit_point(calls) if is_long(calls) else len(calls)
    begin = 0
    for item in sequence(0, len(calls), regions):
        at, end = (item, item + 1) if isinstance(item, int) else (item.begin, item.end)
        is_serial = isinstance(item, int) and not calls[item].checks and not any(blocks[item][1:])
        if is_serial and at != committed:
            continue
        yield range(begin, at)
        begin = at if is_serial else end
    yield range(begin, len(calls))


def _stretches(calls: Sequence[Call], run: range, threads: int) -> Iterator[Stretch]:
    """Yield the stretches of ``run``, from the first on. One begins where the run does, or after a call on which
    several others depend; it ends before a call that joins two of its branches."""
    costs = [calls[i].seconds for i in run]
    total = [0.0, *accumulate(costs)]
    if total[-1] <= 2 * WORTH_DEALING:
        return
    needs = _dependencies(calls, run)
    readers = Counter(i for of_call in needs for i in of_call)
    begin = 0
    while begin < len(run):
        end = min(begin + _LONGEST, len(run))
        if total[end] - total[begin] > 2 * WORTH_DEALING:
            branches = _branches(costs, needs, range(begin, end))
            thread_of, saved = _by_cost(branches, costs, threads)
            if saved > max(WORTH_DEALING, WORTH_MEMORY * sum(costs[i] for i in thread_of)):
                yield Stretch(run[begin], tuple([thread_of[i] for i in sorted(thread_of)]), saved)
                begin += len(thread_of)
                continue
        begin = next((i for i in range(begin, len(run)) if readers[i] > 1), len(run)) + 1


def _branches(costs: Sequence[float], needs: Sequence[Sequence[int]], window: range) -> list[list[int]]:
    """Return the calls of ``window``, by number, in groups that do not depend on one another, up to the first call that
    joins two groups which are both worth a thread."""
    first_of: dict[int, int] = {}  # the group of a call, by its first call
    group_of: dict[int, list[int]] = {}
    cost_of: dict[int, float] = {}
    for number in window:
        joined = sorted({first_of[i] for i in needs[number] if i >= window.start})
        if sum(cost_of[first] > WORTH_DEALING for first in joined) > 1:
            break
        first, *others = joined or [number]
        group = group_of.setdefault(first, [])
        for other in others:
            first_of.update(dict.fromkeys(group_of[other], first))
            group += group_of.pop(other)
        group.append(number)
        first_of[number] = first
        cost_of[first] = sum(cost_of.pop(x, 0.0) for x in (first, *others)) + costs[number]
    return list(group_of.values())


def _by_cost(branches: Sequence[Sequence[int]], costs: Sequence[float], threads: int) -> tuple[dict[int, int], float]:
    """Return the thread of each call, and the seconds that are saved."""
    work = [0.0] * threads
    thread_of: dict[int, int] = {}
    priced = [(sum(costs[i] for i in branch), branch) for branch in branches]
    for cost, branch in sorted(priced, key=lambda item: (-item[0], item[1][0])):
        thread = work.index(min(work))
        work[thread] += cost
        thread_of.update(dict.fromkeys(branch, thread))
    return thread_of, sum(work) - max(work)


def _dependencies(calls: Sequence[Call], run: range) -> list[list[int]]:
    """Return, for each call of ``run``, the numbers of earlier calls that write what it touches or touch what it
    writes, except calls that no stretch has in common with it."""
    touched: dict[Allocation, list[tuple[int, TouchedBytes]]] = {}
    needs: list[list[int]] = []
    for number, index in enumerate(run):
        call = calls[index]
        whole = (0, call.rows, 0, call.columns)
        mine = [
            (a.allocation, touched_bytes(a, whole, call))
            for a in call.accesses
            if a.allocation.space not in _NEVER_WRITTEN
        ]
        needed: set[int] = set()
        for allocation, part in mine:
            for earlier, other in reversed(touched.get(allocation, ())):
                if earlier <= number - _LONGEST:
                    break
                if part.conflicts(other):
                    needed.add(earlier)
        needs.append(sorted(needed))
        for allocation, part in mine:
            touched.setdefault(allocation, []).append((number, part))
    return needs
