"""Long accumulations, whose blocks meet pairwise: generated code against the interpreter, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from nest_harness import I0, I1, J0, J1, I, J, K, N, Native, agree_native, at, load, op, seq, values, vec

from runnel.core.dtypes import DType, float32, float64, int32
from runnel.loops import scalar
from runnel.loops.ir import CHAIN, LANES, Acc, Buffer, Kernel, Let, Param, Ref, Stmt, Store, Update

BLOCKS = [0, 1, 2, 3, 7, 8, 11]
AROUND = sorted({max(b * CHAIN + d, 0) for b in BLOCKS for d in (-1, 0, 1)})


def kernel(dtype: DType, *body: Stmt, inputs: tuple[str, ...] = ("x",)) -> Kernel:
    buffers = (*(Buffer(b, dtype, "in") for b in inputs), Buffer("out", dtype, "out"))
    return Kernel("blocks", buffers, (N, Param("m"), Param("ld")), body)


def row_sums(dtype: DType) -> Kernel:
    """Two accumulations that are counted together, and one over every other turn of the loop around that is not."""
    loaded = Let("v", load("x", dtype, (K, Param("ld")), (J, 1)))
    v = Ref("v", dtype)
    inner = vec(J, 0, N, loaded, Update("a", v), Update("b", op(scalar.mul, v, v)), Update("top", v))
    return kernel(
        dtype,
        seq(
            I,
            I0,
            I1,
            Acc("a", "sum", dtype),
            Acc("b", "sum", dtype),
            Acc("c", "prod", dtype),
            Acc("top", "max", dtype),
            seq(K, 0, Param("m"), inner, Let("w", load("x", dtype, (K, Param("ld")))), Update("c", Ref("w", dtype))),
            *(Store("out", at(offset=n), Ref(name, dtype)) for n, name in enumerate(("a", "b", "c", "top"))),
        ),
    )


@pytest.mark.parametrize("dtype", [float32, float64, int32], ids=str)
def test_rows(dtype: DType) -> None:
    native = Native(row_sums(dtype))
    rng = np.random.default_rng(1)
    for m, n in [
        (1, 5 * CHAIN * LANES + 3),
        (3, CHAIN * LANES - 1),
        (CHAIN, LANES),
        (CHAIN + 1, LANES + 1),
        (9 * CHAIN, 2),
    ]:
        arrays = {"x": values(rng, dtype, m * (n + 3)), "out": np.zeros(4, dtype.numpy)}
        agree_native(native, arrays, {"n": n, "m": m, "ld": n + 3}, 0, 1)


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_columns(dtype: DType) -> None:
    x = load("x", dtype, (K, Param("ld")), (J, 1))
    body = vec(
        J,
        J0,
        J1,
        Acc("a", "sum", dtype),
        Acc("b", "sum", dtype),
        seq(K, 0, Param("m"), Update("a", x), Update("b", op(scalar.mul, x, x)), Update("b", x)),
        Store("out", at((J, 1)), Ref("a", dtype)),
        Store("out", at((J, 1), offset=N), Ref("b", dtype)),
    )
    native = Native(kernel(dtype, body))
    rng = np.random.default_rng(2)
    for m in AROUND:
        arrays = {"x": values(rng, dtype, max(m, 1) * 40), "out": np.zeros(80, dtype.numpy)}
        agree_native(native, arrays, {"n": 40, "m": m, "ld": 40}, 0, 1, 3, 39)


def test_a_sum_that_is_read_and_computed_with() -> None:
    """One accumulator after the other, the second over what the first gave."""
    x = load("x", float32, (J, 1))
    away = op(scalar.sub, x, Ref("mean", float32))
    body = (
        Acc("a", "sum", float32),
        vec(J, 0, N, Update("a", x)),
        Let("mean", op(scalar.div, Ref("a", float32), load("x", float32))),
        Acc("b", "sum", float32),
        vec(J, 0, N, Update("b", op(scalar.mul, away, away))),
        Store("out", at(), Ref("b", float32)),
    )
    native = Native(kernel(float32, *body))
    rng = np.random.default_rng(3)
    for steps in AROUND:
        n = steps * LANES + 5
        agree_native(
            native, {"x": values(rng, float32, n), "out": np.zeros(1, np.float32)}, {"n": n, "m": 0, "ld": 0}, 0, 1
        )
