"""Distributions of counts. The results are whole numbers in a float dtype, as PyTorch's, or in ``dtype``."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.dtypes import Dtype, float64
from runnel.ops.arguments import Array, Numbers
from runnel.ops.elementwise.gamma import lgamma
from runnel.random.drawing import (
    Draw,
    counted,
    drawn,
    first_accepted,
    open_unit,
    require,
    require_positive,
    require_probability,
    require_scale,
)
from runnel.random.gamma_family import log_standard_gamma
from runnel.tensor.tensor import Tensor

_FEW = 10.0  # mean from which on rejection takes less time than a search


def _number(draw: Draw, count: Any, is_valid: Any) -> Tensor:
    """Return the counts in the dtype of the result; NaN where the parameters are not valid."""
    return draw.result(ops.stop_gradient(ops.where(is_valid, count, float("nan")) if draw.dtype.is_float else count))


def bernoulli(
    p: Numbers, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None, device: Any = None
) -> Array:
    """Draw 1 with probability ``p``, else 0, in the dtype of ``p`` (float32 for a number) or in ``dtype``. ValueError
    unless ``p`` is in [0, 1]."""
    require_probability("bernoulli", p=p)
    draw = drawn("bernoulli", (p,), size, dtype, generator, key, device, floating=False)
    return draw.result(ops.less(ops.uniform(draw.key, draw.shape, draw.wide), draw.parameters[0]))


def poisson(
    lam: Numbers = 1.0,
    size: Any = None,
    *,
    dtype: Dtype = None,
    generator: Any = None,
    key: Any = None,
    device: Any = None,
) -> Tensor:
    """Counts of mean ``lam``. ValueError if it is negative.

    Below a mean of 10 by inversion, else by rejection (W. Hörmann, "The transformed rejection method for generating
    Poisson random variables", 1993, algorithm PTRS).
    """
    require_scale("poisson", lam=lam)
    draw = drawn("poisson", (lam,), size, dtype, generator, key, device, floating=False)
    mean = ops.stop_gradient(draw.in_float64()[0])
    is_valid = ops.logical_and(ops.greater_equal(mean, 0), ops.isfinite(mean))
    return _number(draw, _poisson(draw.key, ops.where(is_valid, mean, 1)), is_valid)


def _poisson(key: Any, mean: Any) -> Any:
    is_few = ops.less(mean, _FEW)
    few, many = ops.where(is_few, mean, 0), ops.where(is_few, _FEW, mean)
    u = ops.uniform(ops.fold_in(key, 0), mean.shape, float64)
    b = ops.sqrt(many) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse_alpha, v_r = 1.1328 / (b - 3.4) + 1.1239, 0.9277 - 3.6224 / (b - 2)

    def attempt(of: Any) -> tuple[Any, Any]:
        k, v, us, squeeze = _proposed(of, a, b, many + 0.43, v_r)
        bound = k * ops.log(many) - many - lgamma(ops.maximum(k, 0) + 1)
        accepts = ops.less_equal(ops.log(v * inverse_alpha / (a / (us * us) + b)), bound)
        return k, ops.logical_or(squeeze, ops.logical_and(ops.greater_equal(k, 0), accepts))

    searched = counted(u, ops.exp(-few), lambda k: few / k)
    return ops.where(is_few, searched, first_accepted(ops.fold_in(key, 1), mean.shape, attempt))


def _proposed(key: Any, a: Any, b: Any, centre: Any, v_r: Any) -> tuple[Any, Any, Any, Any]:
    """Return a proposal of the transformed rejection: the count, v, the distance us, and whether it is accepted at
    once."""
    u = open_unit(key, a.shape, float64) - 0.5
    v = open_unit(key, a.shape, float64, 2)
    us = 0.5 - ops.abs(u)
    k = ops.floor((a * 2 / us + b) * u + centre)
    return k, v, us, ops.logical_and(ops.greater_equal(us, 0.07), ops.less_equal(v, v_r))


def binomial(
    n: Numbers,
    p: Numbers,
    size: Any = None,
    *,
    dtype: Dtype = None,
    generator: Any = None,
    key: Any = None,
    device: Any = None,
) -> Tensor:
    """Draw the number of successes of ``n`` trials with probability ``p`` each. ValueError unless n is a non-negative
    whole number and p a probability.

    Means below 10 are drawn by inversion, others by rejection (W. Hörmann, "The generation of binomial random
    variates", 1993, algorithm BTRS), with the smaller of p and 1 - p.
    """
    require("binomial", "n", n, lambda x: (x >= 0) & (x == x // 1), "must be a whole number that is not negative")
    require_probability("binomial", p=p)
    draw = drawn("binomial", (n, p), size, dtype, generator, key, device, floating=False)
    trials, chance = map(ops.stop_gradient, draw.in_float64())
    is_valid = ops.logical_and(
        ops.logical_and(ops.greater_equal(trials, 0), ops.isfinite(trials)),
        ops.logical_and(ops.greater_equal(chance, 0), ops.less_equal(chance, 1)),
    )
    trials, chance = ops.where(is_valid, trials, 0), ops.where(is_valid, chance, 0.5)
    is_likely = ops.greater(chance, 0.5)
    count = _binomial(draw.key, trials, ops.where(is_likely, 1 - chance, chance))
    return _number(draw, ops.where(is_likely, trials - count, count), is_valid)


def _binomial(key: Any, n: Any, p: Any) -> Any:
    """Draw binomial numbers for p up to ½."""
    is_few = ops.less(n * p, _FEW)
    u = ops.uniform(ops.fold_in(key, 0), n.shape, float64)
    few, rare = ops.where(is_few, n, 0), ops.where(is_few, p, 0)
    odds = rare / (1 - rare)
    searched = counted(u, ops.exp(few * ops.log1p(-rare)), lambda k: (few - k + 1) / k * odds)
    many, chance = ops.where(is_few, 4 * _FEW, n), ops.where(is_few, 0.5, p)
    deviation = ops.sqrt(many * chance * (1 - chance))
    b = deviation * 2.53 + 1.15
    a = b * 0.0248 - 0.0873 + chance * 0.01
    alpha, v_r = (5.1 / b + 2.83) * deviation, 0.92 - 4.2 / b
    mode = ops.floor((many + 1) * chance)
    logit = ops.log(chance / (1 - chance))
    most = lgamma(mode + 1) + lgamma(many - mode + 1)

    def attempt(of: Any) -> tuple[Any, Any]:
        k, v, us, squeeze = _proposed(of, a, b, many * chance + 0.5, v_r)
        is_inside = ops.logical_and(ops.greater_equal(k, 0), ops.less_equal(k, many))
        inside = ops.where(is_inside, k, mode)
        bound = most - lgamma(inside + 1) - lgamma(many - inside + 1) + (inside - mode) * logit
        accepts = ops.less_equal(ops.log(v * alpha / (a / (us * us) + b)), bound)
        return k, ops.logical_and(is_inside, ops.logical_or(squeeze, accepts))

    return ops.where(is_few, searched, first_accepted(ops.fold_in(key, 1), n.shape, attempt))


def geometric(
    p: Numbers, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None, device: Any = None
) -> Tensor:
    """Draw the number of trials of probability ``p`` until the first success, at least 1, by inversion. ValueError
    unless p is in (0, 1]."""
    require("geometric", "p", p, lambda x: (x > 0) & (x <= 1), "must be a probability greater than 0")
    draw = drawn("geometric", (p,), size, dtype, generator, key, device, floating=False)
    chance = ops.stop_gradient(draw.in_float64()[0])
    waits = ops.log(open_unit(draw.key, draw.shape, float64)) / ops.log1p(-chance)
    return draw.result(ops.maximum(ops.ceil(waits), 1))


def negative_binomial(
    n: Numbers,
    p: Numbers,
    size: Any = None,
    *,
    dtype: Dtype = None,
    generator: Any = None,
    key: Any = None,
    device: Any = None,
) -> Tensor:
    """Draw the number of failures of trials with probability ``p`` before ``n`` successes, as in NumPy.

    The result is a Poisson count whose mean is a gamma number of shape n and scale (1 - p)/p. ValueError unless n > 0
    and 0 < p ≤ 1.
    """
    require_positive("negative_binomial", n=n)
    require("negative_binomial", "p", p, lambda x: (x > 0) & (x <= 1), "must be a probability greater than 0")
    draw = drawn("negative_binomial", (n, p), size, dtype, generator, key, device, floating=False)
    successes, chance = map(ops.stop_gradient, draw.in_float64())
    log_mean = log_standard_gamma(successes, ops.fold_in(draw.key, 0)) + ops.log1p(-chance) - ops.log(chance)
    mean = ops.exp(log_mean)
    is_valid = ops.isfinite(mean)
    return _number(draw, _poisson(ops.fold_in(draw.key, 1), ops.where(is_valid, mean, 1)), is_valid)
