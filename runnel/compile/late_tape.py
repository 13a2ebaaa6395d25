"""Differentiating what a compiled function returned: the tape is recorded when somebody asks for it.

A program stores nothing for a backward pass outside of it. If ``backward()`` reaches a result of a compiled function,
the function is run again eagerly, on the same arguments, with the tape. That is right as long as nothing it reads has
changed, which is checked. (A ``backward()`` inside the compiled function is part of the program and needs none of it.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.core.errors import GradientError
from runnel.core.pytree import flatten
from runnel.tensor import tape
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import CLOCK


class Rerun:
    """One call, to be repeated with the tape at most once."""

    def __init__(self, name: str, call: Callable[[], Any], unchanged: Callable[[], bool]) -> None:
        self.name = name
        self._call = call
        self._unchanged = unchanged
        self._writes = CLOCK.writes
        self._leaves: list[Any] | None = None

    def leaf(self, place: int) -> Tensor:
        """The returned leaf at ``place``, with its tape."""
        if self._leaves is None:
            if self._writes != CLOCK.writes or not self._unchanged():
                raise GradientError(
                    f"[backward] something that '{self.name}' reads has changed since this result was computed; call "
                    "backward() before changing Variables, or inside of the compiled function."
                )
            self._leaves = flatten(self._call())[0]
        found: Tensor = self._leaves[place].read()
        return found


class LateRecord(tape.Record):
    """The record of a result whose tape does not exist yet. Its one input is the same value, computed with the tape."""

    __slots__ = ("_place", "_rerun")

    def __init__(self, rerun: Rerun, place: int) -> None:
        super().__init__(None, (), {}, lambda g, out: (g,))
        self._rerun = rerun
        self._place = place

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return () if self.freed else (tape.version(self._rerun.leaf(self._place)),)
