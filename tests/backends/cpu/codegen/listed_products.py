"""Kernels whose first operand is read through lists of offsets, or whose chains begin at the result, and their data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from images import Array

from runnel.core.dtypes import DType, int32
from runnel.loops.ir import Buffer, Contract, Index, IndirectOperand, Kernel, Panels, Param, Product

SHAPES = [(1, 1, 1), (7, 19, 37), (31, 50, 18), (5, 17, 0), (200, 23, 40), (50, 13, 530), (13, 70, 270), (3, 21, 2100)]


def indirect(dtype: DType) -> Kernel:
    """c = a·b, with a[i, k] = a[rows[i] + ks[k]]."""
    k, n = Param("k"), Param("n")
    spec = Contract("a", "b", "c", dtype, k, 0, 0, n, Param("one"), n, indirect=IndirectOperand("rows", "ks"))
    operands = [Buffer(name, dtype, "in") for name in ("a", "b")]
    lists = [Buffer(name, int32, "in") for name in ("rows", "ks")]
    buffers = (*operands, Buffer("c", dtype, "out"), *lists)
    return Kernel(f"listed_{dtype.name}", buffers, (k, n, Param("one")), (spec,))


def panelled(dtype: DType, width: int) -> Kernel:
    """c = a·b, with b in panels of ``width`` columns."""
    k, n, step, one = map(Param, ("k", "n", "step", "one"))
    spec = Contract("a", "b", "c", dtype, k, k, 1, Param("width"), one, n, panels=Panels(step, width))
    buffers = (Buffer("a", dtype, "in"), Buffer("b", dtype, "in"), Buffer("c", dtype, "out"))
    return Kernel(f"panelled_{width}_{dtype.name}", buffers, (k, n, step, one, Param("width")), (spec,))


def resumed(dtype: DType) -> Kernel:
    """c += a·b."""
    m, k, n = Param("m"), Param("k"), Param("n")
    here = Index()
    spec = Product("a", here, "b", here, "c", here, dtype, m, n, k, k, 1, n, 1, n, accumulate=True)
    buffers = (Buffer("a", dtype, "in"), Buffer("b", dtype, "in"), Buffer("c", dtype, "inout"))
    return Kernel(f"resumed_{dtype.name}", buffers, (m, k, n), (spec,))


def listed_data(dtype: DType) -> Iterator[tuple[dict[str, Array], dict[str, int], int]]:
    """Arrays, params and the number of rows; offsets ascend in no order."""
    for m, n, k in SHAPES:
        rng = np.random.default_rng(m)
        arrays = {"a": rng.standard_normal(300).astype(dtype.numpy), "b": rng.standard_normal(k * n + 1)[: k * n]}
        arrays |= {"b": arrays["b"].astype(dtype.numpy), "c": np.full(m * n, np.nan, dtype.numpy)}
        arrays |= {"rows": rng.integers(0, 200, m).astype(np.int32), "ks": rng.integers(0, 100, k).astype(np.int32)}
        yield arrays, {"k": k, "n": n, "one": 1}, m


def panelled_data(dtype: DType, width: int) -> Iterator[tuple[dict[str, Array], dict[str, int], int]]:
    for m, n, k in SHAPES:
        rng = np.random.default_rng(n)
        step = k * width + 3
        sizes = {"a": m * k, "b": -(-n // width) * step, "c": m * n}
        arrays = {name: rng.standard_normal(size).astype(dtype.numpy) for name, size in sizes.items()}
        yield arrays, {"k": k, "n": n, "step": step, "one": 1, "width": width}, m


def resumed_data(dtype: DType) -> Iterator[tuple[dict[str, Array], dict[str, int], int]]:
    for m, n, k in SHAPES:
        rng = np.random.default_rng(k)
        sizes = {"a": m * k, "b": k * n, "c": m * n}
        arrays = {name: rng.standard_normal(size).astype(dtype.numpy) for name, size in sizes.items()}
        yield arrays, {"m": m, "k": k, "n": n}, 1
