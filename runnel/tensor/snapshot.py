"""Reading several Variables as of one point in time, while other threads change them.

Everything is read, and afterwards it is seen whether it is all still there (Y. Afek et al., "Atomic snapshots of shared
memory", 1993: two equal collects). If so, it was there together when the last reading ended; if not, it is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import TypeVar

from runnel.core.dispatch import TensorLike
from runnel.core.errors import RunnelError
from runnel.tensor.concurrency import MARKS, TURN
from runnel.tensor.tensor import Tensor
from runnel.tensor.trace import ACTIVE, Readings
from runnel.tensor.variable import Variable


class FirstReadings:
    """The values that Variables had when they were first read or assigned, outside a trace."""

    def __init__(self) -> None:
        self.values: dict[Variable, Tensor] = {}

    def note(self, variable: TensorLike, value: TensorLike) -> None:
        if isinstance(variable, Variable) and isinstance(value, Tensor):
            self.values.setdefault(variable, value)

    def tell(self, other: Readings | None) -> None:
        """Let another one know what is known here."""
        if other is not None:
            for variable, value in self.values.items():
                other.note(variable, value)


T = TypeVar("T")

_ATTEMPTS = 100
_PATIENCE = 2  # attempts after which the others are asked to wait


def snapshot(read: Callable[[], T]) -> T:
    """Return ``read()``, with all the Variables it reads as of one point in time.

    Other threads may run compiled steps meanwhile. ``read`` sees all changes of a step, or of a ``load_state_dict``, or
    none. It may be called several times, so it should only read::

        state = rn.snapshot(lambda: {"model": model.state_dict(), "optimizer": optimizer.state_dict()})

    Raises RunnelError if the Variables keep changing, for example because ``read`` itself changes one.
    """
    if ACTIVE.trace is not None:
        return read()
    for attempt in range(_ATTEMPTS):
        with TURN.reserved() if attempt >= _PATIENCE else nullcontext():
            mark = MARKS.take()
            readings = FirstReadings()
            outer, ACTIVE.readings = ACTIVE.readings, readings
            try:
                result = read()
            finally:
                ACTIVE.readings = outer
            if all(variable.still_is(value) for variable, value in readings.values.items()) and MARKS.holds(mark):
                readings.tell(outer)
                return result
    raise RunnelError(
        f"[snapshot] Variables changed during each of {_ATTEMPTS} attempts to read them; read() must not change one."
    )


def values(variables: Iterable[Variable]) -> list[Tensor]:
    """Return the values of Variables, without tapes, as of one point in time."""
    listed = list(variables)
    return snapshot(lambda: [variable.value for variable in listed])
