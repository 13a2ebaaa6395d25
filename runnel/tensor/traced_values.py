"""The errors for reading the value of a traced tensor, with what to write instead."""

from __future__ import annotations

from typing import Final, TypeVar

from runnel.core import tracebacks
from runnel.core.avals import ShapedArray
from runnel.core.errors import GradientError, TracedValueError
from runnel.tensor.trace import ACTIVE

ErrorT = TypeVar("ErrorT", bound=Exception)

_INSTEAD: Final = {  # by what asked
    "bool": "Use runnel.where(condition, x, y) or runnel.cond instead of `if`, runnel.while_loop instead of `while`.",
    "index": "Use runnel.take(x, index), or pass the number as a plain Python argument.",
    "format": "Print the tensor as it is (its shape and dtype are known), or return it and print it outside.",
    "address": "Memory is assigned when the program is made; look at tensors outside.",
    "numpy()": "Compute with Runnel's functions, return the tensor and look at it outside, or pass the number as a "
    "plain Python argument.",
}

_MARKS: Final = ("(traced, ", ", traced)")  # in texts of tensors and Variables that have no value


def shows_traced(text: str) -> bool:
    """Return whether a text shows a traced tensor or Variable."""
    return any(mark in text for mark in _MARKS)


def left_over(who: str, aval: ShapedArray) -> TracedValueError:
    """Return the error for a traced tensor that was kept after its trace ended."""
    return TracedValueError(
        f"{who} is a tensor ({aval}) that was left over from tracing another function; return tensors from functions "
        "instead of storing them elsewhere."
    )


def traced_value(aval: ShapedArray, what: str) -> TracedValueError:
    """Return the error for reading a traced value by ``what``."""
    return counted(
        TracedValueError(
            f"[{what}] the value of a traced tensor ({aval}) was asked for at {tracebacks.user_line()}; it exists only "
            f"when the compiled program runs. {_INSTEAD.get(what, _INSTEAD['numpy()'])}"
        )
    )


def counted(error: ErrorT) -> ErrorT:
    """Register and return an error that eager code would not raise. It ends the trace even if the traced function
    catches it."""
    trace = ACTIVE.trace
    if trace is not None and trace.deferred_error is None:
        trace.deferred_error = error
    return error


class ConsumedGradient:
    """Marks ``Variable.grad`` after a compiled step whose optimizer used the gradient up, so that it was never
    stored."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "CONSUMED"


CONSUMED: Final = ConsumedGradient()


def consumed(described: str) -> GradientError:
    """Somebody wants to know the gradient of this Variable."""
    return GradientError(
        f"[grad] the gradient of {described} was used up by the optimizer inside a compiled function and never stored; "
        "call zero_grad() before backward(), return it from the function, or compile with keep_grads=True."
    )
