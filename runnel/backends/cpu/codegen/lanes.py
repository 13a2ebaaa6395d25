"""Values in registers: scalars, and vectors with a lane for each position of a vec loop.

A bfloat16 is represented by its bits between instructions: x86 processors without bfloat16 arithmetic have no registers
for vectors of it, and LLVM would scalarise such a vector at every branch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runnel.backends.cpu.codegen import scalars
from runnel.backends.cpu.codegen.text import Emitter, element, literal, vector
from runnel.core.dtypes import DType, bfloat16, uint16
from runnel.core.errors import VerifierError
from runnel.core.records import record
from runnel.core.rounding import rounded
from runnel.loops.scalar import ScalarOp


@record
class Value:
    """An operand without its type, of ``lanes`` lanes (1: a scalar)."""

    operand: str
    lanes: int
    is_literal: bool = False


def register_dtype(dtype: DType) -> DType:
    """The dtype that represents ``dtype`` in registers: for bfloat16 that of its bits."""
    return uint16 if dtype is bfloat16 else dtype


def constant(value: bool | int | float, dtype: DType) -> Value:
    if dtype is bfloat16:
        value = int(rounded(value, bfloat16).view(np.uint16))
    return Value(literal(value, register_dtype(dtype)), 1, is_literal=True)


def widen(em: Emitter, value: Value, dtype: DType, lanes: int) -> str:
    """The value as an operand of ``lanes`` lanes."""
    if value.lanes == lanes:
        return value.operand
    if value.lanes != 1:
        raise VerifierError(f"A value of {value.lanes} lanes is used where {lanes} lanes are.")
    if value.is_literal:
        return f"splat ({element(register_dtype(dtype))} {value.operand})"
    return em.broadcast(value.operand, register_dtype(dtype), lanes)


def apply(em: Emitter, op: ScalarOp, operands: Sequence[str], dtypes: Sequence[DType], dtype: DType, lanes: int) -> str:
    """A scalar operation in every lane."""
    own = [
        _bitcast(em, x, uint16, bfloat16, lanes) if d is bfloat16 else x for x, d in zip(operands, dtypes, strict=True)
    ]
    result: str = scalars.emit(em, op, own, list(dtypes), dtype, lanes)
    return _bitcast(em, result, bfloat16, uint16, lanes) if dtype is bfloat16 else result


def _bitcast(em: Emitter, operand: str, source: DType, destination: DType, lanes: int) -> str:
    return em.value(f"bitcast {vector(source, lanes)} {operand} to {vector(destination, lanes)}")
