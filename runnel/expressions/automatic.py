"""The schedule of an expression that has none of its own."""

from __future__ import annotations

from typing import Final

from runnel.expressions.schedule import Schedule
from runnel.expressions.solving import Solved

_BLOCK: Final = 64  # elements of a block of the only axis


def automatic(solved: Solved) -> Schedule:
    """Vectors along the last axis of the result, and threads over the others."""
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
    schedule.vectorise(last)
    return schedule
