"""The points at which a long program can be stopped: between records, which are kept short, and only before its commit
point.

No persistent state is written before the commit point, and a run cannot be stopped after it: a run changes all
Variables or none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from runnel.compiler.kernels.allocations import Call, MemorySpace
from runnel.compiler.schedule.partition import Block

LONG: Final = 1e-3  # seconds of predicted work that outweigh the cost of stopping: a barrier and watching for a signal
PIECE: Final = 10e-3  # most seconds of predicted work in a record that can be split

_MOST: Final = 4096  # most pieces of a call; longer calls may take longer to stop


def is_long(calls: Sequence[Call]) -> bool:
    """Whether the program is long enough to be stoppable."""
    return sum(call.seconds * call.times for call in calls) > LONG


def commit_point(calls: Sequence[Call]) -> int:
    """The call after the commit point: the first one that writes a Variable; ``len(calls)`` if none does."""
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
    """The bounds of ``parts`` of [begin, end) of nearly equal size, or fewer; all but the last part are multiples of
    ``grain``."""
    grains = -(-(end - begin) // grain)
    parts = max(min(parts, grains), 1)
    return [min(end, begin + grains * p // parts * grain) for p in range(parts + 1)]
