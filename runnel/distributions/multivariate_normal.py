"""Multivariate normal distributions, with a full covariance or one of low rank plus a diagonal."""

from __future__ import annotations

from typing import Any, ClassVar

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.distributions import constraints
from runnel.distributions.distribution import LOG_2PI, Distribution, broadcast_all, require_in
from runnel.ops.arguments import broadcast_shapes
from runnel.ops.linear_algebra.matrices import cholesky, inv, solve_triangular
from runnel.ops.shapes.diagonals import diagonal
from runnel.tensor.random import key_of, randn


def half_log_det(factor: Any) -> Any:
    """Return the log determinant of a lower triangular matrix."""
    return ops.sum(ops.log(diagonal(factor, 0, -2, -1)), -1)


def _product(matrix: Any, vector: Any) -> Any:
    return ops.sum(matrix * ops.expand_dims(vector, -2), -1)


def squared_distance(factor: Any, difference: Any) -> Any:
    """Return |L⁻¹·d|² for broadcasting stacks of matrices and vectors."""
    batch = broadcast_shapes("MultivariateNormal", factor.shape[:-2], difference.shape[:-1])
    n = factor.shape[-1]
    left = ops.broadcast_to(factor, (*batch, n, n))
    right = ops.expand_dims(ops.broadcast_to(difference, (*batch, n)), -1)
    solved = solve_triangular(left, right, upper=False)
    return ops.sum(solved * solved, (-2, -1))


class Factored(Distribution):
    """A base of distributions with a covariance of vectors, which keep its Cholesky factor."""

    _factor: Any

    @property
    def scale_tril(self) -> Any:
        """Lower triangular L with L·Lᵀ the covariance."""
        return self._factor

    @property
    def covariance_matrix(self) -> Any:
        """Covariance."""
        return ops.matmul(self._factor, self._factor.mT)

    @property
    def precision_matrix(self) -> Any:
        """Inverse of the covariance."""
        return inv(self.covariance_matrix)


class MultivariateNormal(Factored):
    """The normal distribution of vectors with mean ``loc`` (…, n).

    Pass one of ``covariance_matrix``, ``precision_matrix`` (its inverse) and ``scale_tril`` (its Cholesky factor), of
    shape (…, n, n), else ValueError.
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = given_matrix("MultivariateNormal", covariance_matrix, precision_matrix, scale_tril)
        (mean,) = broadcast_all("MultivariateNormal", loc)
        n = mean.shape[-1] if mean.ndim else -1
        if matrix.ndim < 2 or matrix.shape[-2:] != (n, n):
            raise ShapeError(
                f"[MultivariateNormal] loc must have shape (…, n) and {name} (…, n, n); got shapes {mean.shape} and "
                f"{matrix.shape}."
            )
        batch = broadcast_shapes("MultivariateNormal", mean.shape[:-1], matrix.shape[:-2])
        self.loc = ops.broadcast_to(mean, (*batch, n))
        validates = Distribution._validates if validate_args is None else validate_args
        if validates:  # before the factorization, whose own error says less
            require_in("MultivariateNormal", name, matrix, self.arg_constraints[name])
        self._factor = ops.broadcast_to(factor_of(name, matrix), (*batch, n, n))
        super().__init__(batch, (n,), validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        of = key_of(generator, key, None if key is not None else self.loc.device)
        return self.loc + _product(self._factor, randn(shape, dtype=self.loc.dtype, key=of))

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: ops.sum(self._factor * self._factor, -1))

    def log_prob(self, value: Any) -> Any:
        distance = squared_distance(self._factor, self._valid(value) - self.loc)
        return (distance + self.event_shape[0] * LOG_2PI) * -0.5 - half_log_det(self._factor)

    def entropy(self) -> Any:
        return half_log_det(self._factor) + 0.5 * self.event_shape[0] * (1 + LOG_2PI)


def given_matrix(distribution: str, covariance_matrix: Any, precision_matrix: Any, scale_tril: Any) -> tuple[str, Any]:
    """Return the name and value of the matrix that is given; ValueError unless there is exactly one."""
    matrices = {
        "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril
    }  # fmt: skip
    given = {name: x for name, x in matrices.items() if x is not None}
    if len(given) != 1:
        raise ValueError(f"[{distribution}] takes one of {', '.join(matrices)}; got {', '.join(given) or 'none'}.")
    ((name, parameter),) = given.items()
    (matrix,) = broadcast_all(distribution, parameter)
    return name, matrix


def factor_of(name: str, matrix: Any) -> Any:
    """Return the lower Cholesky factor of the covariance described by ``matrix`` under ``name``."""
    if name == "scale_tril":
        return matrix
    return cholesky(matrix if name == "covariance_matrix" else inv(matrix))


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with mean ``loc`` (…, n) and covariance W·Wᵀ + D.

    ``cov_factor`` is W (…, n, rank) and ``cov_diag`` (…, n) the diagonal of D. Computations use matrices of size rank
    (M. Woodbury's formula and the determinant lemma).
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        owner = "LowRankMultivariateNormal"
        (mean,), (factor,), (diag,) = (broadcast_all(owner, x) for x in (loc, cov_factor, cov_diag))
        n = mean.shape[-1] if mean.ndim else -1
        if factor.ndim < 2 or factor.shape[-2] != n or not diag.ndim or diag.shape[-1] != n:
            raise ShapeError(
                f"[{owner}] loc must have shape (…, n), cov_factor (…, n, rank) and cov_diag (…, n); got shapes "
                f"{mean.shape}, {factor.shape} and {diag.shape}."
            )
        batch = broadcast_shapes(owner, mean.shape[:-1], factor.shape[:-2], diag.shape[:-1])
        self.loc = ops.broadcast_to(mean, (*batch, n))
        self.cov_factor = ops.broadcast_to(factor, (*batch, *factor.shape[-2:]))
        self.cov_diag = ops.broadcast_to(diag, (*batch, n))
        super().__init__(batch, (n,), validate_args)

    def _capacitance(self) -> Any:
        """Return the Cholesky factor of 1 + Wᵀ·D⁻¹·W."""
        scaled = self.cov_factor / ops.expand_dims(self.cov_diag, -1)
        inner = ops.matmul(self.cov_factor.mT, scaled)
        rank = inner.shape[-1]
        unit = ops.equal(ops.iota(inner, (rank, rank), 0), ops.iota(inner, (rank, rank), 1))
        return cholesky(inner + ops.cast(unit, inner.dtype))

    @property
    def covariance_matrix(self) -> Any:
        """Covariance."""
        n = self.event_shape[0]
        unit = ops.equal(ops.iota(self.loc, (n, n), 0), ops.iota(self.loc, (n, n), 1))
        spread = ops.where(unit, ops.expand_dims(self.cov_diag, -1), 0.0)
        return ops.matmul(self.cov_factor, self.cov_factor.mT) + spread

    @property
    def scale_tril(self) -> Any:
        """Cholesky factor of the covariance."""
        return cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Any:
        """Inverse of the covariance."""
        return inv(self.covariance_matrix)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        of = key_of(generator, key, None if key is not None else self.loc.device)
        rank = self.cov_factor.shape[-1]
        shared = randn((*shape[:-1], rank), dtype=self.loc.dtype, key=ops.fold_in(of, 0))
        own = randn(shape, dtype=self.loc.dtype, key=ops.fold_in(of, 1))
        return self.loc + _product(self.cov_factor, shared) + ops.sqrt(self.cov_diag) * own

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: ops.sum(self.cov_factor * self.cov_factor, -1) + self.cov_diag)

    def _log_det(self, capacitance: Any) -> Any:
        return half_log_det(capacitance) * 2 + ops.sum(ops.log(self.cov_diag), -1)

    def log_prob(self, value: Any) -> Any:
        difference = self._valid(value) - self.loc
        scaled = difference / self.cov_diag
        capacitance = self._capacitance()
        seen = _product(self.cov_factor.mT, scaled)
        distance = ops.sum(difference * scaled, -1) - squared_distance(capacitance, seen)
        return (distance + self._log_det(capacitance) + self.event_shape[0] * LOG_2PI) * -0.5

    def entropy(self) -> Any:
        return (self._log_det(self._capacitance()) + self.event_shape[0] * (1 + LOG_2PI)) * 0.5
