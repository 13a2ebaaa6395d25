"""Draw from continuous distributions by a formula of uniform numbers; gradients flow to the parameters."""

from __future__ import annotations

import math
from typing import Any

from runnel import ops
from runnel.core.dtypes import Dtype, float64
from runnel.ops.arguments import Numbers, Operand
from runnel.ops.elementwise.circular import acos
from runnel.ops.elementwise.gamma import ndtr, ndtri
from runnel.random.drawing import Draw, drawn, first_accepted, open_unit, require, require_positive, require_scale
from runnel.tensor.tensor import Tensor


def _placed(draw: Draw, standard: Any, loc: Any, scale: Any) -> Tensor:
    """loc + scale · standard."""
    return draw.result(ops.add(ops.multiply(standard, scale), loc))


def normal(
    mean: Numbers = 0.0, std: Numbers = 1.0, size: Any = None, *, dtype: Dtype = None, generator: Any = None,
    key: Any = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Normal numbers of ``mean`` and deviation ``std``, tensors or numbers (G. Box, M. Muller, "A note on the
    generation of random normal deviates", 1958). ValueError if ``std`` is negative."""
    require_scale("normal", std=std)
    draw = drawn("normal", (mean, std), size, dtype, generator, key, device)
    return _placed(draw, ops.normal(draw.key, draw.shape, draw.wide), *draw.parameters)


def uniform(
    low: Operand = 0.0, high: Operand = 1.0, size: Any = None, *, dtype: Dtype = None, generator: Any = None,
    key: Any = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Uniform numbers from ``low`` up to, but for rounding, not including ``high``."""
    draw = drawn("uniform", (low, high), size, dtype, generator, key, device)
    first, last = draw.parameters
    return _placed(draw, ops.uniform(draw.key, draw.shape, draw.wide), first, last - first)


def lognormal(
    mean: Numbers = 0.0, sigma: Numbers = 1.0, size: Any = None, *, dtype: Dtype = None, generator: Any = None,
    key: Any = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Draw numbers whose logarithms are normal with ``mean`` and deviation ``sigma``. ValueError if ``sigma`` is
    negative."""
    require_scale("lognormal", sigma=sigma)
    draw = drawn("lognormal", (mean, sigma), size, dtype, generator, key, device)
    return draw.result(ops.exp(_placed(draw, ops.normal(draw.key, draw.shape, draw.wide), *draw.parameters)))


def truncated_normal(
    mean: Numbers = 0.0, std: Numbers = 1.0, low: Operand = -2.0, high: Operand = 2.0, size: Any = None, *,
    dtype: Dtype = None, generator: Any = None, key: Any = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Normal numbers of ``mean`` and deviation ``std`` before truncation, given that they lie in [low, high]; by
    inversion in float64, on the side of the mean where probabilities are small numbers. ValueError if ``std`` is not
    positive, or ``high`` not greater than ``low``."""
    require_positive("truncated_normal", std=std)
    require("truncated_normal", "high - low", _difference(high, low), lambda x: x > 0, "must be greater than 0")
    draw = drawn("truncated_normal", (mean, std, low, high), size, dtype, generator, key, device)
    centre, scale, lowest, highest = draw.in_float64()
    a, b = (lowest - centre) / scale, (highest - centre) / scale
    is_above = ops.greater(a, 0)
    near, far = ops.where(is_above, -b, a), ops.where(is_above, -a, b)
    below, upto = ndtr(near), ndtr(far)
    standard = ndtri(below + open_unit(draw.key, draw.shape, float64) * (upto - below))
    standard = ops.minimum(ops.maximum(standard, near), far)
    return draw.result(ops.where(is_above, -standard, standard) * scale + centre)


def _difference(high: Any, low: Any) -> Any:
    return high - low


def exponential(
    scale: Numbers = 1.0, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """Exponential numbers of mean ``scale``, greater than 0. ValueError if ``scale`` is negative."""
    require_scale("exponential", scale=scale)
    draw = drawn("exponential", (scale,), size, dtype, generator, key, device)
    return draw.result(ops.multiply(standard_exponential(draw), draw.parameters[0]))


def standard_exponential(draw: Draw) -> Tensor:
    """Exponential numbers of mean 1, greater than 0."""
    result: Tensor = ops.negative(ops.log(open_unit(draw.key, draw.shape, draw.wide)))
    return result


def laplace(
    loc: Numbers = 0.0, scale: Numbers = 1.0, size: Any = None, *, dtype: Dtype = None, generator: Any = None,
    key: Any = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Draw numbers with the density exp(-|x - loc|/scale) / (2·scale). ValueError if ``scale`` is negative."""
    require_scale("laplace", scale=scale)
    draw = drawn("laplace", (loc, scale), size, dtype, generator, key, device)
    centred = open_unit(draw.key, draw.shape, draw.wide) - 0.5
    return _placed(draw, -ops.sign(centred) * ops.log1p(ops.abs(centred) * -2), *draw.parameters)


def cauchy(
    loc: Numbers = 0.0, scale: Numbers = 1.0, size: Any = None, *, dtype: Dtype = None, generator: Any = None,
    key: Any = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Draw numbers with the density scale / (π·(scale² + (x - loc)²)). ValueError if ``scale`` is negative."""
    require_scale("cauchy", scale=scale)
    draw = drawn("cauchy", (loc, scale), size, dtype, generator, key, device)
    angle = (open_unit(draw.key, draw.shape, draw.wide) - 0.5) * math.pi
    return _placed(draw, ops.sin(angle) / ops.cos(angle), *draw.parameters)


def gumbel(
    loc: Numbers = 0.0, scale: Numbers = 1.0, size: Any = None, *, dtype: Dtype = None, generator: Any = None,
    key: Any = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Draw numbers with the distribution function exp(-exp(-(x - loc)/scale)). ValueError if ``scale`` is negative."""
    require_scale("gumbel", scale=scale)
    draw = drawn("gumbel", (loc, scale), size, dtype, generator, key, device)
    return _placed(draw, standard_gumbel(draw.key, draw.shape, draw.wide), *draw.parameters)


def standard_gumbel(key: Any, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Gumbel numbers of location 0 and scale 1."""
    result: Tensor = -ops.log(-ops.log(open_unit(key, shape, dtype)))
    return result


def logistic(
    loc: Numbers = 0.0, scale: Numbers = 1.0, size: Any = None, *, dtype: Dtype = None, generator: Any = None,
    key: Any = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Draw numbers with the distribution function sigmoid((x - loc)/scale). ValueError if ``scale`` is negative."""
    require_scale("logistic", scale=scale)
    draw = drawn("logistic", (loc, scale), size, dtype, generator, key, device)
    u = open_unit(draw.key, draw.shape, draw.wide)
    return _placed(draw, ops.log(u) - ops.log1p(-u), *draw.parameters)


def weibull(
    a: Numbers, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None, device: Any = None
) -> Tensor:
    """Draw numbers with the distribution function 1 - exp(-xᵃ), x > 0. ValueError if ``a`` is not positive."""
    require_positive("weibull", a=a)
    draw = drawn("weibull", (a,), size, dtype, generator, key, device)
    return draw.result(ops.pow(standard_exponential(draw), 1 / draw.parameters[0]))


def pareto(
    a: Numbers, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None, device: Any = None
) -> Tensor:
    """Draw numbers with the distribution function 1 - (1 + x)⁻ᵃ, x > 0, as in NumPy (Lomax). ValueError if ``a`` is
    not positive."""
    require_positive("pareto", a=a)
    draw = drawn("pareto", (a,), size, dtype, generator, key, device)
    return draw.result(ops.expm1(ops.divide(standard_exponential(draw), draw.parameters[0])))


def rayleigh(
    scale: Numbers = 1.0, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """Lengths of two normal numbers of deviation ``scale``. ValueError if ``scale`` is negative."""
    require_scale("rayleigh", scale=scale)
    draw = drawn("rayleigh", (scale,), size, dtype, generator, key, device)
    return draw.result(ops.multiply(ops.sqrt(standard_exponential(draw) * 2), draw.parameters[0]))


def vonmises(
    mu: Numbers, kappa: Numbers, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """Angles in [-π, π) with a density proportional to exp(kappa·cos(x - mu)) (D. Best, N. Fisher, "Efficient
    simulation of the von Mises distribution", 1979). No gradient flows. ValueError if ``kappa`` is negative."""
    require_scale("vonmises", kappa=kappa)
    draw = drawn("vonmises", (mu, kappa), size, dtype, generator, key, device)
    centre, concentration = map(ops.stop_gradient, draw.in_float64())
    is_valid = ops.logical_and(ops.greater_equal(concentration, 0), ops.isfinite(concentration))
    known = ops.where(is_valid, concentration, 1)
    is_uniform = ops.less(known, 1e-6)  # where the constants cancel, and the density is flat to six digits
    is_tight = ops.greater(known, 1e12)  # where cosines cannot tell angles apart, and they are normal to twelve digits
    k = ops.where(ops.logical_or(is_uniform, is_tight), 1, known)
    tau = ops.sqrt(k * k * 4 + 1) + 1
    rho = (tau - ops.sqrt(tau * 2)) / (k * 2)
    precise = (rho * rho + 1) / (rho * 2)
    r = ops.where(ops.greater(k, 1e5), 1 / k + 1, precise)  # the first terms of a series where it cancels

    def attempt(of: Any) -> tuple[Any, Any]:
        z = ops.cos(open_unit(of, draw.shape, float64) * math.pi)
        f = (r * z + 1) / (r + z)
        c = k * (r - f)
        u = open_unit(of, draw.shape, float64, 2)
        accepts = ops.logical_or(ops.greater(c * (2 - c), u), ops.greater_equal(ops.log(c / u) + 1, c))
        return f, accepts

    f = ops.clip(first_accepted(ops.fold_in(draw.key, 0), draw.shape, attempt), -1.0, 1.0)
    side = ops.uniform(ops.fold_in(draw.key, 1), draw.shape, float64) - 0.5
    angle = ops.where(is_uniform, side * (2 * math.pi), ops.where(ops.less(side, 0), -acos(f), acos(f)))
    near = ops.normal(ops.fold_in(draw.key, 2), draw.shape, float64) * ops.rsqrt(known)
    turned = ops.where(is_tight, near, angle) + centre
    wrapped = turned - ops.floor((turned + math.pi) / (2 * math.pi)) * (2 * math.pi)
    return draw.result(ops.where(is_valid, wrapped, math.nan))
