"""Sorting: NumPy's stable sort is the oracle, in every dtype, for short and for long rows."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel.compiler.kernels.sorting import SHORT
from runnel.core.errors import AxisError, ShapeError
from runnel.ops.sorting.sort import sort_p

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64",
)  # fmt: skip
Array = np.ndarray[Any, Any]


def order(x: Array, descending: bool = False) -> Array:
    """The stable order along the last axis; NaN is above all numbers."""
    wide = x.astype(np.float64) if x.dtype == ml_dtypes.bfloat16 else x
    if not descending:
        return np.argsort(wide, -1, kind="stable")
    return x.shape[-1] - 1 - np.flip(np.argsort(np.flip(wide, -1), -1, kind="stable"), -1)


def drawn(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Values with many ties, and the ends of the dtype."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x = rng.integers(0, 2 if dtype == "bool" else 20, shape).astype(kind)
    if kind.kind in "iu" and x.size:
        x.flat[rng.integers(0, x.size, 3)] = np.iinfo(kind).min
        x.flat[rng.integers(0, x.size, 3)] = np.iinfo(kind).max
    elif kind.kind != "b" and x.size:
        x = (x - 10).astype(kind)
        for odd in (np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0):
            x.flat[rng.integers(0, x.size, 2)] = odd
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 17, SHORT, SHORT + 1, 700])
def test_every_dtype(dtype: str, n: int) -> None:
    x = drawn(dtype, (3, n))
    for descending in (False, True):
        expected = order(x, descending)
        assert rn.argsort(rn.asarray(x), descending=descending).numpy().tolist() == expected.tolist()
        actual = rn.sort(rn.asarray(x), descending=descending).numpy()
        assert actual.tobytes() == np.take_along_axis(x, expected, -1).tobytes()


@settings(deadline=None, max_examples=40)
@given(
    shape=st.lists(st.integers(0, 6), min_size=1, max_size=3).map(tuple), axis=st.integers(-3, 2) | st.none(),
    descending=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_any_axis(shape: tuple[int, ...], axis: int | None, descending: bool, seed: int) -> None:
    x = drawn("float32", shape, seed)
    if axis is not None and not -len(shape) <= axis < len(shape):
        with pytest.raises(AxisError):
            rn.sort(rn.asarray(x), axis)
        return
    inputs = x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1)
    expected = order(inputs, descending)
    place = -1 if axis is None else axis
    actual = rn.asarray(x).argsort(axis, descending)
    np.testing.assert_array_equal(actual.numpy(), np.moveaxis(expected, -1, place))
    values = rn.asarray(x).sort(axis=axis, descending=descending)
    np.testing.assert_array_equal(values.numpy(), np.moveaxis(np.take_along_axis(inputs, expected, -1), -1, place))


@pytest.mark.parametrize("largest", [True, False])
def test_topk(largest: bool) -> None:
    x = drawn("float32", (4, 5, 9))
    for k in (0, 1, 3, 5):
        values, indices = rn.topk(rn.asarray(x), k, 1, largest)
        expected = np.take(np.moveaxis(order(np.moveaxis(x, 1, -1), largest), -1, 1), range(k), 1)
        np.testing.assert_array_equal(indices.numpy(), expected)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, expected, 1))
    result = rn.asarray(x).topk(2)
    assert result.values.shape == result.indices.shape == (4, 5, 2)
    with pytest.raises(ShapeError, match="k=6 of the 5 elements along axis 1"):
        rn.topk(rn.asarray(x), 6, 1)


@pytest.mark.parametrize("n", [7, SHORT + 40])
def test_gradients_go_where_elements_came_from(n: int) -> None:
    rng = np.random.default_rng(1)
    x, g = rng.permutation(3 * n).reshape(3, n).astype(np.float64), rng.standard_normal((3, n))
    leaf = rn.asarray(x).requires_grad_()
    (rn.sort(leaf, descending=True) * rn.asarray(g)).sum().backward()
    expected = np.zeros_like(x)
    np.put_along_axis(expected, order(x, True), g, -1)
    np.testing.assert_array_equal(leaf.grad.numpy(), expected)
    best = rn.grad(lambda y: rn.topk(y, 2).values.sum())(rn.asarray(x))
    assert best.numpy().sum() == 6 and ((best.numpy() == 1) == (x >= np.sort(x, -1)[:, -2:-1])).all()
    twice = rn.grad(lambda y: (rn.grad(lambda z: (rn.sort(z) ** 3).sum())(y) ** 2).sum())(rn.asarray(x))
    np.testing.assert_allclose(twice.numpy(), 36 * x**3)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_compiled_values_and_positions_come_from_one_node(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNNEL_NUM_THREADS", threads)

    @rn.compile
    def both(x: Any) -> Any:
        return rn.sort(x * 2), rn.argsort(x * 2), rn.topk(x * 2, 3)

    x = rn.asarray(drawn("float32", (40, 300)))
    for compiled, eager in zip(both(x)[:2], (rn.sort(x * 2), rn.argsort(x * 2)), strict=True):
        assert compiled.numpy().tobytes() == eager.numpy().tobytes()
    sorts = [node for node in both.program(x).optimized.nodes if node.op is sort_p]
    assert sorted(node.attrs["descending"] for node in sorts) == [False, True]
    assert all(len(node.avals) == 2 for node in sorts)


def test_in_loops_and_training_steps() -> None:
    x = drawn("float32", (6, 5, 9))
    x[~np.isfinite(x)] = 3.0
    w = rn.nn.Parameter(np.ones(9, np.float32))

    def step(xs: Any) -> Any:
        _, medians = rn.scan(lambda carry, row: (carry, rn.sort(row * w, 0)[2]), rn.zeros(()), xs)
        loss = (medians**2).sum()
        loss.backward()
        grad, w.grad = w.grad, None
        return loss, grad

    for compiled, eager in zip(rn.compile(step)(rn.asarray(x)), step(rn.asarray(x)), strict=True):
        assert compiled.numpy().tobytes() == eager.numpy().tobytes()


def test_what_cannot_be_sorted() -> None:
    with pytest.raises(AxisError):
        rn.sort(rn.asarray(1.0))
    with pytest.raises(AxisError):
        rn.topk(rn.zeros((2, 3)), 1, 2)
