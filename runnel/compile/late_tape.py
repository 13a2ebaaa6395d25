"""Differentiating gradients of a compiled function: the tape is recorded when somebody asks for it.

A backward program gives gradients without a tape. If they are differentiated again, the function is run again eagerly,
on the same arguments, with the tape, and its gradients are computed from that. That is right as long as nothing it
reads has changed, which is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runnel.core.errors import GradientError
from runnel.tensor import tape
from runnel.tensor.tensor import Tensor


class Rerun:
    """Gradients of one call, to be computed with the tape at most once."""

    def __init__(self, name: str, call: Callable[[], Sequence[Tensor | None]], unchanged: Callable[[], bool]) -> None:
        self.name = name
        self._call = call
        self._unchanged = unchanged
        self._found: Sequence[Tensor | None] | None = None

    def gradient(self, place: int) -> Tensor:
        """The gradient at ``place``, with its tape."""
        if self._found is None:
            if not self._unchanged():
                raise GradientError(
                    f"[backward] something that '{self.name}' reads has changed since this result was computed; "
                    "differentiate before changing Variables, or inside of the compiled function."
                )
            self._found = self._call()
        found = self._found[place]
        if found is None:
            raise GradientError(f"[backward] '{self.name}' did other things when it was run again.")
        return found


class LateRecord(tape.Record):
    """The record of a gradient whose tape does not exist yet. Its one input is the same value, with its tape."""

    __slots__ = ("_place", "_rerun")

    def __init__(self, rerun: Rerun, place: int) -> None:
        super().__init__(None, (), {}, lambda g, out: (g,))
        self._rerun = rerun
        self._place = place

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return () if self.freed else (tape.version(self._rerun.gradient(self._place)),)
