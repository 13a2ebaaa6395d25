"""Who computes what: each call is split into one block for each thread, and barriers stand where a thread needs what
another one made, or overwrites what another one still reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from runnel.lowering.places import Access, Call, Place, Space

Block = tuple[int, int, int, int]  # i0, i1, j0, j1

WORTH_SPLITTING = 2e-6  # seconds of predicted work in a call
WORTH_A_TEAM = 20e-6  # seconds of predicted work in a program
GRAIN = 16  # columns are split at whole vectors
FEW_ROWS = 48  # of a product
DEEP = 64  # a sum of so many products


def split_calls(calls: list[Call], threads: int) -> tuple[int, list[list[Block | None]], list[bool]]:
    """The number of threads worth using, each call's blocks, and whether a barrier stands before each call."""
    if sum(c.seconds for c in calls) < WORTH_A_TEAM:
        threads = 1
    blocks = [split(call, threads) for call in calls]
    if not any(b is not None for per_call in blocks for b in per_call[1:]):
        threads, blocks = 1, [per_call[:1] for per_call in blocks]
    return threads, blocks, barriers(calls, blocks)


def split(call: Call, threads: int) -> list[Block | None]:
    """Blocks of nearly equal size along the better axis; the first thread takes all of a small call."""
    whole: list[Block | None] = [(0, call.rows, 0, call.columns)]
    whole += [None] * (threads - 1)
    if threads == 1 or call.seconds < WORTH_SPLITTING or not call.split:
        return whole
    by_rows = call.split == "rows" or (call.split == "both" and call.rows >= threads * 4 and not _prefers_columns(call))
    if by_rows:
        edges = [call.rows * t // threads for t in range(threads + 1)]
        return [(a, b, 0, call.columns) if b > a else None for a, b in pairwise(edges)]
    if call.split == "rows":
        return whole
    grains = -(-call.columns // GRAIN)
    edges = [min(call.columns, grains * t // threads * GRAIN) for t in range(threads + 1)]
    return [(0, call.rows, a, b) if b > a else None for a, b in pairwise(edges)]


def _prefers_columns(call: Call) -> bool:
    """What a contraction packs of its second operand each thread packs for its own columns: where that counts (sums are
    long) columns are split. So they are in products of few rows, whose tiles would be cut."""
    if call.columns < 64 or not call.depth:
        return False
    return call.rows < FEW_ROWS or (call.packs and call.depth >= DEEP)


@dataclass(frozen=True, slots=True)
class Region:
    """What one thread touches of one place: a hull of bytes, and the exact rectangle where the access is one."""

    key: Place | None  # None: the arena, whose places share memory
    begin: int
    end: int
    grid: tuple[Place, int, int, int, int, int] | None  # place, offset, steps, extents: comparable rectangles
    block: Block
    writes: bool

    def conflicts(self, other: Region) -> bool:
        if not (self.writes or other.writes) or self.key is not other.key:
            return False
        if self.end <= other.begin or other.end <= self.begin:
            return False
        if self.grid is not None and self.grid == other.grid:
            a, b = self.block, other.block
            return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
        return True


def region(access: Access, block: Block, call: Call) -> Region:
    """The bytes that ``block`` of ``call`` touches through ``access``."""
    i0, i1, j0, j1 = block
    place = access.place
    size = place.dtype.itemsize
    start = place.offset if place.space is Space.ARENA else 0
    rows, columns = access.row_step, access.column_step
    key = None if place.space is Space.ARENA else place
    if rows is None or columns is None or rows < 0 or columns < 0:
        return Region(key, start, start + max(place.nbytes, 1), None, block, access.writes)
    low = access.offset + i0 * rows + j0 * columns
    high = access.offset + (i1 - 1) * rows + (j1 - 1) * columns + access.span
    columns_apart = call.columns == 1 or columns >= access.span
    rows_apart = call.rows == 1 or rows >= (call.columns - 1) * columns + access.span
    exact = columns_apart and rows_apart and (rows or call.rows == 1) and (columns or call.columns == 1)
    grid = (place, access.offset, rows, columns, call.rows, call.columns) if exact else None
    if place.strided:  # steps are through its real memory: what is written is never an input
        return Region(key, 0, 1, None, block, access.writes)
    return Region(key, start + low * size, start + high * size, grid, block, access.writes)


def barriers(calls: list[Call], blocks: list[list[Block | None]]) -> list[bool]:
    """Whether a barrier must stand before each call."""
    result: list[bool] = []
    since: list[tuple[int, Region]] = []
    unsettled = False  # whether another thread may still find an index out of range
    for call, per_thread in zip(calls, blocks, strict=True):
        mine = [
            (t, region(access, block, call))
            for t, block in enumerate(per_thread)
            if block is not None
            for access in call.accesses
            if access.place.space is not Space.SCRATCH
        ]
        needed = any(t != s and r.conflicts(q) for t, r in mine for s, q in since)
        needed = needed or (unsettled and any(a.writes and a.place.space is Space.VARIABLE for a in call.accesses))
        unsettled = call.checks or (unsettled and not needed)
        result.append(needed)
        since = mine if needed else since + mine
    return result
