"""Promotion, broadcasting, Python scalars and axes; and the sentence each mistake is answered with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import runnel.ops as ops
from runnel.core.dtypes import FLOATS, REAL, DType, bool_, float16, float32, float64, int64, promote, uint8
from runnel.core.errors import AxisError, DTypeError, ShapeError

from .values import ArrayValue, check_grad


def V(x: Any, dtype: DType | None = None) -> ArrayValue:
    return ArrayValue(np.asarray(x) if dtype is None else np.asarray(x).astype(dtype.numpy))


@pytest.mark.parametrize("a", REAL)
@pytest.mark.parametrize("b", REAL)
def test_two_arrays_meet_in_the_promoted_dtype(a: DType, b: DType) -> None:
    x, y = V([1, 0], a), V([1, 1], b)
    assert ops.where(V([True, False]), x, y).dtype is promote(a, b)
    assert ops.equal(x, y).dtype is bool_
    assert ops.less(x, y).array.tolist() == [False, True]
    if promote(a, b) is not bool_:
        assert ops.add(x, y).dtype is promote(a, b)
        expected = promote(a, b) if promote(a, b).is_float else float32
        assert ops.divide(x, y).dtype is expected


def test_python_scalars_take_the_dtype_of_the_array() -> None:
    assert ops.add(V([1], float16), 2.5).dtype is float16
    assert ops.add(2, V([1], float64)).dtype is float64
    assert ops.multiply(V([3]), 0.5).dtype is float32
    assert ops.add(V([True]), 1).dtype is int64
    assert ops.exp(V([1])).dtype is float32
    assert ops.add(np.array([1.0]), V([1], float32)).dtype is float64
    assert ops.subtract(1, V(np.ones((2, 3)))).array.tolist() == np.zeros((2, 3)).tolist()
    weak = V(2.0)
    weak.weak = True
    assert ops.multiply(weak, V([[1.0]], float32)).dtype is float32
    assert ops.multiply(weak, V([[3]])).dtype is float32
    assert ops.multiply(weak, 2).dtype is float64


def test_negative_zero_is_a_constant_of_its_own() -> None:
    x = V([-0.0])
    assert np.signbit(ops.multiply(ops.add(x, 0.0), 1.0).array) == [False]
    assert np.signbit(ops.add(x, -0.0).array) == [True]


@settings(deadline=None, max_examples=60)
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3, min_side=0))
def test_operands_broadcast_and_gradients_come_back(shapes: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.5, 2.0, s) for s in shapes.input_shapes)
    for function, oracle in ((ops.multiply, np.multiply), (ops.subtract, np.subtract), (ops.divide, np.divide)):
        np.testing.assert_array_equal(function(V(x), V(y)).array, oracle(x, y))
        check_grad(function, x, y)


@settings(deadline=None, max_examples=60)
@given(hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=5), elements=st.floats(-9, 9)), st.data())
def test_basic_indexing_is_that_of_numpy(x: Any, data: Any) -> None:
    key = data.draw(hnp.basic_indices(x.shape, allow_newaxis=True))
    actual = ops.getitem(V(x), key)
    np.testing.assert_array_equal(actual.array, x[key])
    check_grad(lambda v: ops.getitem(v, key), x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_halves_are_added_up_in_float32(dtype: DType) -> None:
    ones = V(np.ones((1, 4096)), dtype)
    assert ops.sum(ones, 1).array == 4096 and ops.sum(ones).dtype is dtype
    assert ops.matmul(ones, ops.transpose(ones)).array == 4096
    assert ops.mean(ones).array == 1


def test_sums_of_integers_are_wide() -> None:
    assert ops.sum(V([200, 100], uint8)).array == 300
    assert ops.sum(V([True, True])).dtype is int64
    assert ops.sum(V([1.5, 1.5], float16), dtype=float64).dtype is float64
    assert ops.matmul(V([[2**40]]), V([[2**20]])).array == 2**60
    assert ops.pow(V([3, -2]), 5).array.tolist() == [243, -32]


MISTAKES: list[tuple[Any, type[Exception], str]] = [
    (lambda: ops.add(V(np.ones((3, 4))), V(np.ones((5, 4)))), ShapeError,
     r"\[add\] operand shapes \(3, 4\) and \(5, 4\)"),
    (lambda: ops.matmul(V(np.ones((3, 4))), V(np.ones((5, 6)))), ShapeError,
     r"\[matmul\] operand shapes \(3, 4\) and \(5, 6\) do not match: the last axis of x \(4\) must equal the second"),
    (lambda: ops.matmul(V(1.0), V([1.0])), ShapeError, "use multiply"),
    (lambda: ops.subtract(V([True]), V([True])), DTypeError, r"\[sub\] does not take bool"),
    (lambda: ops.bitwise_and(V([1.0]), V([1.0])), DTypeError, r"\[and\] does not take float64"),
    (lambda: ops.add(1, 2.0), TypeError, r"\[add\] needs a tensor among its operands, got int, float"),
    (lambda: ops.add(V([1]), [1]), TypeError, r"\[add\] takes tensors, numbers and NumPy arrays; got list"),
    (lambda: ops.add(V([1], uint8), 300), DTypeError, "300 does not fit uint8"),
    (lambda: ops.sum(V([1.0]), axis=1), AxisError, r"\[sum\] axis 1 lies outside an array of 1 dimensions"),
    (lambda: ops.sum(V([[1.0]]), axis=(0, -2)), AxisError, "twice"),
    (lambda: ops.reshape(V(np.ones(6)), (4, -1)), ShapeError, r"\[reshape\] shape \(6,\) has 6 elements"),
    (lambda: ops.max(V(np.ones((0, 2))), 0), ShapeError, r"\[max\] axes \(0,\)"),
    (lambda: ops.concat([V(np.ones((2, 3))), V(np.ones((2, 4)))]), ShapeError, r"\[concat\] shapes"),
    (lambda: ops.getitem(V([1.0]), 1), AxisError, r"\[getitem\] index 1 lies outside axis 0"),
    (lambda: ops.getitem(V([1.0]), (0, 0)), AxisError, r"\[getitem\] 2 indices"),
    (lambda: ops.cross_entropy(V(np.ones((3, 4))), V([0, 1])), ShapeError, r"they need \(3,\)"),
    (lambda: ops.broadcast_to(V(np.ones((2, 3))), (2, 2)), ShapeError, r"\[broadcast\] shape \(2, 3\) cannot become"),
    (lambda: ops.squeeze(V(np.ones((2, 1))), 0), ShapeError, r"\[squeeze\] axis 0 of shape \(2, 1\) has size 2"),
    (lambda: ops.mse_loss(V([1.0]), V([1.0]), reduction="avg"), ValueError, "reduction is 'mean', 'sum' or 'none'"),
    (lambda: ops.clamp(V([1.0])), ValueError, r"\[clamp\] min or max must be given"),
    (lambda: ops.scatter(V([1.0]), 0, V([0]), V([1])), DTypeError, r"\[scatter\] operands must have one dtype"),
    (lambda: ops.index_add(V([1.0]), 0, V([0]), V([1])), DTypeError, r"\[index_add\] operands must have one dtype"),
]  # fmt: skip


@pytest.mark.parametrize("mistake, error, message", MISTAKES)
def test_mistakes_are_answered_in_one_sentence(mistake: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mistake()
