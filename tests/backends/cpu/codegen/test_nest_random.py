"""Random kernels: generated code against the interpreter, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st
from nest_harness import (
    I0,
    I1,
    J0,
    J1,
    I,
    J,
    K,
    N,
    agree,
    at,
    load,
    op,
    rng,
    seq,
    values,
    vec,
)

from runnel.core import dtypes
from runnel.core.dtypes import DType, bool_, float32, float64, int32
from runnel.loops import scalar
from runnel.loops.ir import (
    Acc,
    Bound,
    Buffer,
    Const,
    Expr,
    Index,
    Kernel,
    Let,
    Load,
    Param,
    Ref,
    Stmt,
    Store,
    Update,
)


@st.composite
def expressions(draw: Any, dtype: DType, names: tuple[str, ...], lanes: bool, depth: int = 3) -> Expr:
    """Over the arrays x (rows of 37), row, column, places, and the given names."""
    binary = st.sampled_from([scalar.add, scalar.sub, scalar.mul, scalar.maximum])
    kinds = ["constant", "column"] + ["name"] * bool(names) + ["apply", "apply", "choose"] * (depth > 0)
    kinds += ["x", "row", "strided", "places"] * lanes
    kind = draw(st.sampled_from(kinds))
    if kind == "constant":
        return Const(draw(st.sampled_from([-2, 0, 3])), dtype)
    if kind == "name":
        return Ref(draw(st.sampled_from(names)), dtype)
    if kind == "places":
        row = draw(st.sampled_from([at((I, 37)), at((I, N), offset=1)]))
        return Load("x", Index(row.terms, row.offset, ((load("places", int32, (J, 1)), 1),)), dtype)
    if kind not in ("apply", "choose"):
        index = {"column": at((I, 1)), "x": at((I, N), (J, 1)), "row": at((J, 1)), "strided": at((I, 3), (J, 2))}
        return Load(kind if kind in ("column", "row") else "x", index[kind], dtype)
    a = draw(expressions(dtype, names, lanes, depth - 1))
    b = draw(expressions(dtype, names, lanes, depth - 1))
    if kind == "apply":
        return op(draw(binary), a, b)
    return op(scalar.select, op(scalar.lt, a, b, dtype=bool_), b, a, dtype=dtype)


@st.composite
def kernels(draw: Any, dtype: DType) -> Kernel:
    """Several passes over each row, with values that later passes use; or one walk down the columns."""
    bounds: tuple[Bound, Bound] = draw(st.sampled_from([(J0, J1), (0, 37), (5, 10), (2, 18), (0, Param("m"))]))
    reducers = st.sampled_from(["sum", "max", "min"])
    body: list[Stmt] = []
    known: tuple[str, ...] = ()
    for turn in range(draw(st.integers(1, 3))):
        acc, let = f"acc{turn}", f"let{turn}"
        value = draw(expressions(dtype, known, True))
        inner: list[Stmt] = [Let(let, value)]
        result = draw(expressions(dtype, (*known, let), True))
        if draw(st.booleans()):
            chain = Update("chain", draw(expressions(dtype, (*known, let), True)))
            inner += [Acc("chain", draw(reducers), dtype), seq(K, 0, draw(st.integers(0, 2)), chain)]
            result = op(scalar.sub, Ref("chain", dtype), result)
        inner += [Store("out", at((I, N), (J, draw(st.sampled_from([1, 1, 2, Param("one")])))), result)]
        inner += [Update(acc, Ref(let, dtype))]
        body += [Acc(acc, draw(reducers), dtype), vec(J, *bounds, *inner)]
        body += [Let(f"known{turn}", op(scalar.add, Ref(acc, dtype), draw(expressions(dtype, known, False))))]
        known = (*known, f"known{turn}")
    body += [Store("ends", at((I, 1)), Ref(known[-1], dtype))]
    buffers = [Buffer(b, dtype, "in") for b in ("x", "row", "column")] + [Buffer("places", int32, "in")]
    buffers += [Buffer(b, dtype, "out") for b in ("out", "ends")]
    return Kernel("random", tuple(buffers), (N, Param("m"), Param("one")), (seq(I, I0, I1, *body),))


@settings(deadline=None, max_examples=12)
@given(
    data=st.data(),
    dtype=st.sampled_from([float32, float64, int32, dtypes.bfloat16, dtypes.int8]),
    rows=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    columns=st.tuples(st.integers(0, 37), st.integers(0, 37)),
    m=st.integers(0, 37),
)
def test_random_kernels(
    data: st.DataObject, dtype: DType, rows: tuple[int, int], columns: tuple[int, int], m: int
) -> None:
    kernel = data.draw(kernels(dtype))
    sizes = {"x": 6 * 80, "row": 37, "column": 5, "out": 6 * 80, "ends": 5}
    arrays = {name: values(rng(), dtype, size) for name, size in sizes.items()}
    arrays["places"] = rng().integers(0, 37, 37).astype(np.int32)
    agree(kernel, arrays, {"n": 79, "m": m, "one": 1}, *rows, *columns)
