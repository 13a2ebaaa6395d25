"""What is going on, on each thread: the trace that ops are recorded in, the innermost level, and who notes which
Variables are read."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from runnel.tensor.levels import Level
    from runnel.tensor.tensor import Tensor
    from runnel.tensor.tracing import Trace
    from runnel.tensor.variable import Variable


class _Active(threading.local):
    """``trace`` is the one that ops are recorded in. ``level`` is that of the innermost transform that has one, in this
    trace. ``seen``, while somebody wants to know: the values that Variables had when they were first read or assigned
    outside of a trace. ``interrupted``: all three, while garbage is collected."""

    def __init__(self) -> None:
        self.trace: Trace | None = None
        self.level: Level | None = None
        self.seen: dict[Variable, Tensor] | None = None
        self.interrupted: tuple[Any, Any, Any] | None = None


ACTIVE: Final = _Active()
