"""Generated loops against NumPy and, to the bit, against the interpreter."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from nest_harness import (
    I0,
    I1,
    J0,
    J1,
    ONE,
    Array,
    I,
    J,
    K,
    N,
    Native,
    agree,
    agree_native,
    at,
    load,
    op,
    rng,
    seq,
    values,
    vec,
)

from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import nest
from runnel.core import dtypes
from runnel.core.dtypes import DType, bool_, float32, float64, int32, int64
from runnel.loops import scalar
from runnel.loops.ir import (
    LANES,
    Acc,
    Bound,
    Buffer,
    Const,
    Kernel,
    Let,
    Load,
    Param,
    Position,
    Ref,
    Store,
    Stride,
    Update,
)

# --- pointwise


def copy_kernel(dtype: DType, begin: Bound = J0, end: Bound = J1) -> Kernel:
    body = vec(J, begin, end, Store("out", at((J, 1)), load("x", dtype, (J, 1))))
    return Kernel("copy", (Buffer("x", dtype, "in"), Buffer("out", dtype, "out")), (), (body,))


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda d: d.name)
def test_every_dtype_is_loaded_and_stored_with_tails_of_every_length(dtype: DType) -> None:
    native = Native(copy_kernel(dtype))
    x = values(rng(), dtype, 48)
    for n in range(41):
        out = np.zeros(48, dtype.numpy)
        native({"x": x, "out": out}, {}, 0, 1, 3, 3 + n)
        expected = np.zeros(48, dtype.numpy)
        expected[3 : 3 + n] = x[3 : 3 + n]
        assert out.tobytes() == expected.tobytes(), n


@pytest.mark.parametrize("dtype", [float32, float64, bool_, dtypes.int8, dtypes.bfloat16], ids=lambda d: d.name)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 35, 48])
def test_known_extents(dtype: DType, n: int) -> None:
    agree(copy_kernel(dtype, 0, n), {"x": values(rng(), dtype, 50), "out": np.zeros(50, dtype.numpy)}, {}, 0, 1)


def test_broadcast_of_a_row_a_column_and_a_number() -> None:
    product = op(scalar.mul, load("x", float32, (I, N), (J, 1)), load("row", float32, (J, 1)))
    shifted = op(scalar.add, product, load("column", float32, (I, 1)))
    body = seq(I, I0, I1, vec(J, J0, J1, Store("out", at((I, N), (J, 1)), op(scalar.sub, shifted, ONE))))
    buffers = [Buffer(b, float32, "in") for b in ("x", "row", "column")] + [Buffer("out", float32, "out")]
    kernel = Kernel("affine", tuple(buffers), (N,), (body,))
    x, row, column = (values(rng(), float32, n) for n in (7 * 21, 21, 7))
    arrays = {"x": x, "row": row, "column": column, "out": np.zeros(7 * 21, np.float32)}
    actual = agree(kernel, arrays, {"n": 21}, 0, 7, 0, 21)["out"]
    np.testing.assert_array_equal(actual.reshape(7, 21), x.reshape(7, 21) * row + column[:, None] - np.float32(1))
    agree(kernel, arrays, {"n": 21}, 2, 5, 4, 20)
    for empty in [(3, 3, 0, 21), (0, 7, 5, 5), (4, 3, 0, 21), (0, 7, 9, 2)]:
        assert not agree(kernel, arrays, {"n": 21}, *empty)["out"].any()


@settings(deadline=None, max_examples=25)
@given(
    rows=st.integers(0, 5),
    columns=st.integers(0, 40),
    x_strides=st.tuples(st.integers(-3, 50), st.integers(-3, 4)),
    as_params=st.booleans(),
    dtype=st.sampled_from([float32, int64, bool_, dtypes.float16]),
    block=st.tuples(st.integers(0, 3), st.integers(0, 20)),
)
def test_any_strides(
    rows: int, columns: int, x_strides: tuple[int, int], as_params: bool, dtype: DType, block: tuple[int, int]
) -> None:
    params: dict[str, int] = {}

    def stride(name: str, number: int) -> Stride:
        if not as_params:
            return number
        params[name] = number
        return Param(name)

    x_offset = sum(max(0, -s * n) for s, n in zip(x_strides, (rows, columns), strict=True))
    x_index = at((I, stride("si", x_strides[0])), (J, stride("sj", x_strides[1])), offset=stride("off", x_offset))
    out_index = at((I, stride("oi", 2 * columns + 1)), (J, stride("oj", 2)), offset=1)
    body = seq(I, I0, I1, vec(J, J0, J1, Store("out", out_index, Load("x", x_index, dtype))))
    kernel = Kernel(
        "strides", (Buffer("x", dtype, "in"), Buffer("out", dtype, "out")), tuple(map(Param, params)), (body,)
    )
    size = x_offset + sum(max(0, s * n) for s, n in zip(x_strides, (rows, columns), strict=True)) + 1
    arrays = {"x": values(rng(), dtype, size), "out": np.zeros((2 * columns + 1) * rows + 2, dtype.numpy)}
    agree(kernel, arrays, params, min(block[0], rows), rows, min(block[1], columns), columns)


def test_a_store_forgets_loads_that_it_may_have_changed() -> None:
    x, doubled = load("x", float32, (J, 1)), Store("x", at((J, 1)), op(scalar.add, load("x", float32, (J, 1)), ONE))
    body = vec(
        J,
        J0,
        J1,
        Let("before", x),
        doubled,
        doubled,
        Store("out", at((J, 1)), op(scalar.sub, x, Ref("before", float32))),
    )
    kernel = Kernel("twice", (Buffer("x", float32, "inout"), Buffer("out", float32, "out")), (), (body,))
    actual = agree(kernel, {"x": np.arange(20, dtype=np.float32), "out": np.zeros(20, np.float32)}, {}, 0, 1, 0, 19)
    assert (actual["out"][:19] == 2).all()


def test_in_place() -> None:
    body = vec(
        J, J0, J1, Store("out", at((J, 1)), op(scalar.mul, load("x", float32, (J, 1)), load("x", float32, (J, 1))))
    )
    native = Native(Kernel("square", (Buffer("x", float32, "in"), Buffer("out", float32, "out")), (), (body,)))
    x = values(rng(), float32, 37)
    expected = x * x
    native({"x": x, "out": x}, {}, 0, 1, 0, 37)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", [int32, int64, dtypes.uint8, dtypes.int16], ids=lambda d: d.name)
def test_positions(dtype: DType) -> None:
    both = op(scalar.add, op(scalar.mul, Position(I, dtype), Const(3, dtype)), Position(J, dtype))
    body = seq(I, I0, I1, vec(J, J0, J1, Store("out", at((I, 40), (J, 1)), both)))
    agree(
        Kernel("iota", (Buffer("out", dtype, "out"),), (), (body,)),
        {"out": np.zeros(200, dtype.numpy)},
        {},
        1,
        5,
        2,
        39,
    )


def test_what_no_block_changes_is_computed_before_the_loop() -> None:
    scale = Let("scale", op(scalar.div, ONE, load("x", float32, (I, 1))))
    twice = op(scalar.mul, Ref("scale", float32), Ref("scale", float32))
    body = seq(
        I,
        I0,
        I1,
        vec(J, J0, J1, scale, Store("out", at((I, 33), (J, 1)), op(scalar.add, twice, load("y", float32, (J, 1))))),
    )
    buffers = (Buffer("x", float32, "in"), Buffer("y", float32, "in"), Buffer("out", float32, "out"))
    kernel = Kernel("scaled", buffers, (), (body,))
    x, y = values(rng(), float32, 4), values(rng(), float32, 33)
    agree(kernel, {"x": x, "y": y, "out": np.zeros(132, np.float32)}, {}, 0, 4, 0, 33)
    text = nest.emit_kernel(kernel, target.AVX2)
    assert text.count("fdiv") == 1 and "fdiv float" in text


def test_a_load_that_the_loop_itself_changes_stays_in_the_loop() -> None:
    total = op(scalar.add, load("x", float32), load("x", float32, (J, 1)))
    kernel = Kernel("grow", (Buffer("x", float32, "inout"),), (), (vec(J, J0, J1, Store("x", at((J, 1)), total)),))
    actual = agree(kernel, {"x": np.ones(40, np.float32)}, {}, 0, 1, 0, 40)["x"]
    np.testing.assert_array_equal(actual, [2.0] * 16 + [3.0] * 24)


# --- reductions


def lane_sum(x: Array, combine: Callable[[Any, Any], Any] = np.add, start: float = 0.0) -> Any:
    """The order of ``ir.py``: 16 lane-wise partial results, then lanes l and l+8, l+4, l+2, l+1."""
    lanes = np.full(LANES, start, x.dtype)
    for first in range(0, len(x), LANES):
        part = x[first : first + LANES]
        lanes[: len(part)] = combine(lanes[: len(part)], part)
    while len(lanes) > 1:
        lanes = combine(lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :])
    return lanes[0]


def row_reduction(which: str, dtype: DType, begin: Bound = 0, end: Bound = N) -> Kernel:
    value = load("x", dtype, (I, N), (J, 1))
    body = seq(I, I0, I1, Acc("acc", which, dtype), vec(J, begin, end, Update("acc", value)),
               Store("out", at((I, 1)), Ref("acc", dtype)))  # fmt: skip
    return Kernel("reduce", (Buffer("x", dtype, "in"), Buffer("out", dtype, "out")), (N,), (body,))


@pytest.mark.parametrize("dtype", [float32, float64], ids=lambda d: d.name)
def test_the_tree_of_a_sum_to_the_bit(dtype: DType) -> None:
    native = Native(row_reduction("sum", dtype))
    for n in [*range(41), 64, 1000]:
        x = values(rng(), dtype, max(1, 3 * n)) * dtype.numpy.type(1e3)
        out = np.full(3, np.nan, dtype.numpy)
        native({"x": x, "out": out}, {"n": n}, 0, 3)
        for row in range(3):
            assert out[row] == lane_sum(x[row * n : row * n + n]), (n, row)
            exact = np.sum(x[row * n : row * n + n].astype(np.float64))
            np.testing.assert_allclose(out[row], exact, rtol=0, atol=np.finfo(dtype.numpy).eps * 1e3 * max(1, n))


@pytest.mark.parametrize("n", [1, 3, 7, 8, 13, 16, 29, 48])
@pytest.mark.parametrize("which", ["sum", "max"])
def test_reductions_of_known_length(n: int, which: str) -> None:
    x = values(rng(), float32, 3 * n)
    agree(row_reduction(which, float32, 0, n), {"x": x, "out": np.zeros(3, np.float32)}, {"n": n}, 0, 3)


REDUCTIONS = [
    ("sum", int32), ("sum", dtypes.uint8), ("sum", dtypes.bfloat16), ("sum", dtypes.float16), ("prod", float64),
    ("prod", int64), ("max", float32), ("max", dtypes.int8), ("max", dtypes.uint32), ("max", dtypes.bfloat16),
    ("min", float64), ("min", int32), ("min", dtypes.uint64), ("any", bool_), ("all", bool_),
    ("max", bool_), ("min", bool_),
]  # fmt: skip


@pytest.mark.parametrize(("which", "dtype"), REDUCTIONS, ids=lambda x: getattr(x, "name", x))
def test_reductions(which: str, dtype: DType) -> None:
    native = Native(row_reduction(which, dtype))
    for n in (0, 1, 5, 16, 23, 40):
        x = values(rng(), dtype, max(1, 4 * n))
        if dtype is bool_ and n:
            x[:n], x[n : 2 * n] = which == "all", which == "all"
            x[2 * n - 1] = which == "any"
        agree_native(native, {"x": x, "out": np.zeros(4, dtype.numpy)}, {"n": n}, 0, 4)


def test_max_propagates_nan_from_any_lane() -> None:
    native = Native(row_reduction("max", float32))
    for n, place in [(20, 3), (20, 19), (16, 15), (5, 0)]:
        x, out = np.zeros(n, np.float32), np.zeros(1, np.float32)
        x[place] = np.nan
        native({"x": x, "out": out}, {"n": n}, 0, 1)
        assert np.isnan(out[0])


def test_partial_results_live_through_outer_loops_and_several_vec_loops() -> None:
    x = load("x", float32, (I, 37), (J, 1))
    body = (
        Acc("all", "sum", float32),
        Acc("count", "sum", int64),
        Acc("top", "max", float32),
        seq(I, I0, I1, vec(J, J0, J1, Update("all", x), Update("top", x)), Update("count", Const(1, int64)),
            vec(J, 0, 5, Update("all", x))),
        seq(K, 0, 2, Store("out", at((K, 1)), op(scalar.add, Ref("all", float32), Ref("top", float32)))),
        Store("counted", at(), Ref("count", int64)),
    )  # fmt: skip
    buffers = (Buffer("x", float32, "in"), Buffer("out", float32, "out"), Buffer("counted", int64, "out"))
    arrays = {"x": values(rng(), float32, 6 * 37), "out": np.zeros(2, np.float32), "counted": np.zeros(1, np.int64)}
    native = Native(Kernel("total", buffers, (), body))
    for block in [(0, 6, 0, 37), (1, 4, 3, 20), (2, 2, 0, 37), (0, 3, 4, 4)]:
        actual = agree_native(native, arrays, {}, *block)
        assert actual["counted"][0] == block[1] - block[0]


def test_a_scalar_chain_in_order_of_index() -> None:
    body = (
        Acc("s", "sum", float32),
        seq(I, I0, I1, Update("s", load("x", float32, (I, 1)))),
        Store("out", at(), Ref("s", float32)),
    )
    kernel = Kernel("chain", (Buffer("x", float32, "in"), Buffer("out", float32, "out")), (), body)
    x = values(rng(), float32, 100)
    actual = agree(kernel, {"x": x, "out": np.zeros(1, np.float32)}, {}, 0, 100)["out"][0]
    expected = np.float32(0)
    for element in x:
        expected = expected + element
    assert actual == expected


def test_three_passes_over_a_row() -> None:
    """The shape of a normalized row: maximum, sum of a function, quotient."""
    x = load("x", float32, (I, N), (J, 1))
    below = op(scalar.sub, x, Ref("top", float32))
    term = op(scalar.div, ONE, op(scalar.add, ONE, op(scalar.mul, below, below)))
    out = at((I, N), (J, 1))
    scaled = op(scalar.mul, Load("out", out, float32), Ref("scale", float32))
    body = seq(
        I, I0, I1,
        Acc("top", "max", float32),
        vec(J, J0, J1, Update("top", x)),
        Acc("sum", "sum", float32),
        vec(J, J0, J1, Let("term", term), Store("out", out, Ref("term", float32)), Update("sum", Ref("term", float32))),
        Let("scale", op(scalar.div, ONE, Ref("sum", float32))),
        vec(J, J0, J1, Store("out", out, scaled)),
    )  # fmt: skip
    kernel = Kernel("rows", (Buffer("x", float32, "in"), Buffer("out", float32, "inout")), (N,), (body,))
    native = Native(kernel)
    for n in (1, 7, 16, 37, 64):
        x_array = values(rng(), float32, 5 * n)
        actual = agree_native(native, {"x": x_array, "out": np.zeros(5 * n, np.float32)}, {"n": n}, 0, 5, 0, n)["out"]
        exact = x_array.reshape(5, n).astype(np.float64)
        exact = 1 / (1 + (exact - exact.max(axis=1, keepdims=True)) ** 2)
        np.testing.assert_allclose(actual.reshape(5, n), exact / exact.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("dtype", [float32, int64, dtypes.bfloat16, dtypes.uint8], ids=lambda d: d.name)
@pytest.mark.parametrize("columns", [J1, 21])
def test_columns(dtype: DType, columns: Bound) -> None:
    walk = seq(I, I0, I1, Update("s", load("x", dtype, (I, 43), (J, 1))))
    begin = J0 if columns is J1 else 0
    body = vec(J, begin, columns, Acc("s", "sum", dtype), walk, Store("out", at((J, 1)), Ref("s", dtype)))
    kernel = Kernel("columns", (Buffer("x", dtype, "in"), Buffer("out", dtype, "out")), (), (body,))
    arrays = {"x": values(rng(), dtype, 9 * 43), "out": np.zeros(43, dtype.numpy)}
    native = Native(kernel)
    for block in [(0, 9, 0, 43), (2, 8, 5, 21), (3, 3, 0, 43), (0, 1, 0, 16)]:
        agree_native(native, arrays, {}, *block)


def test_the_middle_of_three_axes() -> None:
    r, plane = Param("r"), Param("plane")
    walk = seq(K, 0, r, Update("m", load("x", float32, (I, plane), (K, 19), (J, 1))))
    first = op(scalar.mul, Ref("m", float32), load("x", float32, (I, plane), (J, 1)))
    columns = vec(J, J0, J1, Acc("m", "max", float32), walk, Store("out", at((I, 19), (J, 1)), first))
    body = seq(I, I0, I1, columns)
    kernel = Kernel("middle", (Buffer("x", float32, "in"), Buffer("out", float32, "out")), (r, plane), (body,))
    x = values(rng(), float32, 4 * 6 * 19)
    actual = agree(kernel, {"x": x, "out": np.zeros(4 * 19, np.float32)}, {"r": 6, "plane": 6 * 19}, 0, 4, 0, 19)["out"]
    cube = x.reshape(4, 6, 19)
    np.testing.assert_array_equal(actual.reshape(4, 19), cube.max(axis=1) * cube[:, 0])


# --- gathers and scatters


def test_rows_named_by_an_index() -> None:
    row = Load("rows", at((I, 1)), int32)
    table = Load("table", at((J, 1), gathered=((row, Param("n")),)), float32)
    body = seq(I, I0, I1, vec(J, J0, J1, Store("out", at((I, N), (J, 1)), table)))
    buffers = (Buffer("rows", int32, "in"), Buffer("table", float32, "in"), Buffer("out", float32, "out"))
    rows, x = rng().integers(0, 11, 6).astype(np.int32), values(rng(), float32, 11 * 20)
    arrays = {"rows": rows, "table": x, "out": np.zeros(6 * 20, np.float32)}
    actual = agree(Kernel("take", buffers, (N,), (body,)), arrays, {"n": 20}, 0, 6, 0, 20)["out"]
    np.testing.assert_array_equal(actual.reshape(6, 20), x.reshape(11, 20)[rows])


@pytest.mark.parametrize("index_dtype", [int32, int64, dtypes.uint8], ids=lambda d: d.name)
@pytest.mark.parametrize("dtype", [float32, bool_, dtypes.float16, float64], ids=lambda d: d.name)
def test_elements_named_by_an_index_of_each_lane(index_dtype: DType, dtype: DType) -> None:
    chosen = Load("places", at((J, 1)), index_dtype)
    value = Load("x", at((J, 2), offset=1, gathered=((chosen, 3),)), dtype)
    body = vec(J, J0, J1, Store("out", at((J, 1)), value))
    buffers = (Buffer("places", index_dtype, "in"), Buffer("x", dtype, "in"), Buffer("out", dtype, "out"))
    native = Native(Kernel("pick", buffers, (), (body,)))
    arrays = {"places": rng().integers(0, 30, 40).astype(index_dtype.numpy), "x": values(rng(), dtype, 200)}
    for n in range(0, 40, 3):
        agree_native(native, {**arrays, "out": np.zeros(40, dtype.numpy)}, {}, 0, 1, 0, n)


@pytest.mark.parametrize("dtype", [float32, bool_, dtypes.bfloat16], ids=lambda d: d.name)
def test_of_lanes_that_store_to_one_place_the_last_wins(dtype: DType) -> None:
    place = Load("places", at((J, 1)), int64)
    body = vec(
        J,
        J0,
        J1,
        Store("out", at(gathered=((place, 1),)), load("x", dtype, (J, 1))),
        Store("last", at(), load("x", dtype, (J, 1))),
    )
    buffers = (
        Buffer("places", int64, "in"),
        Buffer("x", dtype, "in"),
        Buffer("out", dtype, "out"),
        Buffer("last", dtype, "out"),
    )
    native = Native(Kernel("put", buffers, (), (body,)))
    arrays = {"places": rng().integers(0, 7, 40), "x": values(rng(), dtype, 40), "out": np.zeros(7, dtype.numpy)}
    for n in range(40):
        agree_native(native, {**arrays, "last": np.zeros(1, dtype.numpy)}, {}, 0, 1, 0, n)


# --- nothing outside the arrays is touched


@pytest.mark.parametrize("dtype", [float32, float64, bool_, dtypes.int16, dtypes.bfloat16], ids=lambda d: d.name)
@pytest.mark.parametrize("stride", [1, 3])
def test_no_lane_touches_a_byte_after_the_array(dtype: DType, stride: int) -> None:
    size = mmap.PAGESIZE
    pages = [mmap.mmap(-1, 2 * size) for _ in range(2)]
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    edges = [ctypes.addressof(ctypes.c_char.from_buffer(page)) + size for page in pages]
    for edge in edges:
        assert protect(edge, size, 0) == 0
    known = [Native(strided_copy(dtype, stride, 0, n)) for n in (3, 13)]
    native = Native(strided_copy(dtype, stride, J0, J1))
    for n in range(1, 35):
        arrays = {}
        for name, edge in zip(("x", "out"), edges, strict=True):
            count = (n - 1) * stride + 1
            memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(edge - count * dtype.itemsize)
            arrays[name] = np.frombuffer(memory, dtype.numpy)
        arrays["x"][:] = values(rng(), dtype, len(arrays["x"]))
        for kernel in [native, *[k for k, length in zip(known, (3, 13), strict=True) if length == n]]:
            arrays["out"][:] = dtype.numpy.type(0)
            kernel(arrays, {}, 0, 1, 0, n)
            assert arrays["out"][::stride].tobytes() == arrays["x"][::stride].tobytes()
    for edge in edges:
        assert protect(edge, size, mmap.PROT_READ | mmap.PROT_WRITE) == 0


def strided_copy(dtype: DType, stride: int, begin: Bound, end: Bound) -> Kernel:
    body = vec(J, begin, end, Store("out", at((J, stride)), load("x", dtype, (J, stride))))
    return Kernel("strided", (Buffer("x", dtype, "in"), Buffer("out", dtype, "out")), (), (body,))
