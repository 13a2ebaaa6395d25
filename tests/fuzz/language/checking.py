"""Find the fault of a seed, shrink its program, and count how much ran as programs."""

from __future__ import annotations

import collections
import re
from typing import Final

from runnel.core import switches
from tests.fuzz.language import drawn
from tests.fuzz.language.shrinking import smallest
from tests.fuzz.language.worlds import compare

COUNTS: Final[collections.Counter[str]] = collections.Counter()  # of what was run
REASONS: Final[dict[str, list[int]]] = {}  # why programs ran eagerly, were refused or did not run: their seeds
_PLACE: Final = re.compile(r"\S*random_program\S*(, line \d+)?|\bline \d+\b|0x[0-9a-f]+|\d+")


def fault(seed: int, shrink: bool = True) -> str | None:
    """The first difference between the worlds, if there is one, and the program."""
    program = drawn(seed)
    with switches.override(num_threads=1):
        actual = compare(program)
        COUNTS.update(calls=actual.calls, traces=actual.traces, eager=bool(actual.reasons))
        for reason in {_PLACE.sub("#", reason) for reason in actual.reasons}:
            REASONS.setdefault(reason, []).append(seed)
        if actual.fault is None:
            return None
        if shrink:
            program = smallest(program, lambda one: compare(one).fault is not None)
        return f"{actual.fault}\n{program}\n{compare(program).fault}"
