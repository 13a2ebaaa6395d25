"""Calls of the generic contraction from generated kernels."""

from __future__ import annotations

from collections.abc import Sequence

from runnel.codegen import contract
from runnel.codegen.text import Emitter
from runnel.core.dtypes import DType
from runnel.core.errors import VerifierError


def symbol(dtype: DType) -> str:
    """The name of the function that computes a contraction in ``dtype``."""
    if dtype.name not in contract.SYMBOLS:
        raise VerifierError(f"A contraction in {dtype.name}; there are {', '.join(contract.SYMBOLS)}.")
    return contract.SYMBOLS[dtype.name]


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
    lists: Sequence[str] = ("null", "null"),
) -> None:
    """Call it for the ``block`` i0, i1, j0, j1 of the ``matrices`` A, B and C with ``numbers`` a_row, a_k, b_k, b_col,
    c_row and k. ``tile`` says that C is memory for one block, ``accumulate`` that chains begin at C; with ``lists`` of
    offsets of rows and of k, these take the place of A's steps."""
    name = symbol(dtype)
    em.declare(name, "void", *["ptr"] * 3, *["i64"] * 10, *["ptr"] * 3, *["i64"] * 2, *["ptr"] * 2)
    pointers = [f"ptr {m}" for m in matrices]
    operands = ", ".join([*pointers, *[f"i64 {x}" for x in (*numbers, *block)]])
    more = f"i64 {int(tile)}, i64 {int(accumulate)}, ptr {lists[0]}, ptr {lists[1]}"
    em.effect(f"call void @{name}({operands}, ptr {epilogue}, ptr %thread, ptr %args, {more})")
