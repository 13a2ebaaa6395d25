"""Words of table ``jvp``: tangents for whole families of ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from runnel.core.dispatch import apply
from runnel.core.records import record
from runnel.core.tables import Op

Tangents = tuple[Any, ...]  # one for each operand; None where it is zero
Rule = Callable[..., list[Any]]


def linear(op: Op, place: int = 0) -> Rule:
    """Of an op that is linear in the operand at ``place``, whose others have no tangent: the op of the tangent."""

    def rule(tangents: Tangents, out: Any, *inputs: Any, **attrs: Any) -> list[Any]:
        if tangents[place] is None:
            return []
        return [apply(op, *inputs[:place], tangents[place], *inputs[place + 1 :], **attrs)]

    return rule


def bilinear(op: Op) -> Rule:
    """Of an op that is linear in each of two operands: op(ẋ, y) + op(x, ẏ)."""

    def rule(tangents: Tangents, out: Any, x: Any, y: Any, **attrs: Any) -> list[Any]:
        dx, dy = tangents
        terms = [] if dx is None else [apply(op, dx, y, **attrs)]
        return terms if dy is None else [*terms, apply(op, x, dy, **attrs)]

    return rule


def no_tangent(tangents: Tangents, out: Any, *inputs: Any, **attrs: Any) -> list[Any]:
    """Of an op whose result does not change with its operands, or is no float."""
    return []


@record(slots=False)
class Together:
    """Of an op of several results whose tangents are computed along with them: ``rule(tangents, *inputs, **attrs)``
    gives the results, and a tangent or None for each."""

    rule: Callable[..., tuple[Sequence[Any], Sequence[Any]]]


class Transposed:
    """Of an op whose vjp is the best there is: the transpose of that, which is linear (``tensor/forward.py``)."""

    def __repr__(self) -> str:
        return "TRANSPOSED"


TRANSPOSED: Final = Transposed()
