"""Counters of ``itertools`` made outside: what they give next is read like a number, and advancing them is a change."""

from __future__ import annotations

import re
from typing import Any, Final

from runnel.compile.observe import symbols
from runnel.compile.observe.changes import CallingMethod
from runnel.compile.observe.classes import MISSING
from runnel.compile.observe.recorder import Recorder


def next_of_count(rec: Recorder, counter: Any) -> Any:
    """``next()`` of an ``itertools.count`` from outside, which later calls advance; MISSING where it is another's."""
    at, begun = rec.source_of(counter), ("count", id(counter))
    if at is None or _at(counter) is MISSING:
        return MISSING
    step = _step(counter)
    if begun not in rec.memo:
        rec.log.check(at, "{0}({v}) != {1}", f"step of {at}", (_step, step))
        first = _at(counter)
        rec.memo[begun] = rec.reach_symbolic(first, rec.log.source(at, "{0}({p})", f"next({at})", first, (_at,)))
    number = rec.memo[begun]
    rec.memo[begun] = symbols.grown(rec, number, step)
    rec.effects.record(_ADVANCED, counter, None, ([], {}), f"next({at})")
    return number


def _at(counter: Any) -> Any:
    """What a counter of whole numbers gives next, which its text tells; MISSING for others."""
    match = _WHOLE.fullmatch(repr(counter))
    return int(match[1]) if match else MISSING


def _step(counter: Any) -> int:
    match = _WHOLE.fullmatch(repr(counter))
    return int(match[2] or 1) if match else 0


_WHOLE: Final = re.compile(r"count\((-?\d+)(?:, (-?\d+))?\)")
_ADVANCED: Final = CallingMethod(next)
