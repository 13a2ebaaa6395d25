"""LLVM text of the scalar operations, by their formulas. ``codegen`` calls :func:`emit` for every Apply of a kernel."""

from __future__ import annotations

from typing import cast

from runnel.backends.cpu.codegen.emitted import Emitted
from runnel.backends.cpu.codegen.text import Emitter
from runnel.core.dtypes import DType
from runnel.loops.formulas import table
from runnel.loops.scalar import ScalarOp


def emit(em: Emitter, op: ScalarOp, args: list[str], arg_dtypes: list[DType], dtype: DType, lanes: int) -> str:
    """LLVM for ``op`` on operands of ``lanes`` lanes; returns the operand that holds the result, of dtype ``dtype``."""
    values = [Emitted(em, name, d, lanes) for name, d in zip(args, arg_dtypes, strict=True)]
    return cast(Emitted, table.result(op, values, dtype)).name
