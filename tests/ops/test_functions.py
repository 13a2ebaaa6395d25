"""The functions composed of primitives: values against NumPy and SciPy in float64, gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import runnel.ops as ops

from .values import ArrayValue, check_grad, grad

RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4))
Y = RNG.normal(size=(3, 4))
P = RNG.uniform(0.1, 0.9, (3, 4))
LABELS = np.array([2, 0, 3])


def V(x: Any) -> ArrayValue:
    return ArrayValue(np.asarray(x))


def softmax(x: Any, axis: int = -1) -> Any:
    return sp.softmax(x, axis)


def norm2(x: Any) -> Any:
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c**2).mean(-1, keepdims=True) + 1e-5)


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "square": (ops.square, np.square, (X,)),
    "reciprocal": (ops.reciprocal, np.reciprocal, (P,)),
    "rsqrt": (ops.rsqrt, lambda x: 1 / np.sqrt(x), (P,)),
    "log10": (ops.log10, np.log10, (P,)),
    "pow_3": (lambda x: ops.pow(x, 3), lambda x: x**3, (X,)),
    "pow_-2": (lambda x: ops.pow(x, -2), lambda x: x**-2.0, (P,)),
    "pow_0": (lambda x: ops.pow(x, 0), lambda x: x**0, (X,)),
    "pow_2.5": (lambda x: ops.pow(x, 2.5), lambda x: x**2.5, (P,)),
    "scalar_pow": (lambda x: ops.pow(2.0, x), lambda x: 2.0**x, (X,)),
    "mean": (lambda x: ops.mean(x, 0), lambda x: x.mean(0), (X,)),
    "var": (lambda x: ops.var(x, 1, correction=1), lambda x: x.var(1, ddof=1), (X,)),
    "std": (lambda x: ops.std(x, (0, 1), keepdims=True), lambda x: x.std(keepdims=True), (X,)),
    "max": (lambda x: ops.max(x, -1), lambda x: x.max(-1), (X,)),
    "prod": (lambda x: ops.prod(x, 0), lambda x: x.prod(0), (X,)),
    "logsumexp": (lambda x: ops.logsumexp(x, 1), lambda x: sp.logsumexp(x, 1), (X,)),
    "softmax": (ops.softmax, softmax, (X,)),
    "softmax_0": (lambda x: ops.softmax(x, 0), lambda x: softmax(x, 0), (X,)),
    "log_softmax": (ops.log_softmax, lambda x: sp.log_softmax(x, -1), (X,)),
    "norm": (lambda x: ops.norm(x, axis=1), lambda x: np.linalg.norm(x, axis=1), (X,)),
    "norm_1": (lambda x: ops.norm(x, 1, 1), lambda x: np.linalg.norm(x, 1, axis=1), (X,)),
    "norm_3": (lambda x: ops.norm(x, 3, 0), lambda x: np.linalg.norm(x, 3, axis=0), (X,)),
    "norm_inf": (lambda x: ops.norm(x, np.inf, 1), lambda x: np.linalg.norm(x, np.inf, axis=1), (X,)),
    "layer_norm": (lambda x, w, b: ops.layer_norm(x, 4, w, b), lambda x, w, b: norm2(x) * w + b, (X, Y[0], Y[1])),
    "rms_norm": (ops.rms_norm, lambda x: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6), (X,)),
    "clip": (lambda x: ops.clip(x, -0.5, 0.7), lambda x: np.clip(x, -0.5, 0.7), (X,)),
    "leaky_relu": (ops.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), (X,)),
    "elu": (ops.elu, lambda x: np.where(x > 0, x, np.expm1(x)), (X,)),
    "selu": (ops.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), (X,)),
    "gelu": (ops.gelu, lambda x: x * sp.ndtr(x), (X,)),
    "gelu_tanh": (
        lambda x: ops.gelu(x, "tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), (X,),
    ),
    "silu": (ops.silu, lambda x: x * sp.expit(x), (X,)),
    "softplus": (lambda x: ops.softplus(x, 2.0), lambda x: np.logaddexp(0, 2 * x) / 2, (X,)),
    "log_sigmoid": (ops.log_sigmoid, sp.log_expit, (X,)),
    "mish": (ops.mish, lambda x: x * np.tanh(np.logaddexp(0, x)), (X,)),
    "hardtanh": (ops.hardtanh, lambda x: np.clip(x, -1, 1), (X,)),
    "hardswish": (ops.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6, (X,)),
    "glu": (ops.glu, lambda x, y: x * sp.expit(y), (X, Y)),
    "mse_loss": (ops.mse_loss, lambda x, y: ((x - y) ** 2).mean(), (X, Y)),
    "l1_loss": (lambda x, y: ops.l1_loss(x, y, reduction="sum"), lambda x, y: np.abs(x - y).sum(), (X, Y)),
    "smooth_l1_loss": (
        lambda x, y: ops.smooth_l1_loss(x, y, reduction="none", beta=0.8),
        lambda x, y: np.where(abs(x - y) < 0.8, (x - y) ** 2 / 1.6, abs(x - y) - 0.4), (X, Y),
    ),
    "huber_loss": (lambda x, y: ops.huber_loss(x, y, delta=0.8), lambda x, y: sp.huber(0.8, x - y).mean(), (X, Y)),
    "bce": (ops.binary_cross_entropy, lambda p, t: -(t * np.log(p) + (1 - t) * np.log(1 - p)).mean(), (P, P[::-1])),
    "bce_logits": (
        ops.binary_cross_entropy_with_logits, lambda x, t: (np.logaddexp(0, x) - x * t).mean(), (X, P),
    ),
    "bce_logits_weighted": (
        lambda x, t: ops.binary_cross_entropy_with_logits(x, t, pos_weight=V(P[0])),
        lambda x, t: -(P[0] * t * sp.log_expit(x) + (1 - t) * sp.log_expit(-x)).mean(), (X, P),
    ),
    "kl_div": (
        lambda x, t: ops.kl_div(x, t, reduction="batchmean"), lambda x, t: (t * (np.log(t) - x)).sum() / 3, (X, P)
    ),
    "linear": (ops.linear, lambda x, w, b: x @ w.T + b, (X, Y, Y[0, :3])),
    "matmul_vectors": (ops.matmul, np.matmul, (X[0], Y[0])),
    "matmul_left_vector": (ops.matmul, np.matmul, (X[0], Y.T)),
    "matmul_right_vector": (ops.matmul, np.matmul, (X, Y[0])),
    "matmul_batch": (ops.matmul, np.matmul, (RNG.normal(size=(2, 1, 3, 4)), RNG.normal(size=(5, 4, 2)))),
    "matmul_rows": (ops.matmul, np.matmul, (RNG.normal(size=(2, 3, 4)), Y.T)),
    "outer": (ops.outer, np.outer, (X[0], Y[1])),
    "vecdot": (ops.vecdot, lambda x, y: (x * y).sum(-1), (X, Y)),
    "tensordot": (
        lambda x, y: ops.tensordot(x, y, ((2, 0), (1, 2))), lambda x, y: np.tensordot(x, y, ((2, 0), (1, 2))),
        (RNG.normal(size=(2, 3, 4)), RNG.normal(size=(5, 4, 2))),
    ),
    "getitem": (
        lambda x: ops.getitem(x, (slice(None, None, -2), None, 1)), lambda x: x[::-2, None, 1], (X,),
    ),
    "getitem_ellipsis": (lambda x: ops.getitem(x, (..., slice(3, 0, -1))), lambda x: x[..., 3:0:-1], (X,)),
    "pad": (lambda x: ops.pad(x, ((1, 0), (2, 3)), 1.5),
            lambda x: np.pad(x, ((1, 0), (2, 3)), constant_values=1.5), (X,)),
    "stack": (lambda x, y: ops.stack([x, y], 1), lambda x, y: np.stack([x, y], 1), (X, Y)),
    "split": (lambda x: ops.split(x, 3, 1)[1], lambda x: x[:, 3:], (X,)),
    "roll": (lambda x: ops.roll(x, 5, 1), lambda x: np.roll(x, 5, 1), (X,)),
    "flip": (ops.flip, np.flip, (X,)),
    "moveaxis": (lambda x: ops.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), (X,)),
    "flatten": (ops.flatten, np.ravel, (X,)),
    "take": (lambda x: ops.take(x, V([[3, -1], [0, 0]]), 1), lambda x: x[:, [[3, -1], [0, 0]]], (X,)),
    "take_along_one": (
        lambda x: ops.take_along_axis(x, V([[2], [-1], [0]])),
        lambda x: np.take_along_axis(x, np.array([[2], [-1], [0]]), 1),
        (X,),
    ),
    "take_along_many": (
        lambda x: ops.take_along_axis(x, V([[2, 1, 1, 0], [0, 2, 2, 2]]), 0),
        lambda x: np.take_along_axis(x, np.array([[2, 1, 1, 0], [0, 2, 2, 2]]), 0), (X,),
    ),
    "index_add": (
        lambda x, u: ops.index_add(x, 0, V([1, 1]), u),
        lambda x, u: x + np.array([0, 1, 0])[:, None] * u.sum(0), (X, Y[:2]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(name: str) -> None:
    function, oracle, arrays = CASES[name]
    actual = function(*map(V, arrays)).array
    np.testing.assert_allclose(actual, oracle(*arrays), rtol=1e-9, atol=1e-12)
    assert actual.shape == np.shape(oracle(*arrays))
    check_grad(function, *arrays)


def log_probabilities(weight: Any) -> Any:
    return weight * -sp.log_softmax(X, 1)[np.arange(3), LABELS]


@pytest.mark.parametrize("labels", [LABELS, LABELS.astype(np.int32), LABELS.astype(np.uint8)])
def test_cross_entropy_of_labels(labels: Any) -> None:
    losses = log_probabilities(np.ones(3))
    np.testing.assert_allclose(ops.cross_entropy(V(X), V(labels)).array, losses.mean(), rtol=1e-12)
    np.testing.assert_allclose(ops.cross_entropy(V(X), V(labels), reduction="none").array, losses, rtol=1e-12)
    np.testing.assert_allclose(ops.nll_loss(ops.log_softmax(V(X)), V(labels)).array, losses.mean(), rtol=1e-12)
    check_grad(lambda x: ops.cross_entropy(x, V(labels)), X)


def test_cross_entropy_with_weights_ignored_labels_and_smoothing() -> None:
    weight = P[0]
    logp = sp.log_softmax(X, 1)
    labels = np.array([2, -100, 3])
    w = np.array([weight[2], 0, weight[3]])
    hard = (w * -logp[np.arange(3), labels * (labels >= 0)]).sum() / w.sum()
    actual = ops.cross_entropy(V(X), V(labels), V(weight))
    np.testing.assert_allclose(actual.array, hard, rtol=1e-12)
    smooth = ((-logp * weight).sum(1) * (labels >= 0)).sum() / w.sum() / 4
    actual = ops.cross_entropy(V(X), V(labels), V(weight), label_smoothing=0.1)
    np.testing.assert_allclose(actual.array, 0.9 * hard + 0.1 * smooth, rtol=1e-12)
    check_grad(lambda x: ops.cross_entropy(x, V(labels), V(weight), label_smoothing=0.1), X)


def test_cross_entropy_of_probabilities_and_of_more_axes() -> None:
    t = softmax(Y)
    np.testing.assert_allclose(ops.cross_entropy(V(X), V(t)).array, -(t * sp.log_softmax(X, 1)).sum(1).mean())
    rng = np.random.default_rng(6)
    images = rng.normal(size=(2, 3, 4, 5))
    labels = rng.integers(0, 3, (2, 4, 5))
    expected = -np.take_along_axis(sp.log_softmax(images, 1), labels[:, None], 1).mean()
    np.testing.assert_allclose(ops.cross_entropy(V(images), V(labels)).array, expected)
    np.testing.assert_allclose(ops.cross_entropy(V(X[0]), V(2)).array, -sp.log_softmax(X[0])[2])


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_of_extremes(name: str) -> None:
    x = np.array([[1.0, 3.0, 3.0], [np.nan, 5.0, np.nan], [0.0, -1.0, -1.0], [7.0, np.nan, 9.0]])
    actual, expected = getattr(ops, name), getattr(np, name)
    for axis in (0, 1, None):
        np.testing.assert_array_equal(actual(V(x), axis).array, expected(x, axis))
    assert actual(V(np.arange(6).reshape(2, 3)), 1, keepdims=True).shape == (2, 1)


def gradient(function: Any, x: Any) -> list[float]:
    value = V(np.array(x, np.float64))
    return [float(v) for v in grad(function(value), value)[0].array]


def test_gradients_at_kinks_and_ties() -> None:
    assert gradient(ops.abs, [0.0]) == [0.0]
    assert gradient(ops.relu, [0.0]) == [0.0]
    assert gradient(lambda x: ops.maximum(x, 1.0), [1.0, 2.0, 0.0]) == [0.5, 1.0, 0.0]
    assert gradient(lambda x: ops.minimum(x, 1.0), [1.0, 2.0, 0.0]) == [0.5, 0.0, 1.0]
    assert gradient(ops.max, [1.0, 3.0, 3.0]) == [0.0, 0.5, 0.5]
    assert gradient(lambda x: ops.clip(x, 0.0, 1.0), [0.0, 1.0, 2.0, -1.0]) == [1.0, 1.0, 0.0, 0.0]
    assert gradient(ops.hardtanh, [1.0, -1.0, 0.5]) == [0.0, 0.0, 1.0]
    assert gradient(ops.sqrt, [0.0]) == [np.inf]
    assert gradient(ops.norm, [0.0, 0.0]) == [0.0, 0.0]
    assert gradient(ops.prod, [0.0, 2.0, 3.0]) == [6.0, 0.0, 0.0]
    assert gradient(ops.prod, [0.0, 2.0, 0.0]) == [0.0, 0.0, 0.0]
    assert gradient(lambda x: ops.pow(x, V(np.array([0.0, 2.0]))), [0.0, 0.0]) == [0.0, 0.0]
    assert gradient(lambda x: ops.pow(V(np.array([0.0, 2.0])), x), [2.0, 0.0]) == [0.0, np.log(2.0)]
    assert gradient(lambda x: ops.stop_gradient(x), [1.0]) == [0.0]
    assert gradient(lambda p: ops.binary_cross_entropy(p, V([0.0, 1.0]), reduction="sum"), [0.0, 1.0]) == [1.0, -1.0]
    assert gradient(ops.softplus, [0.0]) == [0.5]


def test_extreme_values_do_not_overflow() -> None:
    x = V(np.array([-1e4, 0.0, 1e4]))
    np.testing.assert_allclose(ops.softmax(x).array, [0, 0, 1])
    np.testing.assert_allclose(ops.softplus(x).array, [0, np.log(2), 1e4])
    np.testing.assert_allclose(ops.log_sigmoid(x).array, [-1e4, -np.log(2), 0])
    assert ops.logsumexp(V(np.array([-np.inf, -np.inf]))).array == -np.inf
    np.testing.assert_array_equal(ops.isfinite(V(np.array([np.nan, np.inf, 1.0]))).array, [False, False, True])
