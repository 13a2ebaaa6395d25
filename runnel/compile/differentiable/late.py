"""Gradients of a compiled function that can be differentiated again: their tape is built on demand.

A backward program gives gradients without a tape. Each gets a record that stands for it; the first walk of the tape
that meets one has the call's tape made anew, and the gradient computed by it. From then on the gradient's tensor is
another handle of that one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

from runnel.tensor import tape
from runnel.tensor.handle import Record, passed_on, version
from runnel.tensor.tensor import Tensor


class LateGradients:
    """The cotangents of one part, which ``compute`` gives with their tape; it is called at most once."""

    def __init__(self, compute: Callable[[], Sequence[Tensor | None]]) -> None:
        self._compute = compute
        self._gradients: Sequence[Tensor | None] | None = None
        self._twins: list[tuple[int, weakref.ref[Tensor]]] = []

    def twin(self, g: Tensor, place: int) -> Tensor:
        """The cotangent at ``place``, for whoever may differentiate it."""
        twin = g._twin()
        twin.requires_grad, twin._record = True, LateRecord(self, place)
        self._twins.append((place, weakref.ref(twin)))
        return twin

    def at(self, place: int) -> Tensor | None:
        """The cotangent with its tape, whose handles the twins are when this is done."""
        if self._gradients is None:
            gradients = self._compute()
            for number, reference in self._twins:
                twin, g = reference(), gradients[number]
                if twin is not None and g is not None and type(twin._record) is LateRecord:
                    _become_handle(twin, g)
            self._gradients = gradients
            tape.REPLACED.count += 1
        return self._gradients[place]


class LateRecord(Record[Tensor]):
    """The record of a gradient whose tape does not exist yet."""

    __slots__ = ("_late", "_place")

    def __init__(self, late: LateGradients, place: int) -> None:
        super().__init__(None, (), {}, passed_on)
        self._late = late
        self._place = place

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        g = None if self.freed else self._late.at(self._place)
        return () if g is None else (version(g),)


def _become_handle(twin: Tensor, g: Tensor) -> None:
    """From now on ``twin`` is another handle of the node of ``g``, for records that have read it, too."""
    twin._first = twin._version = version(g)
    twin.requires_grad, twin._record = g.requires_grad, Record(None, (g,), {}, passed_on)
    twin._is_rebound = True
