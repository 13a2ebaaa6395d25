"""Activate traces: while a trace is active on a thread, ops on tensors append nodes instead of computing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.tensor.active import ACTIVE as ACTIVE
from runnel.tensor.apart import Guarded, undisturbed
from runnel.tensor.trace import Trace as Trace


def method(owner: Any, name: str) -> Callable[..., Any]:
    """Return a method of ``owner``, whose class may be the user's; observed, if the trace is observed."""
    trace = ACTIVE.trace
    if trace is None or trace.observer is None:
        bound: Callable[..., Any] = getattr(owner, name)
        return bound
    return trace.observer(owner, name)


class activate:
    """A block, ``with activate(trace):``, in which ops on this thread are recorded in ``trace``. Code that interrupts
    the block, such as signal handlers, is not recorded.

    Inside another block, None ends recording for this one. Levels belong to the trace in which they began. ``over`` is
    called when recording has ended.
    """

    __slots__ = ("_before", "_guarded", "_level", "_over", "_trace")

    def __init__(self, trace: Trace | None, over: Callable[[], None] | None = None) -> None:
        self._trace = trace
        self._over = over
        self._before, self._level = ACTIVE.trace, ACTIVE.level
        self._guarded = Guarded() if self._before is None else None

    @undisturbed
    def __enter__(self) -> Trace | None:
        if self._guarded is not None:
            self._guarded.begin()
        ACTIVE.trace, ACTIVE.level = self._trace, None
        return self._trace

    @undisturbed
    def __exit__(self, *error: object) -> None:
        ACTIVE.trace, ACTIVE.level = self._before, self._level
        try:
            if self._over is not None:
                self._over()
        finally:
            if self._guarded is not None:
                self._guarded.end()
