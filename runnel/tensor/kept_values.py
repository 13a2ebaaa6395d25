"""Holds on values of Variables that a backward program will read, so that writers preserve them.

Programs update Variables in place. Reading one has the next program that writes it take other memory, which costs both
of them time; in a training step nothing is written between a forward and its backward. So a forward registers a *hold*,
and who is about to write a Variable in place first looks whether there are any, and then reads on their behalf.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Final

from runnel.backends.host.locks import VERSION, StateLock
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Pin, Variable


class Holds:
    """All holds; and how many runs that write Variables are under way, or ended by an exception."""

    __slots__ = ("now", "writing")

    def __init__(self) -> None:
        self.now: set[weakref.ref[Hold]] = set()
        self.writing = 0


HOLDS: Final = Holds()


class Hold:
    """The values that some Variables have when a program runs, as long as this lives.

    ``pins`` are the memory of all the program's Variables, known after the run; ``read`` are those it is for.
    ``handles`` are readings made for this, by number.
    """

    __slots__ = ("__weakref__", "handles", "pins", "read")

    def __init__(self, read: ReadVariables, locks: Sequence[StateLock]) -> None:
        self.read = read
        self.pins: list[Pin] | None = None
        self.handles: dict[int, Tensor] = {}
        HOLDS.now.add(weakref.ref(self, HOLDS.now.discard))
        if HOLDS.writing:  # that run may have looked for holds already: make it bind again
            for lock in locks:
                lock.words[VERSION] += 1

    def protect(self, written: frozenset[int]) -> None:
        """Read the Variables among ``written`` (ids) that are still in the same memory."""
        if self.read.ids.isdisjoint(written):
            return
        for number, reference in self.read.variables:
            variable = reference()
            if variable is None or id(variable) not in written:
                continue
            if self.pins is None or variable.is_stored_in(self.pins[number]):
                self.handles[number] = variable.read()


class ReadVariables:
    """Which Variables of a program its holds are for."""

    __slots__ = ("ids", "variables")

    def __init__(self, variables: dict[int, Variable]) -> None:
        self.variables = [(number, weakref.ref(v)) for number, v in variables.items()]
        self.ids = frozenset(map(id, variables.values()))


def protect(written: frozenset[int]) -> None:
    """To be called before a run that writes the Variables with these ids, after counting it in ``HOLDS.writing``."""
    for reference in list(HOLDS.now):
        hold = reference()
        if hold is not None:
            hold.protect(written)
