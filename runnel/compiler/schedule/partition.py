"""Partitioning: each call is split into one block per thread, and a long program into pieces that can be stopped.

A program can be stopped between two records, which are kept short, and only before its commit point. It writes no
persistent state before the commit point, and it cannot be stopped afterwards: a run changes all Variables or none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call, MemorySpace
from runnel.compiler.plan_ir.regions import AnyRegion
from runnel.compiler.plan_ir.work import Block
from runnel.core.records import record

WORTH_SPLITTING = 2e-6  # seconds of predicted work in a call
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
    if not any(b is not None for per_call in blocks for b in per_call[1:]):
        threads, blocks = 1, [per_call[:1] for per_call in blocks]
    return threads, blocks


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
    """Return whether to split columns: where packing of the second operand matters (sums are long), since each thread
    packs for its own columns; and in products of few rows, whose tiles would be cut, unless rows are ``owned``:
    waiting costs more."""
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
    """``block`` in parts of about PIECE or less, to be computed one after another."""
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
