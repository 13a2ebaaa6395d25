"""Where a long program can be stopped: between records, which are cut short, and only before its seal.

Nothing that outlives the run is written before the seal, and nobody stops after it: a run either leaves every Variable
as it was or gives each its new value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from runnel.compiler.kernels.places import Call, Space
from runnel.compiler.schedule.partition import Block

LONG: Final = 1e-3  # seconds of predicted work: what stopping costs (a barrier, watching for a signal) is lost in it
PIECE: Final = 10e-3  # seconds of predicted work in a record, at most, where it can be cut

_MOST: Final = 4096  # pieces of a call; what runs for longer may take longer to stop


def is_long(calls: Sequence[Call]) -> bool:
    """Whether somebody may want to stop the program."""
    return sum(call.seconds * call.times for call in calls) > LONG


def seal(calls: Sequence[Call]) -> int:
    """The call before which the seal stands: the first one that writes a Variable; ``len(calls)`` if none does."""
    writers = (i for i, c in enumerate(calls) if any(a.writes and a.place.space is Space.VARIABLE for a in c.accesses))
    return next(writers, len(calls))


def pieces(call: Call, block: Block) -> list[Block]:
    """``block`` in parts of about PIECE or less, to be computed one after another."""
    i0, i1, j0, j1 = block
    share = (i1 - i0) * (j1 - j0) / max(call.rows * call.columns, 1)
    wanted = min(int(call.seconds * share / PIECE) + 1, _MOST)
    rows, columns = [i0, i1], [j0, j1]
    if call.packed_block is not None:
        few_rows, panel = call.packed_block
        columns = _edges(j0, j1, wanted, math.lcm(panel, call.grain))
        rows = _edges(i0, i1, -(-wanted // (len(columns) - 1)), few_rows)
    else:
        if call.split in ("rows", "both"):
            rows = _edges(i0, i1, wanted, 1)
        if call.split in ("columns", "both"):
            columns = _edges(j0, j1, -(-wanted // (len(rows) - 1)), call.grain)
    return [(*r, *c) for r in pairwise(rows) for c in pairwise(columns)]


def _edges(begin: int, end: int, parts: int, grain: int) -> list[int]:
    """Where [begin, end) is cut into ``parts`` of nearly equal size, or fewer; all but the last are multiples of
    ``grain``."""
    grains = -(-(end - begin) // grain)
    parts = max(min(parts, grains), 1)
    return [min(end, begin + grains * p // parts * grain) for p in range(parts + 1)]
