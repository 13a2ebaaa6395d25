"""Gradients of draws with respect to the parameters of their distribution, by the quantile function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import runnel as rn
import runnel.compat.torch as torch
from runnel.random.incomplete_gamma import gammainc, gammaincc

KEY = rn.Generator(6).next_key()


def gradients(function: Callable[..., rn.Tensor], *parameters: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    inputs = [rn.tensor(np.asarray(p, np.float64), requires_grad=True) for p in parameters]
    result = function(*inputs)
    result.sum().backward()
    return result.numpy(), [x.grad.numpy() for x in inputs]


@pytest.mark.parametrize(
    "draw", [rn.normal, rn.random.laplace, rn.random.gumbel, rn.random.logistic, rn.random.cauchy, rn.random.uniform]
)
def test_location_and_scale(draw: Callable[..., rn.Tensor]) -> None:
    x, (by_loc, by_scale) = gradients(lambda a, b: draw(a, b, key=KEY), [1.0, 2.0], [3.0, 4.0])
    if draw is rn.random.uniform:
        unit = (x - [1, 2]) / [2, 2]
        expected = 1 - unit, unit
    else:
        expected = np.ones(2), (x - [1, 2]) / [3, 4]
    np.testing.assert_allclose((by_loc, by_scale), expected, rtol=1e-12)


def test_gamma_numbers_move_along_their_quantiles() -> None:
    shape = np.array([0.02, 0.3, 0.99, 1.0, 1.7, 5, 40, 99.9, 100, 3e3, 1e6])
    x, (slope,) = gradients(lambda a: rn.random.standard_gamma(a, key=KEY), shape)
    quantile = sp.gammainc(shape, x)
    h = 1e-4 * shape
    ahead, behind = (sp.gammaincinv(shape + s * h, quantile) for s in (1, -1))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), rtol=2e-6)


def test_means_of_gradients_are_gradients_of_means() -> None:
    def mean_square(a: Any, b: Any) -> rn.Tensor:
        return rn.random.beta(rn.broadcast_to(a, (20000,)), b, key=KEY) ** 2 / 20000

    _, means = gradients(mean_square, 1.5, 2.5)
    a, b, h = 1.5, 2.5, 1e-6

    def moment(a: float, b: float) -> float:
        return a * (a + 1) / ((a + b) * (a + b + 1))

    expected = [(moment(a + h, b) - moment(a - h, b)) / (2 * h), (moment(a, b + h) - moment(a, b - h)) / (2 * h)]
    np.testing.assert_allclose(means, expected, rtol=0.03)


def test_gradients_of_gamma_numbers_in_compiled_functions_and_maps() -> None:
    shape = rn.asarray([0.5, 2.0, 150.0])

    def total(a: Any, key: Any) -> Any:
        return rn.random.gamma(a, 2.0, key=key).sum()

    eager = rn.grad(total)(shape, KEY).numpy()
    np.testing.assert_array_equal(rn.compile(rn.grad(total))(shape, KEY).numpy(), eager)
    keys = rn.split_key(KEY, 3)
    mapped = rn.vmap(lambda k: rn.grad(total)(shape, k))(keys).numpy()
    np.testing.assert_array_equal(mapped, np.stack([rn.grad(total)(shape, k).numpy() for k in keys]))
    by_each = rn.vmap(lambda a: rn.random.gamma(a, 2.0, key=KEY))(shape)
    assert by_each.shape == (3,) and np.isfinite(by_each.numpy()).all()
    _, tangent = rn.jvp(lambda a: total(a, KEY), (shape,), (rn.ones(3),))
    np.testing.assert_allclose(float(tangent), eager.sum(), rtol=1e-5)


def test_incomplete_gamma_function() -> None:
    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(-6, 9, 1000))
    x = a * np.exp(rng.normal(0, 1, 1000) * np.minimum(3, 2 / np.sqrt(a) + 0.3))
    lower, (by_a, by_x) = gradients(gammainc, a, x)
    upper, (down_a, down_x) = gradients(gammaincc, a, x)
    np.testing.assert_allclose(lower, sp.gammainc(a, x), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(upper, sp.gammaincc(a, x), rtol=1e-10, atol=1e-13)
    h = 1e-5 * a
    np.testing.assert_allclose(by_a, (sp.gammainc(a + h, x) - sp.gammainc(a - h, x)) / (2 * h), rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(by_x, np.exp(a * np.log(x) - x - sp.gammaln(a)) / x, rtol=1e-8, atol=1e-300)
    np.testing.assert_allclose((down_a, down_x), (-by_a, -by_x), rtol=1e-12)


def test_ends_of_the_incomplete_gamma_function() -> None:
    a, x = rn.asarray([2.0, 2.0, 0.0, -1.0, np.nan, 2.0, 2.0]), rn.asarray([0.0, np.inf, 1.0, 1.0, 1.0, -1.0, np.nan])
    np.testing.assert_array_equal(gammainc(a, x).numpy(), [0, 1, *[np.nan] * 5])
    np.testing.assert_array_equal(rn.special.gammaincc(a, x).numpy(), [1, 0, *[np.nan] * 5])
    assert torch.igamma(rn.asarray([2, 3]), 1.0).dtype is rn.float32
