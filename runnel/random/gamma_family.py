"""Draw gamma numbers, and numbers made of them: beta, Dirichlet, chi-square and Student's t.

They are drawn as logarithms in float64, since for small shapes the numbers are below all floats. Gradients by the
shape are implicit (M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", 2018).
"""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.dtypes import Dtype, float64
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Numbers, as_sizes
from runnel.ops.conversion import stop_gradient
from runnel.ops.linear_algebra.matrices import cholesky
from runnel.random.drawing import Draw, as_parameter, drawn, first_accepted, open_unit, require_positive, require_scale
from runnel.random.incomplete_gamma import log_slope
from runnel.tensor.tensor import Tensor
from runnel.transforms.custom_vjp import custom_vjp


@custom_vjp
def log_standard_gamma(shape: Any, key: Any) -> Any:
    """Logarithms of gamma numbers of ``shape`` (float64, positive) and scale 1, NaN where it is not valid.

    G. Marsaglia, W. Tsang, "A simple method for generating gamma variables" (2000); a shape below 1 is raised by 1, and
    the logarithm of a uniform number over the shape added (their section 6).
    """
    alpha = stop_gradient(shape)
    is_valid = ops.logical_and(ops.greater_equal(alpha, 0), ops.isfinite(alpha))
    is_small = ops.less(alpha, 1)
    d = ops.where(is_valid, ops.where(is_small, alpha + 1, alpha), 1) - 1 / 3
    c = 1 / ops.sqrt(d * 9)

    def attempt(of: Any) -> tuple[Any, Any]:
        normal = ops.normal(of, alpha.shape, float64)
        u = open_unit(ops.fold_in(of, 1), alpha.shape, float64)
        root = c * normal + 1
        is_positive = ops.greater(root, 0)
        log_v = ops.log(ops.where(is_positive, root, 1)) * 3
        accepts = ops.less(ops.log(u), normal * normal * 0.5 + d - d * ops.exp(log_v) + d * log_v)
        return ops.log(d) + log_v, ops.logical_and(is_positive, accepts)

    raised, boost = ops.fold_in(key, 0), ops.fold_in(key, 1)
    log_u = ops.log(open_unit(boost, alpha.shape, float64))
    result = first_accepted(raised, alpha.shape, attempt) + ops.where(is_small, log_u / alpha, 0)
    return ops.where(is_valid, result, float("nan"))


def _forward(shape: Any, key: Any) -> tuple[Any, Any]:
    result = log_standard_gamma.fn(shape, key)
    return result, (shape, result)


def _backward(saved: Any, g: Any) -> tuple[Any, None]:
    shape, result = saved
    return g * log_slope(shape, result), None


log_standard_gamma.defvjp(_forward, _backward)


def _standard(draw: Draw, shape: Any) -> Any:
    return ops.exp(log_standard_gamma(draw.as_float64(shape), draw.key))


def standard_gamma(
    shape: Numbers, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None, device: Any = None
) -> Tensor:
    """Draw numbers with the density x^(shape - 1)·e⁻ˣ / Γ(shape). ValueError if ``shape`` is negative."""
    require_scale("standard_gamma", shape=shape)
    draw = drawn("standard_gamma", (shape,), size, dtype, generator, key, device)
    return draw.result(_standard(draw, draw.parameters[0]))


def gamma(
    shape: Numbers, scale: Numbers = 1.0, size: Any = None, *, dtype: Dtype = None, generator: Any = None,
    key: Any = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Gamma numbers of ``shape`` and mean shape · scale. ValueError if one of them is negative."""
    require_scale("gamma", shape=shape, scale=scale)
    draw = drawn("gamma", (shape, scale), size, dtype, generator, key, device)
    return draw.result(_standard(draw, draw.parameters[0]) * draw.as_float64(draw.parameters[1]))


def chisquare(
    df: Numbers, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None, device: Any = None
) -> Tensor:
    """Sums of the squares of ``df`` normal numbers, which need not be a whole number. ValueError if ``df`` is not
    positive."""
    require_positive("chisquare", df=df)
    draw = drawn("chisquare", (df,), size, dtype, generator, key, device)
    return draw.result(_standard(draw, ops.multiply(draw.as_float64(draw.parameters[0]), 0.5)) * 2)


def standard_t(
    df: Numbers, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None, device: Any = None
) -> Tensor:
    """Student's t with ``df`` degrees of freedom: a normal number over the root of a chi-square number over ``df``.
    ValueError if ``df`` is not positive."""
    require_positive("standard_t", df=df)
    draw = drawn("standard_t", (df,), size, dtype, generator, key, device)
    half = draw.as_float64(draw.parameters[0]) * 0.5
    log_mean_square = log_standard_gamma(half, ops.fold_in(draw.key, 0)) - ops.log(half)
    normal = ops.normal(ops.fold_in(draw.key, 1), draw.shape, float64)
    return draw.result(normal * ops.exp(log_mean_square * -0.5))


def beta(
    a: Numbers,
    b: Numbers,
    size: Any = None,
    *,
    dtype: Dtype = None,
    generator: Any = None,
    key: Any = None,
    device: Any = None,
) -> Tensor:
    """Draw numbers in (0, 1) with a density proportional to xᵃ⁻¹·(1 - x)ᵇ⁻¹. ValueError if a or b is not positive."""
    require_positive("beta", a=a, b=b)
    draw = drawn("beta", (a, b), size, dtype, generator, key, device)
    left, right = (log_standard_gamma(x, ops.fold_in(draw.key, i)) for i, x in enumerate(draw.in_float64()))
    return draw.result(ops.sigmoid(left - right))


def dirichlet(
    alpha: Numbers, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None, device: Any = None
) -> Tensor:
    """Vectors of probabilities with a density proportional to Π x_i^(alpha_i - 1), along the last axis of the result;
    ``size`` is the shape in front of it. ValueError if an element of ``alpha`` is not positive, ShapeError if it has
    no axis."""
    alpha = as_parameter(alpha)
    if not getattr(alpha, "ndim", 0):
        raise ShapeError(
            "[dirichlet] alpha must have an element for each probability along its last axis; got a number."
        )
    require_positive("dirichlet", alpha=alpha)
    draw = drawn("dirichlet", (alpha,), vectors("dirichlet", size, alpha.shape[-1]), dtype, generator, key, device)
    return draw.result(ops.softmax(log_standard_gamma(draw.in_float64()[0], draw.key), -1))


def vectors(name: str, size: Any, length: int) -> tuple[int, ...] | None:
    """Return the shape of ``size`` vectors of ``length``."""
    return None if size is None else (*as_sizes(name, size), length)


def multivariate_normal(
    mean: Numbers, cov: Numbers, size: Any = None, *, dtype: Dtype = None, generator: Any = None, key: Any = None,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """Normal vectors (…, n) of ``mean`` (…, n) and covariance ``cov`` (…, n, n), symmetric and positive definite:
    mean + L·z, where L is its Cholesky factor. ``size`` is the shape in front of n. ShapeError if they do not fit;
    ValueError of the factorization if ``cov`` is not positive definite."""
    mean, cov = as_parameter(mean), as_parameter(cov)
    n = mean.shape[-1] if getattr(mean, "ndim", 0) else -1
    if getattr(cov, "ndim", 0) < 2 or cov.shape[-2:] != (n, n):
        raise ShapeError(
            f"[multivariate_normal] a mean (…, n) must go with a covariance (…, n, n); got shapes "
            f"{getattr(mean, 'shape', ())} and {getattr(cov, 'shape', ())}."
        )
    factor = cholesky(cov)
    spread = ops.broadcast_to(ops.zeros_like(mean), (*ops.add(mean, factor[..., 0]).shape,))
    shape = None if size is None else (*as_sizes("multivariate_normal", size), n)
    draw = drawn("multivariate_normal", (mean, spread), shape, dtype, generator, key, device)
    standard = ops.normal(draw.key, draw.shape, draw.wide)
    return draw.result(ops.add(ops.sum(ops.multiply(factor, ops.expand_dims(standard, -2)), -1), mean))
