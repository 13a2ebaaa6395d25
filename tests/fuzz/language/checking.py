"""What is wrong with the program of a seed, as small as it can be shown; and how much of it ran as programs."""

from __future__ import annotations

import collections
from typing import Final

from runnel.core import switches
from tests.fuzz.language import drawn
from tests.fuzz.language.shrinking import smallest
from tests.fuzz.language.worlds import compare

COUNTS: Final[collections.Counter[str]] = collections.Counter()  # of what was run


def fault(seed: int, shrink: bool = True) -> str | None:
    """The first difference between the worlds, if there is one, and the program."""
    program = drawn(seed)
    with switches.override(num_threads=1):
        actual = compare(program)
        COUNTS.update(calls=actual.calls, traces=actual.traces, eager=bool(actual.reasons))
        if actual.fault is None:
            return None
        if shrink:
            program = smallest(program, lambda one: compare(one).fault is not None)
        return f"{actual.fault}\n{program}\n{compare(program).fault}"
