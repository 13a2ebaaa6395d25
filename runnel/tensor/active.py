"""Thread-local state: the active trace, the innermost level, and the log of Variable reads."""

from __future__ import annotations

import threading
from typing import Any, Final, Protocol, Self

from runnel.core.dispatch import TensorLike
from runnel.tensor.trace import Trace


class Readings(Protocol):
    """Who wants to know which Variables are read or assigned outside of a trace."""

    def note(self, variable: TensorLike, value: TensorLike) -> None:
        """``variable`` was read, or is about to be assigned another value than ``value``."""
        ...


class OpenLevel:
    """A running transform. ``with level:`` makes it the innermost one; it is open in the block."""

    name = "level"

    def __init__(self) -> None:
        self.trace = ACTIVE.trace  # levels belong to the trace in which they begin
        self.is_open = False
        self._outer: list[OpenLevel | None] = []

    def __enter__(self) -> Self:
        self._outer.append(ACTIVE.level)
        ACTIVE.level, self.is_open = self, True
        return self

    def __exit__(self, *error: object) -> None:
        ACTIVE.level = self._outer.pop()
        self.is_open = bool(self._outer)

    @property
    def outer(self) -> OpenLevel | None:
        """The level around this one, while it is open."""
        return self._outer[-1]


class _Active(threading.local):
    """``trace`` is the one that ops are recorded in. ``level`` is that of the innermost transform that has one, in this
    trace. ``seen``, while somebody wants to know: the one who is told of the Variables that are read. ``interrupted``:
    all three, while garbage is collected. ``is_by_op``: compositions run op by op, so that running a function again
    records the same."""

    def __init__(self) -> None:
        self.trace: Trace | None = None
        self.level: OpenLevel | None = None
        self.readings: Readings | None = None
        self.interrupted: tuple[Any, Any, Any] | None = None
        self.is_by_op = False


ACTIVE: Final = _Active()
