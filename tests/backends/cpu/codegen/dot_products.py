"""Kernels that are one product of bfloat16, their data, and how far from the exact product a result may be."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from images import Array

from runnel.core.dtypes import bfloat16, float32, int32
from runnel.loops import scalar
from runnel.loops.ir import (
    TILE_STRIDE,
    Apply,
    BatchSpec,
    Buffer,
    Contract,
    For,
    Index,
    IndirectOperand,
    Kernel,
    Load,
    Param,
    RangeBound,
    Store,
    Var,
)

NAMES = ("k", "a_row", "a_k", "b_k", "b_col", "c_row")
BATCH = ("m", "n", "a_step", "b_step", "c_step")
_MATRICES = (Buffer("a", bfloat16, "in"), Buffer("b", bfloat16, "in"), Buffer("c", float32, "out"))


def product(batch: bool = False) -> Kernel:
    """c = a·b by strides; with ``batch`` one for each row of the block."""
    spec = BatchSpec(*map(Param, BATCH)) if batch else None
    statement = Contract("a", "b", "c", float32, *map(Param, NAMES), batch=spec, operand_dtype=bfloat16)
    params = tuple(map(Param, (*NAMES, *(BATCH if batch else ()))))
    return Kernel(f"dots_{'batch' if batch else 'one'}", _MATRICES, params, (statement,))


def indirect() -> Kernel:
    """c = a·b, with a[i, k] = a[rows[i] + ks[k]]."""
    k, b_k, b_col, c_row = map(Param, ("k", "b_k", "b_col", "c_row"))
    statement = Contract(
        "a",
        "b",
        "c",
        float32,
        k,
        0,
        0,
        b_k,
        b_col,
        c_row,
        indirect=IndirectOperand("rows", "ks"),
        operand_dtype=bfloat16,
    )
    lists = tuple(Buffer(name, int32, "in") for name in ("rows", "ks"))
    return Kernel("dots_listed", (*_MATRICES, *lists), (k, b_k, b_col, c_row), (statement,))


def with_epilogue() -> Kernel:
    """out = bfloat16(a·b + bias), where the product lives in a tile alone."""
    i, j, width = Var("i"), Var("j"), TILE_STRIDE // float32.itemsize
    k, a_row, a_k, b_k, b_col = map(Param, NAMES[:5])
    statement = Contract("a", "b", "t", float32, k, a_row, a_k, b_k, b_col, width, operand_dtype=bfloat16)
    total = Apply(
        scalar.add,
        (Load("t", Index(((i, width), (j, 1))), float32), Load("bias", Index(((j, 1),)), float32)),
        float32,
    )
    store = Store("out", Index(((i, Param("row")), (j, 1))), Apply(scalar.cast, (total,), bfloat16))
    columns = For(j, RangeBound.J0, RangeBound.J1, "vec", (store,))
    rows = For(i, RangeBound.I0, RangeBound.I1, "seq", (columns,))
    buffers = (*_MATRICES[:2], Buffer("t", float32, "tile"), Buffer("bias", float32, "in"))
    params = (k, a_row, a_k, b_k, b_col, Param("row"))
    return Kernel("dots_epilogue", (*buffers, Buffer("out", bfloat16, "out")), params, (statement, rows))


def operands(m: int, n: int, k: int, seed: int = 0) -> tuple[Array, Array]:
    """Matrices of bfloat16."""
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((m, k), (k, n)))  # type: ignore[return-value]


def assert_close(actual: Any, a: Array, b: Array, name: str = "") -> None:
    """Within the error of any dot instruction: a pair's sum and the total are each off by at most 2⁻²³ of themselves
    (bfdot rounds to odd; others round the products' sums in turn, by 2⁻²⁴ each), and a pair is for two k."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    wrong = np.abs(actual.astype(np.float64) - exact) > (a.shape[1] + 2) * 2.0**-24 * scale
    assert not wrong.any(), f"{name}: {int(wrong.sum())} of {wrong.size} elements are off, at {np.argwhere(wrong)[:5]}"
