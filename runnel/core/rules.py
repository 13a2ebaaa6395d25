"""Which ops take complex operands: the rows of table ``complex``, and how an op without machine code is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from runnel.core.avals import ShapedArray
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType
from runnel.core.records import record
from runnel.core.tables import Op, complex_rules


@record(slots=False)
class ByNumPy:
    """An op that NumPy computes on complex operands, in programs by a host call.

    Args:
        vjp: the rule of table ``vjp`` for complex operands. By default the rule of the op: as it is if the op is linear
            with real coefficients, else conjugated.
        numpy: the rule of table ``reference`` for them, by default the rule of the op.
        is_real: whether a result is real if real operands give a float.
        is_linear: whether the op is linear with real coefficients.
    """

    vjp: Callable[..., Any] | None = None
    numpy: Callable[..., Any] | None = None
    is_real: bool = False
    is_linear: bool = False


class Native:
    """A rule for an op whose other rules also accept complex operands."""

    def __repr__(self) -> str:
        return "NATIVE"


HOLOMORPHIC: Final = ByNumPy()
LINEAR: Final = ByNumPy(is_linear=True)
NATIVE: Final = Native()


class ComplexOperands(Exception):
    """An op was to be compiled that NumPy carries out, since complex numbers are among its operands."""


def is_by_numpy(op: Op, avals: Iterable[ShapedArray], attrs: Mapping[str, Any]) -> bool:
    """Return whether NumPy computes ``op``, because it takes or returns complex numbers."""
    if not any(x.dtype.is_complex for x in avals) and not any(
        isinstance(value, DType) and value.is_complex for value in attrs.values()
    ):
        return False
    return not op.regions and complex_rules.get(op) is not NATIVE


Tangents = tuple[Any, ...]  # one for each operand; None where it is zero
Rule = Callable[..., list[Any]]


def linear(op: Op, place: int = 0) -> Rule:
    """Return the jvp rule of an op that is linear in the operand at ``place`` and whose other operands have no
    tangent."""

    def rule(tangents: Tangents, out: Any, *inputs: Any, **attrs: Any) -> list[Any]:
        if tangents[place] is None:
            return []
        return [apply(op, *inputs[:place], tangents[place], *inputs[place + 1 :], **attrs)]

    return rule


def bilinear(op: Op) -> Rule:
    """Return the tangent of an op that is linear in each of two operands: op(ẋ, y) + op(x, ẏ)."""

    def rule(tangents: Tangents, out: Any, x: Any, y: Any, **attrs: Any) -> list[Any]:
        dx, dy = tangents
        terms = [] if dx is None else [apply(op, dx, y, **attrs)]
        return terms if dy is None else [*terms, apply(op, x, dy, **attrs)]

    return rule


def no_tangent(tangents: Tangents, out: Any, *inputs: Any, **attrs: Any) -> list[Any]:
    """Return no terms: the jvp rule of an op whose result is constant in its operands or not a float."""
    return []


@record(slots=False)
class Together:
    """A rule for an op with several results that computes results and tangents together.

    ``rule(tangents, *inputs, **attrs)`` returns the results, and a tangent or None for each."""

    rule: Callable[..., tuple[Sequence[Any], Sequence[Any]]]


class Transposed:
    """Of an op whose vjp is the best there is: the transpose of that, which is linear (``tensor/forward.py``)."""

    def __repr__(self) -> str:
        return "TRANSPOSED"


TRANSPOSED: Final = Transposed()
