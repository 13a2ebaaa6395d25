"""What is wrong with the program of a seed, as small as it can be shown; and how much of it ran as programs."""

from __future__ import annotations

import collections
import contextlib
import signal
from collections.abc import Iterator
from typing import Final

from runnel.core import switches
from tests.fuzz.language import drawn
from tests.fuzz.language.shrinking import smallest
from tests.fuzz.language.worlds import compare

COUNTS: Final[collections.Counter[str]] = collections.Counter()  # of what was run


LONGEST: Final = 60  # seconds of a program; some that are drawn never end


class Endless(BaseException):
    """Not an Exception, which programs catch."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Ends the block when it takes too long, with Endless."""

    def end(*_: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fault(seed: int, shrink: bool = True) -> str | None:
    """The first difference between the worlds, if there is one, and the program."""
    program = drawn(seed)
    with switches.override(num_threads=1):
        try:
            with limited():
                actual = compare(program)
        except Endless:
            COUNTS["endless"] += 1
            return None
        COUNTS.update(calls=actual.calls, traces=actual.traces, eager=bool(actual.reasons))
        if actual.fault is None:
            return None
        if shrink:
            program = smallest(program, lambda one: compare(one).fault is not None)
        return f"{actual.fault}\n{program}\n{compare(program).fault}"
