"""Distributions of matrices: the Wishart distribution, and factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, broadcast_all, require_in
from runnel.distributions.matrix_transforms import identity_like
from runnel.distributions.multivariate_normal import Factored, factor_of, given_matrix, half_log_det
from runnel.ops.arguments import broadcast_shapes
from runnel.ops.elementwise.gamma import digamma, lgamma, mvlgamma
from runnel.ops.linear_algebra.matrices import cholesky, solve_triangular
from runnel.ops.shapes.diagonals import diagonal, tril
from runnel.random import gamma_family
from runnel.tensor.random import key_of, randn


class Wishart(Factored):
    """The Wishart distribution of sums of x·xᵀ over ``df`` > n - 1 normal vectors of n elements (J. Wishart, 1928).

    Pass one of the vectors' ``covariance_matrix``, ``precision_matrix`` (its inverse) and ``scale_tril`` (its Cholesky
    factor), of shape (…, n, n). Samples use M. Bartlett's decomposition (1933).
    """

    arg_constraints: ClassVar = {
        "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(0),
    }  # fmt: skip
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = given_matrix("Wishart", covariance_matrix, precision_matrix, scale_tril)
        if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
            raise ShapeError(f"[Wishart] {name} must be (…, n, n); got shape {matrix.shape}.")
        n = matrix.shape[-1]
        freedom = ops.cast(broadcast_all("Wishart", df)[0], matrix.dtype)
        batch = broadcast_shapes("Wishart", freedom.shape, matrix.shape[:-2])
        self.df = ops.broadcast_to(freedom, batch)
        validates = Distribution._validates if validate_args is None else validate_args
        if validates:
            require_in("Wishart", name, matrix, self.arg_constraints[name])
            require_in("Wishart", "df", self.df, constraints.greater_than(n - 1))
        self._factor = ops.broadcast_to(factor_of(name, matrix), (*batch, n, n))
        super().__init__(batch, (n, n), validate_args)

    def _wide_df(self) -> Any:
        return ops.expand_dims(self.df, (-2, -1))

    mean = property(lambda self: self._wide_df() * self.covariance_matrix)

    @property
    def mode(self) -> Any:
        """Mode; NaN unless df > n + 1."""
        more = self._wide_df() - (self.event_shape[-1] + 1)
        return ops.where(ops.greater(more, 0), more, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        covariance = self.covariance_matrix
        diag = diagonal(covariance, 0, -2, -1)
        return self._wide_df() * (covariance * covariance + ops.expand_dims(diag, -1) * ops.expand_dims(diag, -2))

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        n = shape[-1]
        of = key_of(generator, key, None if key is not None else self.df.device)
        halves = (ops.expand_dims(self.df, -1) - ops.iota(self.df, (n,), dtype=self.df.dtype)) * 0.5
        squares = gamma_family.gamma(halves, 2.0, shape[:-1], key=ops.fold_in(of, 0))
        below = tril(randn(shape, dtype=self.df.dtype, key=ops.fold_in(of, 1)), -1)
        factor = ops.matmul(self._factor, below + identity_like(below) * ops.expand_dims(ops.sqrt(squares), -1))
        return ops.matmul(factor, factor.mT)

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        n = self.event_shape[-1]
        other = cholesky(x)
        batch = broadcast_shapes("Wishart", x.shape[:-2], self.batch_shape)
        factors = (ops.broadcast_to(m, (*batch, n, n)) for m in (self._factor, other))
        solved = solve_triangular(*factors, upper=False)
        scale = self.df * (n * math.log(2) * 0.5 + half_log_det(self._factor)) + mvlgamma(self.df * 0.5, n)
        return (self.df - (n + 1)) * half_log_det(other) - ops.sum(solved * solved, (-2, -1)) * 0.5 - scale

    def sum_of_digammas(self) -> Any:
        """Return ψ((df - i)/2) summed over i < n."""
        n = self.event_shape[-1]
        halves = (ops.expand_dims(self.df, -1) - ops.iota(self.df, (n,), dtype=self.df.dtype)) * 0.5
        return ops.sum(digamma(halves), -1)

    def entropy(self) -> Any:
        n = self.event_shape[-1]
        sizes = (n + 1) * (n * math.log(2) * 0.5 + half_log_det(self._factor)) + mvlgamma(self.df * 0.5, n)
        return sizes - (self.df - (n + 1)) * 0.5 * self.sum_of_digammas() + self.df * (n * 0.5)


class LKJCholesky(Distribution):
    """The LKJ distribution of lower Cholesky factors of ``dim``×``dim`` correlation matrices.

    The density is proportional to det^(concentration - 1) of the matrix: uniform for 1, closer to the identity for
    more. Samples use the onion method of D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation
    matrices based on vines and extended onion method", 2009.
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"[LKJCholesky] dim must be 2 or greater; got {dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all("LKJCholesky", concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        of = key_of(generator, key, None if key is not None else self.concentration.device)
        before = np.maximum(np.arange(self.dim), 1) * 0.5  # of row k, the squared length is a beta number of k/2 and
        ones = ops.ones_like(ops.expand_dims(self.concentration, -1))  # concentration + (dim - 1 - k)/2
        first = ones * before.astype(self.concentration.dtype.numpy)
        second = ops.expand_dims(self.concentration + 0.5 * (self.dim - 1), -1) - first
        squares = ops.expand_dims(gamma_family.beta(first, second, shape[:-1], key=ops.fold_in(of, 0)), -1)
        below = tril(randn(shape, dtype=self.concentration.dtype, key=ops.fold_in(of, 1)), -1)
        length = ops.sqrt(ops.sum(below * below, -1, keepdims=True))
        rows = ops.sqrt(squares) * below / ops.where(ops.equal(length, 0), 1.0, length)
        left = ops.sqrt(ops.maximum(1 - ops.sum(rows * rows, -1, keepdims=True), 1e-30))
        return ops.stop_gradient(rows + identity_like(rows) * left)

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        n = self.dim
        orders = ops.expand_dims(self.concentration - 1, -1) * 2 + np.arange(n - 2, -1, -1).astype(x.dtype.numpy)
        density = ops.sum(orders * ops.log(diagonal(x, 0, -2, -1)[..., 1:]), -1)
        alpha = self.concentration + 0.5 * (n - 1)
        constant = 0.5 * (n - 1) * math.log(math.pi) + mvlgamma(alpha - 0.5, n - 1) - lgamma(alpha) * (n - 1)
        return density - constant
