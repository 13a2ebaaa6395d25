"""Constraints on parameters and supports of distributions, under PyTorch's names.

``check(value)`` returns a boolean mask; the last ``event_dim`` axes together are one value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel import ops
from runnel.ops.linear_algebra.factorizations import eigh
from runnel.ops.shapes.diagonals import tril


class Constraint:
    """A set of values. ``description`` completes the sentence "it must be …"."""

    is_discrete = False
    event_dim = 0
    factorizes = False  # whether the check takes a factorization of matrices
    description = "a number"

    def check(self, value: Any) -> Any:
        """Return a boolean mask of the values that satisfy the constraint."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.strip('_')}({self.description})"


class _Set(Constraint):
    """A set defined by a function ``test``."""

    def __init__(
        self, description: str, test: Callable[[Any], Any], event_dim: int = 0, is_discrete: bool = False
    ) -> None:
        self.description = description
        self.event_dim = event_dim
        self.is_discrete = is_discrete
        self._test = test

    def check(self, value: Any) -> Any:
        return self._test(value)


class _Interval(Constraint):
    """Numbers between bounds, which may be tensors; None means unbounded."""

    def __init__(
        self, lower_bound: Any, upper_bound: Any, description: str, *, is_open: bool = False, is_discrete: bool = False
    ) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        self.description = description
        self.is_discrete = is_discrete
        self._is_open = is_open

    def check(self, value: Any) -> Any:
        inside = ops.equal(value, value)
        if self.lower_bound is not None:
            above = ops.greater if self._is_open else ops.greater_equal
            inside = ops.logical_and(inside, above(value, self.lower_bound))
        if self.upper_bound is not None:
            inside = ops.logical_and(inside, ops.less_equal(value, self.upper_bound))
        return ops.logical_and(inside, _is_whole(value)) if self.is_discrete else inside


class interval(_Interval):
    """Numbers in [lower_bound, upper_bound]."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound, f"from {_shown(lower_bound)} to {_shown(upper_bound)}")


class half_open_interval(_Interval):
    """Numbers in [lower_bound, upper_bound)."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        told = f"from {_shown(lower_bound)} up to, but not including, {_shown(upper_bound)}"
        super().__init__(lower_bound, upper_bound, told)

    def check(self, value: Any) -> Any:
        return ops.logical_and(super().check(value), ops.less(value, self.upper_bound))


class greater_than(_Interval):
    """Numbers above a bound."""

    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound, None, f"greater than {_shown(lower_bound)}", is_open=True)


class greater_than_eq(_Interval):
    """Numbers of at least a bound."""

    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound, None, f"{_shown(lower_bound)} or greater")


class less_than(_Interval):
    """Numbers below a bound."""

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(None, upper_bound, f"less than {_shown(upper_bound)}")

    def check(self, value: Any) -> Any:
        return ops.less(value, self.upper_bound)


class integer_interval(_Interval):
    """Integers in [lower_bound, upper_bound]."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        told = f"a whole number from {_shown(lower_bound)} to {_shown(upper_bound)}"
        super().__init__(lower_bound, upper_bound, told, is_discrete=True)


class multinomial(Constraint):
    """Vectors of counts with the sum ``upper_bound``."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        self.description = f"a vector of counts with the sum {_shown(upper_bound)}"

    def check(self, value: Any) -> Any:
        are_counts = ops.all(ops.logical_and(ops.greater_equal(value, 0), _is_whole(value)), -1)
        return ops.logical_and(are_counts, ops.equal(ops.sum(value, -1), self.upper_bound))


class independent(Constraint):
    """A constraint with its last ``reinterpreted_batch_ndims`` batch axes as part of a value."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims
        self.description = base_constraint.description

    def check(self, value: Any) -> Any:
        inside = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        return ops.all(inside, tuple(range(-count, 0))) if count else inside


class cat(Constraint):
    """Constraints ``cseq`` on consecutive parts of ``lengths`` along the axis ``dim``."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq = list(cseq)
        self.dim = dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)
        self.description = "; ".join(c.description for c in self.cseq)

    def check(self, value: Any) -> Any:
        parts = ops.split(value, self.lengths, self.dim)
        return ops.concat([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class stack(Constraint):
    """Constraints ``cseq`` on consecutive positions along the axis ``dim``."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq = list(cseq)
        self.dim = dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)
        self.description = "; ".join(c.description for c in self.cseq)

    def check(self, value: Any) -> Any:
        parts = [ops.squeeze(part, self.dim) for part in ops.split(value, 1, self.dim)]
        return ops.stack([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class dependent_property(property):
    """A property that returns a constraint depending on parameters."""

    def __init__(
        self, fn: Callable[[Any], Any] | None = None, *, is_discrete: bool = False, event_dim: int = 0
    ) -> None:
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> dependent_property:
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Any) -> bool:
    """Return True if the constraint depends on an instance's parameters."""
    return constraint is dependent or isinstance(constraint, dependent_property)


def _shown(bound: Any) -> str:
    return f"{bound:g}" if isinstance(bound, (int, float)) else "bounds that are tensors"


def _is_whole(x: Any) -> Any:
    return ops.equal(x, ops.floor(x)) if x.dtype.is_float else ops.equal(x, x)


def _is_symmetric(x: Any) -> Any:
    return ops.all(ops.less_equal(ops.abs(x - x.mT), 1e-6 + ops.abs(x) * 1e-5), (-2, -1))


def _eigenvalues(x: Any) -> Any:
    return eigh(ops.where(ops.isfinite(x), x, 0)).eigenvalues


def _is_positive_definite(x: Any) -> Any:
    return ops.logical_and(_is_symmetric(x), ops.all(ops.greater(_eigenvalues(x), 0), -1))


def _is_positive_semidefinite(x: Any) -> Any:
    return ops.logical_and(_is_symmetric(x), ops.all(ops.greater_equal(_eigenvalues(x), 0), -1))


def _is_square(x: Any) -> Any:
    return ops.equal(ops.full_like(x, x.shape[-2], x.shape[:-2]), x.shape[-1])


def _is_correlation_cholesky(x: Any) -> Any:
    apart = ops.abs(ops.sqrt(ops.sum(x * x, -1)) - 1)
    near = ops.all(ops.less(apart, 10 * x.shape[-1] * float(np.finfo(x.dtype.numpy).eps)), -1)
    return ops.logical_and(_is_cholesky(x), near)


def _is_lower_triangular(x: Any) -> Any:
    return ops.all(ops.equal(tril(x), x), (-2, -1))


def _is_simplex(x: Any) -> Any:
    is_unit = ops.less(ops.abs(ops.sum(x, -1) - 1), 1e-6 if x.dtype.name == "float64" else 1e-5)
    return ops.logical_and(ops.all(ops.greater_equal(x, 0), -1), is_unit)


def _is_one_hot(x: Any) -> Any:
    is_binary = ops.all(ops.logical_or(ops.equal(x, 0), ops.equal(x, 1)), -1)
    return ops.logical_and(is_binary, ops.equal(ops.sum(x, -1), 1))


def _is_cholesky(x: Any) -> Any:
    diagonal = ops.sum(x * ops.cast(ops.equal(ops.iota(x, x.shape[-2:], 0), ops.iota(x, x.shape[-2:], 1)), x.dtype), -1)
    return ops.logical_and(_is_lower_triangular(x), ops.all(ops.greater(diagonal, 0), -1))


real = _Set("a number, not NaN", lambda x: ops.equal(x, x))
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = _Set("0 or 1", lambda x: ops.logical_or(ops.equal(x, 0), ops.equal(x, 1)), is_discrete=True)
nonnegative_integer = _Interval(0, None, "a whole number, 0 or greater", is_discrete=True)
positive_integer = _Interval(1, None, "a whole number, 1 or greater", is_discrete=True)
simplex = _Set("a vector of probabilities with the sum 1", _is_simplex, 1)
one_hot = _Set("a vector of zeros with a single 1", _is_one_hot, 1, is_discrete=True)
lower_triangular = _Set("a lower triangular matrix", _is_lower_triangular, 2)
lower_cholesky = _Set("a lower triangular matrix with a positive diagonal", _is_cholesky, 2)
symmetric = _Set("a symmetric matrix", _is_symmetric, 2)
positive_definite = _Set("a symmetric, positive definite matrix", _is_positive_definite, 2)
positive_semidefinite = _Set("a symmetric, positive semidefinite matrix", _is_positive_semidefinite, 2)
corr_cholesky = _Set("a lower triangular matrix with rows of length 1", _is_correlation_cholesky, 2)
square = _Set("a square matrix", _is_square, 2)
dependent = _Set("what depends on other parameters", lambda x: ops.equal(x, x))
positive_definite.factorizes = positive_semidefinite.factorizes = True
