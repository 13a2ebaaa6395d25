"""The interpreter against NumPy: values in float64, and the order of accumulation bit by bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from runnel.backends.interpreter import kernels as interpreter
from runnel.core.dtypes import (
    ALL,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
    uint64,
)
from runnel.core.errors import VerifierError
from runnel.loops import scalar
from runnel.loops.ir import (
    CHAIN,
    LANES,
    Acc,
    Apply,
    Buffer,
    Const,
    Contract,
    For,
    Index,
    Kernel,
    Let,
    Load,
    Param,
    Position,
    RangeBound,
    Ref,
    Store,
    Update,
)
from runnel.loops.verifier import verify
from tests.loops.kernels import (
    BIAS_RELU,
    COLUMN_SUM,
    SOFTMAX,
    ZERO,
    C,
    R,
    along,
    at,
    buffers,
    call,
    columns,
    contraction,
    load,
    rows,
)
from tests.loops.summation import in_blocks, in_lanes


def run(kernel: Kernel, arrays: dict[str, Any], params: dict[str, int], *block: int) -> None:
    verify(kernel)
    interpreter.run(kernel, arrays, params, *block)


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


sizes = st.integers(0, 40)


@settings(deadline=None, max_examples=30)
@given(sizes, sizes, st.integers(0, 5))
def test_pointwise_block(m: int, n: int, pad: int) -> None:
    x, b, y = normal(1, m, n + pad), normal(2, n), np.zeros((m, n + pad), np.float32)
    run(BIAS_RELU, {"x": x.ravel(), "b": b, "y": y.reshape(-1)}, {"ld": n + pad}, m // 3, m, n // 2, n)
    expected = np.zeros_like(y)
    expected[m // 3 :, n // 2 : n] = np.maximum(x[m // 3 :, n // 2 : n] + b[n // 2 :], 0)
    np.testing.assert_array_equal(y, expected)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 5), st.integers(1, 70))
def test_softmax(m: int, n: int) -> None:
    x, y = normal(3, m, n), np.zeros((m, n), np.float32)
    run(SOFTMAX, {"x": x.ravel(), "y": y.reshape(-1)}, {"n": n}, 0, m)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-6)


def reduction(kind: str, op: str = "sum") -> Kernel:
    body = (Acc("s", op, float32), along("n", Update("s", load("x", R, "n", C, 1)), kind=kind))
    return Kernel(
        "reduce", buffers(x="in", y="out"), (Param("n"),), (rows(*body, Store("y", at(R, 1), Ref("s", float32))),)
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2 * CHAIN) | st.sampled_from([3 * CHAIN + 1, 5 * CHAIN, 15 * CHAIN, 16 * CHAIN, 17 * CHAIN + 5]))
def test_row_sum_has_sixteen_partial_sums_in_blocks(n: int) -> None:
    x, y = normal(4, 3, n) * 1000, np.zeros(3, np.float32)
    run(reduction("vec"), {"x": x.ravel(), "y": y}, {"n": n}, 0, 3)
    assert y.tolist() == [in_lanes(row) for row in x]
    run(reduction("seq"), {"x": x.ravel(), "y": y}, {"n": n}, 0, 3)
    assert y.tolist() == [in_blocks(row) for row in x]


def test_long_row_sum_is_taken_in_chunks() -> None:
    n = 3 * 16384 + 5
    x, y = normal(5, 1, n), np.zeros(1, np.float32)
    run(reduction("vec"), {"x": x.ravel(), "y": y}, {"n": n}, 0, 1)
    assert y[0] == in_lanes(x[0])


def test_lanes_live_through_an_outer_loop() -> None:
    """One accumulator over rows and columns: its 16 chains go on from row to row, and are combined at the end."""
    body = (Acc("s", "sum", float32), rows(columns(Update("s", load("x", R, "ld", C, 1)))))
    kernel = Kernel("total", buffers(x="in", y="out"), (Param("ld"),), (*body, Store("y", Index(), Ref("s", float32))))
    x, y = normal(6, 5, 37), np.zeros(1, np.float32)
    run(kernel, {"x": x.ravel(), "y": y}, {"ld": 37}, 0, 5, 0, 37)
    lanes = np.zeros(LANES, np.float32)
    for row in x:
        for start in range(0, 37, LANES):
            part = row[start : start + LANES]
            lanes[: len(part)] += part
    for half in (8, 4, 2, 1):
        lanes = lanes[:half] + lanes[half : 2 * half]
    assert y[0] == lanes[0]


def test_column_sum_is_one_chain_per_column() -> None:
    x, y = normal(7, 9, 50), np.zeros(50, np.float32)
    run(COLUMN_SUM, {"x": x.ravel(), "y": y}, {"m": 9, "ld": 50}, 0, 1, 3, 41)
    chain = np.zeros(50, np.float32)
    for row in x:
        chain += row
    np.testing.assert_array_equal(y[3:41], chain[3:41])
    assert not y[:3].any() and not y[41:].any()


def test_long_columns_are_summed_in_blocks() -> None:
    m = 7 * CHAIN + 9
    x, y = normal(9, m, 5) + np.float32(100), np.zeros(5, np.float32)
    run(COLUMN_SUM, {"x": x.ravel(), "y": y}, {"m": m, "ld": 5}, 0, 1, 0, 5)
    assert y.tolist() == [in_blocks(column) for column in x.T]


@pytest.mark.parametrize("op", ["max", "sum"])
def test_only_short_sums_may_say_so(op: str) -> None:
    body = (Acc("s", op, float32, "short"), along("n", Update("s", load("x", R, "n", C, 1)), kind="seq"))
    kernel = Kernel(
        "short", buffers(x="in", y="out"), (Param("n"),), (rows(*body, Store("y", at(R, 1), Ref("s", float32))),)
    )
    x, y = normal(4, 1, CHAIN + 1), np.zeros(1, np.float32)
    run(kernel, {"x": x.ravel(), "y": y}, {"n": CHAIN}, 0, 1)
    if op == "sum":
        with pytest.raises(VerifierError, match="short sum has more than 64"):
            run(kernel, {"x": x.ravel(), "y": y}, {"n": CHAIN + 1}, 0, 1)
    else:
        run(kernel, {"x": x.ravel(), "y": y}, {"n": CHAIN + 1}, 0, 1)
        assert y[0] == x.max()


def test_a_chain_is_one_of_any_length() -> None:
    body = (Acc("s", "sum", float32, "chain"), along("n", Update("s", load("x", R, "n", C, 1)), kind="seq"))
    kernel = Kernel(
        "chain", buffers(x="in", y="out"), (Param("n"),), (rows(*body, Store("y", at(R, 1), Ref("s", float32))),)
    )
    n = 3 * CHAIN + 5
    x, y = normal(5, 1, n) + np.float32(100), np.zeros(1, np.float32)
    run(kernel, {"x": x.ravel(), "y": y}, {"n": n}, 0, 1)
    assert y[0] == np.cumsum(x[0], dtype=np.float32)[-1] != in_blocks(x[0])


def test_update_in_a_seq_loop_inside_a_vec_loop() -> None:
    """An outer accumulator updated twice per position: block of lanes by block of lanes, not chunk by chunk."""
    inner = For(R, 0, 2, "seq", (Update("s", load("x", R, "n", C, 1)),))
    kernel = Kernel(
        "both", buffers(x="in", y="out"), (Param("n"),),
        (Acc("s", "sum", float32), along("n", inner), Store("y", Index(), Ref("s", float32))),
    )  # fmt: skip
    x, y = normal(8, 2, 45) * 100, np.zeros(1, np.float32)
    run(kernel, {"x": x.ravel(), "y": y}, {"n": 45}, 0, 1)
    lanes = np.zeros(LANES, np.float32)
    for start in range(0, 45, LANES):
        for i in range(2):
            part = x[i, start : start + LANES]
            lanes[: len(part)] += part
    for half in (8, 4, 2, 1):
        lanes = lanes[:half] + lanes[half : 2 * half]
    assert y[0] == lanes[0]


@pytest.mark.parametrize(("op", "empty"), [("sum", 0), ("prod", 1), ("max", -math.inf), ("min", math.inf)])
def test_identities_and_values(op: str, empty: float) -> None:
    y, x = np.zeros(1, np.float32), normal(9, 1, 21)
    run(reduction("vec", op), {"x": x.ravel(), "y": y}, {"n": 0}, 0, 1)
    assert y[0] == empty
    run(reduction("vec", op), {"x": x.ravel(), "y": y}, {"n": 21}, 0, 1)
    np.testing.assert_allclose(y[0], getattr(np, op)(x.astype(np.float64)), rtol=1e-5)


def test_nan_propagates_through_max() -> None:
    x, y = normal(10, 1, 30), np.zeros(1, np.float32)
    x[0, 7] = np.nan
    run(reduction("vec", "max"), {"x": x.ravel(), "y": y}, {"n": 30}, 0, 1)
    assert np.isnan(y[0])


def test_truths() -> None:
    body = (Acc("s", "any", bool_), Acc("t", "all", bool_))
    cells = Load("x", at(C, 1), bool_)
    kernel = Kernel(
        "truths", (Buffer("x", bool_, "in"), Buffer("y", bool_, "out")), (Param("n"),),
        (*body, along("n", Update("s", cells), Update("t", cells)),
         Store("y", Index(), Ref("s", bool_)), Store("y", Index((), 1), Ref("t", bool_))),
    )  # fmt: skip
    for x in (np.zeros(20, bool), np.ones(20, bool), np.arange(20) == 3):
        y = np.zeros(2, bool)
        run(kernel, {"x": x, "y": y}, {"n": 20}, 0, 1)
        assert y.tolist() == [x.any(), x.all()]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 7), st.integers(0, 20), st.integers(0, 9), st.booleans(), st.sampled_from([float32, float64]))
def test_contract_and_epilogue(m: int, n: int, k: int, transposed: bool, dtype: DType) -> None:
    rng = np.random.default_rng(m * 400 + n * 20 + k)
    a = rng.standard_normal((k, m) if transposed else (m, k)).astype(dtype.numpy)
    b, c = rng.standard_normal((k, n)).astype(dtype.numpy), np.full(m * n, 7, dtype.numpy)
    double = call(scalar.add, Load("c", at(R, "c_row", C, 1), dtype), Load("c", at(R, "c_row", C, 1), dtype))
    kernel = contraction(dtype, rows(columns(Store("c", at(R, "c_row", C, 1), double))))
    strides = {"a_row": 1, "a_k": m} if transposed else {"a_row": k, "a_k": 1}
    params = {"k": k, **strides, "b_k": n, "b_col": 1, "c_row": n}
    run(kernel, {"a": a.ravel(), "b": b.ravel(), "c": c}, params, 0, m, 0, n)
    wide = (a.T if transposed else a).astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c.reshape(m, n), 2 * wide, rtol=1e-4, atol=1e-5)


def test_batched_contract() -> None:
    from runnel.loops.ir import BatchSpec

    base = contraction()
    spec = base.body[0]
    assert isinstance(spec, Contract)
    names = ("m", "n", "a_step", "b_step", "c_step")
    fields = {name: getattr(spec, name) for name in ("k", "a_row", "a_k", "b_k", "b_col", "c_row")}
    batched = Contract("a", "b", "c", float32, **fields, batch=BatchSpec(*(Param(name) for name in names)))
    kernel = Kernel("batched", base.buffers, (*base.params, *(Param(name) for name in names)), (batched,))
    a, b, c = normal(11, 4, 3, 5), normal(12, 4, 5, 6), np.zeros((4, 3, 6), np.float32)
    params = {"k": 5, "a_row": 5, "a_k": 1, "b_k": 6, "b_col": 1, "c_row": 6}
    params |= {"m": 3, "n": 6, "a_step": 15, "b_step": 30, "c_step": 18}
    run(kernel, {"a": a.ravel(), "b": b.ravel(), "c": c.reshape(-1)}, params, 1, 4)
    np.testing.assert_allclose(c[1:], a[1:] @ b[1:], rtol=1e-4, atol=1e-5)
    assert not c[0].any()


def test_gather_and_position() -> None:
    row = Load("at", at(R, 1), int64)
    table = Load("x", Index(((C, 1),), 0, ((row, Param("n")),)), float32)
    value = call(scalar.add, table, Apply(scalar.cast, (Position(C, int32),), float32))
    kernel = Kernel(
        "gather", (*buffers(x="in", y="out"), Buffer("at", int64, "in")), (Param("n"),),
        (rows(columns(Store("y", at(R, "n", C, 1), value))),),
    )  # fmt: skip
    x, which, y = normal(13, 6, 20), np.array([5, 0, 5]), np.zeros((3, 20), np.float32)
    run(kernel, {"x": x.ravel(), "y": y.reshape(-1), "at": which}, {"n": 20}, 0, 3, 0, 20)
    np.testing.assert_array_equal(y, x[which] + np.arange(20, dtype=np.float32))
    with pytest.raises(VerifierError, match=r"Kernel 'gather' reaches for x\[120\], and it has 120 elements"):
        run(kernel, {"x": x.ravel(), "y": y.reshape(-1), "at": np.array([6])}, {"n": 20}, 0, 1, 0, 20)


def test_in_place_shift_moves_block_by_block() -> None:
    """y[j+1] = y[j] in lanes: 16 positions are read before any is written."""
    kernel = Kernel(
        "shift", buffers(y="inout"), (Param("n"),), (along("n", Store("y", Index(((C, 1),), 1), load("y", C, 1))),)
    )
    y = np.arange(41, dtype=np.float32)
    run(kernel, {"y": y}, {"n": 40}, 0, 1)
    assert y.tolist() == [0, *range(16), 15, *range(17, 32), 31, *range(33, 40)]


@pytest.mark.parametrize("index", [Index(((C, 1),), 1), Index(((C, -1),))])
def test_out_of_range_store(index: Index) -> None:
    kernel = Kernel("bad", buffers(y="out"), (), (columns(Store("y", index, ZERO)),))
    with pytest.raises(VerifierError, match=r"Kernel 'bad' reaches for y\[(4|-1)\]"):
        run(kernel, {"y": np.zeros(4, np.float32)}, {}, 0, 1, 0, 4)


def test_arguments_are_checked() -> None:
    with pytest.raises(VerifierError, match=r"needs a flat float32 array for 'b'; it got float64\[3\]"):
        run(BIAS_RELU, {"x": np.zeros(3, np.float32), "b": np.zeros(3)}, {"ld": 1}, 0, 1)
    with pytest.raises(VerifierError, match="needs a value for its param 'm'"):
        run(COLUMN_SUM, {"x": np.zeros(3, np.float32), "y": np.zeros(3, np.float32)}, {}, 0, 1)


CASTS = [
    (float32, int8, [300, -300, math.nan, 1.9, -1.9, math.inf], [127, -128, 0, 1, -1, 127]),
    (float64, int64, [2.0**63, -(2.0**63), 1e300, -1e300, 2.0**62], [2**63 - 1, -(2**63), 2**63 - 1, -(2**63), 2**62]),
    (float64, uint64, [2.0**64, -1, 2.0**63], [2**64 - 1, 0, 2**63]),
    (float16, uint8, [255.5, 256, -0.5], [255, 255, 0]),
    (bfloat16, int32, [3.0e38, -7.5], [2**31 - 1, -7]),
    (float32, bool_, [0.0, -0.0, math.nan, 0.1], [False, False, True, True]),
    (int32, uint8, [257, -1], [1, 255]),
    (float64, float32, [1e300, 0.1], [math.inf, np.float32(0.1)]),
]


@pytest.mark.parametrize(("source", "to", "values", "expected"), CASTS)
def test_casts(source: DType, to: DType, values: list[Any], expected: list[Any]) -> None:
    body = (along("n", Store("y", at(C, 1), Apply(scalar.cast, (Load("x", at(C, 1), source),), to))),)
    kernel = Kernel("cast", (Buffer("x", source, "in"), Buffer("y", to, "out")), (Param("n"),), body)
    y = np.zeros(len(values), to.numpy)
    run(kernel, {"x": np.array(values).astype(source.numpy), "y": y}, {"n": len(values)}, 0, 1)
    assert y.tolist() == expected


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
def test_every_dtype_is_copied_and_compared(dtype: DType) -> None:
    x = np.array([0, 1, 1, 0, 1]).astype(dtype.numpy)
    value, zero = Load("x", at(C, 1), dtype), Const(False if dtype is bool_ else 0, dtype)
    kernel = Kernel(
        "copy", (Buffer("x", dtype, "in"), Buffer("y", dtype, "out"), Buffer("z", bool_, "out")), (),
        (columns(Let("v", value), Store("y", at(C, 1), Ref("v", dtype)),
                 Store("z", at(C, 1), Apply(scalar.ne, (Ref("v", dtype), zero), bool_))),),
    )  # fmt: skip
    y, z = np.zeros(5, dtype.numpy), np.zeros(5, bool)
    run(kernel, {"x": x, "y": y, "z": z}, {}, 0, 1, 0, 5)
    assert y.tobytes() == x.tobytes() and z.tolist() == [False, True, True, False, True]


def test_bits_and_fused() -> None:
    bits = Apply(scalar.bitcast, (load("x", C, 1),), int32)
    fused = Apply(scalar.fma, (load("x", C, 1), load("x", C, 1), Const(-1.0, float32)), float32)
    kernel = Kernel(
        "bits", (*buffers(x="in", y="out"), Buffer("z", int32, "out")), (),
        (columns(Store("z", at(C, 1), bits), Store("y", at(C, 1), fused)),),
    )  # fmt: skip
    x, y, z = np.array([1, 1 + 2.0**-13], np.float32), np.zeros(2, np.float32), np.zeros(2, np.int32)
    run(kernel, {"x": x, "y": y, "z": z}, {}, 0, 1, 0, 2)
    assert z.tolist() == x.view(np.int32).tolist()
    assert y[1] == np.float32(2.0**-12 + 2.0**-26) != x[1] * x[1] - np.float32(1)


def test_empty_block_touches_nothing() -> None:
    y = np.zeros(0, np.float32)
    kernel = Kernel(
        "fill", buffers(y="out"), (), (For(R, RangeBound.I0, RangeBound.I1, "vec", (Store("y", at(R, 1), ZERO),)),)
    )
    run(kernel, {"y": y}, {}, 3, 3)
