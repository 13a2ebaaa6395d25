"""Transforms to matrices: triangular with a positive diagonal, positive definite, and factors of correlations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.distributions import constraints
from runnel.distributions.transforms import Transform
from runnel.ops.elementwise.circular import atanh
from runnel.ops.linear_algebra.matrices import cholesky
from runnel.ops.reductions.cumulative import cumprod, cumsum
from runnel.ops.shapes.diagonals import diagonal, tril


def identity_like(x: Any) -> Any:
    """Return the identity matrix in the last two axes of ``x``."""
    n = x.shape[-1]
    return ops.cast(ops.equal(ops.iota(x, (n, n), 0), ops.iota(x, (n, n), 1)), x.dtype)


class LowerCholeskyTransform(Transform):
    """Map a matrix to a lower triangular one with a positive diagonal: its lower part, and exp of its diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        return tril(x, -1) + identity_like(x) * ops.expand_dims(ops.exp(diagonal(x, 0, -2, -1)), -1)

    def _inverse(self, y: Any) -> Any:
        return tril(y, -1) + identity_like(y) * ops.expand_dims(ops.log(diagonal(y, 0, -2, -1)), -1)


class PositiveDefiniteTransform(Transform):
    """Map a matrix to L·Lᵀ, with L from :class:`LowerCholeskyTransform`."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite
    bijective = True

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return ops.matmul(factor, factor.mT)

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(cholesky(y))


class CorrCholeskyTransform(Transform):
    """Map n(n - 1)/2 numbers to the Cholesky factor of an n×n correlation matrix, with rows of length 1.

    It uses canonical partial correlations (D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation
    matrices based on vines and extended onion method", 2009). Element (i, j) of the factor, j < i, is z_ij·√∏(1 -
    z_ik²) over k < j, with z = tanh x by rows; the diagonal completes the length.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        limit = 1 - float(np.finfo(x.dtype.numpy).eps)
        z = _matrix_of(ops.clip(ops.tanh(x), -limit, limit))
        left = cumprod(ops.sqrt(1 - z * z), -1)
        one = ops.ones_like(left[..., :1])
        return (z + identity_like(z)) * ops.concat([one, left[..., :-1]], -1)

    def _inverse(self, y: Any) -> Any:
        left = 1 - cumsum(y * y, -1)
        one = ops.ones_like(left[..., :1])
        before = _vector_of(ops.concat([one, left[..., :-1]], -1), -1)
        return atanh(_vector_of(y, -1) / ops.sqrt(before))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        left = _vector_of(1 - cumsum(y * y, -1), -2)
        slopes = ops.sum(x + ops.softplus(x * -2) - math.log(2), -1) * -2
        return ops.sum(ops.log(left), -1) * 0.5 + slopes

    def forward_shape(self, shape: Any) -> Any:
        numbers = shape[-1]
        n = round((0.25 + 2 * numbers) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != numbers:
            raise ShapeError(f"[CorrCholeskyTransform] vectors must have n(n - 1)/2 elements; got {numbers}.")
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ShapeError(f"[CorrCholeskyTransform] values must be square matrices; got shape {shape}.")
        n = shape[-1]
        return (*shape[:-2], n * (n - 1) // 2)


def _matrix_of(vector: Any) -> Any:
    """Return the strictly lower triangular matrix with the elements of ``vector`` row by row."""
    shape = CorrCholeskyTransform().forward_shape(vector.shape)
    rows, columns = np.tril_indices(shape[-1], -1)
    return ops.put(ops.full_like(vector, 0.0, shape), (..., rows, columns), vector)


def _vector_of(matrix: Any, k: int) -> Any:
    """Return the elements on and below the diagonal number ``k``, row by row."""
    rows, columns = np.tril_indices(matrix.shape[-1], k)
    return matrix[..., rows, columns]
