"""Single rules of the Array API: special cases, zero-sized masks, operands of unlike dtypes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ShapeError

INF = math.inf


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_floor_divide_with_infinity_is_the_floor_of_the_quotient(dtype: str) -> None:
    x = rn.asarray([INF, INF, -INF, -INF, 3.0, -3.0, 3.0, INF, INF, 7.0], dtype=dtype)
    y = rn.asarray([2.0, -2.0, 2.0, -2.0, -INF, INF, INF, INF, 0.0, -2.0], dtype=dtype)
    expected = np.array([INF, -INF, -INF, INF, -0.0, -0.0, 0.0, np.nan, INF, -4.0])
    for device in ("cpu", "interpreter"):
        quotient = (x.to(device) // y.to(device)).numpy()
        np.testing.assert_array_equal(quotient, expected)
        np.testing.assert_array_equal(np.signbit(quotient[4:7]), [True, True, False])


def test_masks_of_size_zero_choose_nothing() -> None:
    x = rn.ones((3, 2))
    for mask, shape in (((0,), (0, 2)), ((3, 0), (0,)), ((0, 2), (0,))):
        chooses = rn.zeros(mask, dtype="bool")
        assert x[chooses].shape == shape
        x[chooses] = 5.0
        assert x.tolist() == [[1.0, 1.0]] * 3
    with pytest.raises(IndexError, match="does not fit"):
        x[rn.zeros((2,), dtype="bool")]


def test_vecdot_does_not_broadcast_what_it_sums_over() -> None:
    with pytest.raises(ShapeError, match=r"\[vecdot\] axis -1 must have the same size in both"):
        rn.vecdot(rn.ones(1), rn.ones(3))
    assert rn.vecdot(rn.ones((2, 3)), rn.ones(3)).tolist() == [3.0, 3.0]


def test_solve_promotes() -> None:
    assert rn.linalg.solve(rn.eye(2, dtype="float64"), rn.ones(2)).dtype is rn.float64


def test_unique_and_isin() -> None:
    assert rn.unique_all(rn.asarray(np.array([2j, 1j, 2j], np.complex64))).values.tolist() == [1j, 2j]
    assert rn.isin(0, rn.asarray([1, 0])).item() is True
    assert rn.isin(rn.asarray([True, False]), rn.asarray([1, 2])).tolist() == [True, False]


def test_tanh_of_infinity_has_a_signed_zero() -> None:
    z = rn.tanh(rn.asarray(np.array([INF + 2j, INF - 2j], np.complex64))).numpy()
    np.testing.assert_array_equal(z.real, [1, 1])
    assert np.signbit(z.imag).tolist() == [False, True]


def test_pinv_with_a_tolerance_for_each_matrix() -> None:
    x = np.stack([np.diag([1.0, 0.1]), np.diag([1.0, 0.1])])
    inverse = rn.linalg.pinv(rn.asarray(x), rtol=rn.asarray([0.5, 0.01], dtype="float64"))
    np.testing.assert_allclose(inverse.numpy(), [np.diag([1.0, 0.0]), np.diag([1.0, 10.0])], atol=1e-12)
    assert rn.linalg.pinv(rn.ones((2, 0, 3)), rtol=rn.asarray([0.5, 0.5])).shape == (2, 3, 0)


def test_expand_leaves_axes_of_size_minus_one() -> None:
    assert rn.ones((2, 3, 1)).expand(-1, -1, 5).shape == (2, 3, 5) and rn.ones(3).expand(2, -1).shape == (2, 3)
    with pytest.raises(ShapeError):
        rn.ones(3).expand(-1, 3)


def test_diff_has_the_arguments_of_numpy_and_pytorch() -> None:
    x = np.array([[1.0, 4.0, 9.0, 16.0]])
    assert rn.diff(rn.asarray(x), 2).tolist() == np.diff(x, 2).tolist()
    assert rn.diff(rn.asarray(x), axis=0).shape == (0, 4)
