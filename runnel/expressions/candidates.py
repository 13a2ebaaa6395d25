"""Propose schedules for an expression: a default one, and candidates for the search."""

from __future__ import annotations

import random
from typing import Final

from runnel.core.records import record, replace
from runnel.expressions.schedule import Schedule
from runnel.expressions.solving import Solved
from runnel.loops.ir import LANES

_VECTORS: Final = (1, 2, 3, 4, 6)  # vectors side by side in a tile
_ROWS: Final = (1, 2, 3, 4, 6, 8, 12)  # rows of a tile
_BLOCKS: Final = (1, 2, 4, 8, 16, 32)  # tiles of a block
_STEPS: Final = (1, 1, 2, 4)  # terms at a time
_TILE: Final = 24  # most vectors of a tile


@record
class Candidate:
    """Choices for a schedule: ``lanes`` is the axis of vectors, ``across`` the other axis of a tile.

    With ``by_columns``, blocks of columns are outside blocks of rows. ``caches`` are operands to copy, with the number
    of loops around the copy.
    """

    lanes: str
    across: str
    vectors: int
    rows: int
    block: int
    steps: int
    by_columns: bool
    caches: tuple[tuple[str, int], ...]

    def schedule(self, solved: Solved) -> Schedule:
        """Return the schedule of these choices; ExpressionError if they do not fit."""
        schedule = Schedule(solved)
        if not self.lanes:
            return schedule
        outer = [name for name, _ in solved.axes if name not in (self.lanes, self.across)]
        columns, inner = schedule.split(self.lanes, LANES * self.vectors)
        beside, lane = schedule.split(inner, LANES)
        rows: list[str] = []
        tile = [beside, lane]
        if self.across:
            row, within = schedule.split(self.across, self.rows)
            rows = list(schedule.split(row, self.block))
            tile.insert(0, within)
        blocks = [columns, *rows] if self.by_columns else [*rows[:1], columns, *rows[1:]]
        outside = [*outer, *blocks]
        reduced = [x.name for x in schedule.loops if x.is_reduced]
        if reduced and self.steps > 1:
            reduced[-1:] = schedule.split(reduced[-1], self.steps)
        schedule.reorder(*outside, *reduced, *tile)
        for name in tile[:-1]:
            schedule.unroll(name)
        schedule.vectorize(lane)
        if reduced and self.steps > 1:
            schedule.unroll(reduced[-1])
        schedule.parallel(outside[0])
        for operand, depth in self.caches:
            schedule.cache(operand)
            schedule.compute_at(operand, outside[min(depth, len(outside) - 1)])
        return schedule


def drawn(solved: Solved, rng: random.Random) -> Candidate:
    """Draw a random candidate."""
    axes = [name for name, extent in solved.axes if extent > 1]
    if not axes:
        return Candidate("", "", 1, 1, 1, 1, by_columns=False, caches=())
    lanes = axes[-1] if rng.random() < 0.8 else rng.choice(axes)
    others = [name for name in axes if name != lanes]
    vectors = rng.choice(_VECTORS)
    return Candidate(
        lanes,
        rng.choice(others) if others else "",
        vectors,
        rng.choice([n for n in _ROWS if n * vectors <= _TILE]),
        rng.choice(_BLOCKS),
        rng.choice(_STEPS),
        by_columns=rng.random() < 0.5,
        caches=_caches(solved, rng),
    )


def mutated(candidate: Candidate, solved: Solved, rng: random.Random) -> Candidate:
    """Return ``candidate`` with one or two choices redrawn."""
    other = drawn(solved, rng)
    names = ["vectors", "rows", "block", "steps", "by_columns", "caches"]
    changes = {name: getattr(other, name) for name in rng.sample(names, rng.choice((1, 1, 2)))}
    return replace(candidate, **changes)


def _caches(solved: Solved, rng: random.Random) -> tuple[tuple[str, int], ...]:
    return tuple((name, rng.randrange(4)) for name in solved.expression.names if rng.random() < 0.4)


_BLOCK: Final = 64  # elements of a block of the only axis


def automatic(solved: Solved) -> Schedule:
    """Return a schedule with vectors along the last axis of the result, and threads over the others."""
    schedule = Schedule(solved)
    axes = [name for name, extent in solved.axes if extent > 1]
    if not axes:
        return schedule
    *outer, last = axes
    if not outer:
        first, last = schedule.split(last, _BLOCK)
        outer = [first]
    shared = outer[0]
    schedule.reorder(*outer, last, *(name for name, extent in solved.axes if extent <= 1))
    for name in outer[1:]:
        shared = schedule.fuse(shared, name)
    schedule.parallel(shared)
    schedule.vectorize(last)
    return schedule
