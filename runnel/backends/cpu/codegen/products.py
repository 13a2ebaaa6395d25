"""Calls of the generic contraction from generated kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from runnel.backends.cpu.codegen import contract, dot_contract
from runnel.backends.cpu.codegen.text import Emitter
from runnel.core.dtypes import DType, bfloat16
from runnel.core.errors import VerifierError
from runnel.loops import uses
from runnel.loops.ir import Contract, Kernel, Product

SYMBOLS: Final = {**contract.SYMBOLS, bfloat16.name: dot_contract.SYMBOL}


def symbol(dtype: DType) -> str:
    """Return the name of the function that computes contractions of matrices of ``dtype``."""
    if dtype.name not in SYMBOLS:
        raise VerifierError(f"A contraction of {dtype.name}; there are {', '.join(SYMBOLS)}.")
    return SYMBOLS[dtype.name]


def symbols(kernel: Kernel) -> frozenset[str]:
    """Return the symbols that a kernel's code calls."""
    called = [s for s in uses.statements(kernel.body) if isinstance(s, Contract | Product)]
    return frozenset(symbol(s.operands if isinstance(s, Contract) else s.dtype) for s in called)


def call(
    em: Emitter,
    dtype: DType,
    matrices: Sequence[str],
    numbers: Sequence[str],
    block: Sequence[str],
    epilogue: str = "null",
    *,
    tile: bool = False,
    accumulate: bool = False,
    tables: Sequence[str] = ("null", "null"),
    panel: str = "0",
) -> None:
    """Call it for the ``block`` i0, i1, j0, j1 of the ``matrices`` A, B and C with ``numbers`` a_row, a_k, b_k, b_col,
    c_row and k. ``tile``: C is memory for one block; ``accumulate``: chains begin at C; ``tables``: offset tables of
    the rows and of k of an indirect A; ``panel``: the stride between panels of a packed B."""
    name = symbol(dtype)
    em.declare(name, "void", *["ptr"] * 3, *["i64"] * 10, *["ptr"] * 3, *["i64"] * 2, *["ptr"] * 2, "i64")
    pointers = [f"ptr {m}" for m in matrices]
    operands = ", ".join([*pointers, *[f"i64 {x}" for x in (*numbers, *block)]])
    more = f"i64 {int(tile)}, i64 {int(accumulate)}, ptr {tables[0]}, ptr {tables[1]}, i64 {panel}"
    em.effect(f"call void @{name}({operands}, ptr {epilogue}, ptr %thread, ptr %args, {more})")
