"""Distributions of vectors."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Numbers, as_sizes
from runnel.ops.library.matrices import cholesky
from runnel.random.drawing import as_parameter, drawn
from runnel.tensor.tensor import Tensor


def multivariate_normal(
    mean: Numbers, cov: Numbers, size: Any = None, *, dtype: Any = None, generator: Any = None, key: Any = None,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """Normal vectors (…, n) of ``mean`` (…, n) and covariance ``cov`` (…, n, n), symmetric and positive definite:
    mean + L·z, where L is its Cholesky factor. ``size`` is the shape in front of n. ShapeError if they do not fit;
    ValueError of the factorization if ``cov`` is not positive definite."""
    mean, cov = as_parameter(mean), as_parameter(cov)
    n = mean.shape[-1] if getattr(mean, "ndim", 0) else -1
    if getattr(cov, "ndim", 0) < 2 or cov.shape[-2:] != (n, n):
        raise ShapeError(
            f"[multivariate_normal] a mean (…, n) goes with a covariance (…, n, n); received shapes "
            f"{getattr(mean, 'shape', ())} and {getattr(cov, 'shape', ())}."
        )
    factor = cholesky(cov)
    spread = ops.broadcast_to(ops.zeros_like(mean), (*ops.add(mean, factor[..., 0]).shape,))
    shape = None if size is None else (*as_sizes("multivariate_normal", size), n)
    draw = drawn("multivariate_normal", (mean, spread), shape, dtype, generator, key, device)
    standard = ops.normal(draw.key, draw.shape, draw.wide)
    return draw.result(ops.add(ops.sum(ops.multiply(factor, ops.expand_dims(standard, -2)), -1), mean))
