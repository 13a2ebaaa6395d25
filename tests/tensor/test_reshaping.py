"""Methods that give a tensor another shape in place: the handle, its tape, compiled functions, and who is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import DTypeError, GradientError, ShapeError, SideEffectError

X = np.arange(6.0).reshape(2, 3)

CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "t_": (lambda x: x.t_(), lambda x: x.T),
    "transpose_": (lambda x: x.transpose_(0, -1), lambda x: x.T),
    "swapaxes_": (lambda x: x.swapaxes_(1, 0), lambda x: x.T),
    "swapdims_": (lambda x: x.swapdims_(1, 0), lambda x: x.T),
    "unsqueeze_": (lambda x: x.unsqueeze_(1), lambda x: x[:, None]),
    "squeeze_": (lambda x: x.unsqueeze_(1).squeeze_(), lambda x: x),
    "squeeze_of_one": (lambda x: x.unsqueeze_(1).unsqueeze_(0).squeeze_(dim=2), lambda x: x[None]),
    "as_strided_": (lambda x: x.as_strided_((2, 2), (1, 2), 1), lambda x: np.array([[1.0, 3], [2, 4]])),
    "resize_smaller": (lambda x: x.resize_(2, 2), lambda x: x.ravel()[:4].reshape(2, 2)),
    "resize_larger": (lambda x: x.resize_((7,)), lambda x: np.append(x, 0.0)),
    "resize_as_": (lambda x: x.resize_as_(rn.zeros((3, 1))), lambda x: x.ravel()[:3, None]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_handle_gets_another_shape(case: str) -> None:
    change, oracle = CASES[case]
    x = rn.asarray(X)
    earlier, same = x * 1, x
    assert change(x) is same
    np.testing.assert_array_equal(same.numpy(), oracle(X))
    assert same.shape == oracle(X).shape and earlier.shape == (2, 3)
    inside = rn.compile(lambda y: change(y * 1) + 1)(rn.asarray(X))
    np.testing.assert_array_equal(inside.numpy(), oracle(X) + 1)
    weights = rn.asarray(np.cos(np.arange(oracle(X).size)).reshape(oracle(X).shape))

    def loss(y: Any, *, function: Callable[[Any], Any] = change) -> Any:
        return (function(y * 2) * weights).sum()

    positions = oracle(np.arange(6.0).reshape(2, 3))
    expected = np.zeros(6)
    held = positions.size if positions.size <= 6 else 6
    np.add.at(expected, positions.ravel()[:held].astype(int), 2 * weights.numpy().ravel()[:held])
    np.testing.assert_allclose(rn.grad(loss)(rn.asarray(X)).numpy().ravel(), expected)
    np.testing.assert_allclose(rn.vmap(lambda y: change(y * 1))(rn.asarray(X[None])).numpy()[0], oracle(X))


def test_what_was_recorded_before_is_differentiated_by_the_old_shape() -> None:
    leaf = rn.asarray(X).requires_grad_()
    x = leaf * 1
    before = x.sum(axis=0)
    x.t_()
    (before.sum() + (x * rn.asarray(X.T)).sum()).backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), 1 + X)


def test_compiled_functions_see_the_new_shape() -> None:
    outside = rn.asarray(X)
    function = rn.compile(lambda: (outside * 2)[0].sum())
    assert function().item() == 6
    outside.t_()
    assert function().item() == 6 - 6 + 2 * 3


def test_who_keeps_the_shape() -> None:
    with pytest.raises(ShapeError, match=r"\[t_\] the result has shape \(3, 2\), but what is changed in place keeps"):
        rn.nn.Parameter(X).t_()
    with pytest.raises(GradientError, match=r"\[t_\] a leaf that requires a gradient cannot be changed in place"):
        rn.asarray(X).requires_grad_().t_()
    x = rn.asarray(X).requires_grad_()
    with rn.no_grad():
        x.t_()
    (x * 3).sum().backward()
    assert x.shape == x.grad.shape == (3, 2)
    with rn.no_grad(), pytest.raises(GradientError, match=r"\[t_\] the tensor has a gradient of its shape, \(3, 2\)"):
        x.t_()
    outside = rn.asarray(X)

    def change() -> Any:
        return outside.t_()

    with pytest.raises(SideEffectError, match=r"\[t_\] .* a compiled function gives a tensor from outside"):
        rn.compile(change)()
    assert outside.shape == (2, 3)


def test_elements_by_python_functions() -> None:
    x = rn.asarray([1, 2, 3])
    assert x.apply_(lambda v: v * v) is x and x.tolist() == [1, 4, 9]
    assert x.map_(rn.asarray([1, 2, 3]), lambda a, b: a - b).tolist() == [0, 2, 6]
    assert x.map2_(x, x, lambda a, b, c: a + b + c).tolist() == [0, 6, 18]
    with pytest.raises(ShapeError, match=r"\[map_\] the tensors must have the same shape"):
        x.map_(rn.asarray([1]), max)
    y = rn.ones(2)
    assert y.set_(rn.zeros((1, 3))).shape == (1, 3)
    with pytest.raises(DTypeError, match=r"\[set_\] the values must be float32; got int64"):
        y.set_(x)
