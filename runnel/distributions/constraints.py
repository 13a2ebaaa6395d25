"""Sets of values: what parameters may be, and where the probability of a distribution lies. Names are PyTorch's.

``check(value)`` says of each value whether it belongs to the set; the last ``event_dim`` axes together are one value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel import ops
from runnel.ops.library.triangles import tril
from runnel.tensor.stateful import HoldsTensors


class Constraint(HoldsTensors):
    """A set of values. ``description`` completes the sentence "it is …"."""

    is_discrete = False
    event_dim = 0
    description = "a number"

    def check(self, value: Any) -> Any:
        """Of each value whether it belongs to the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.strip('_')}({self.description})"


class _Set(Constraint):
    """A set whose ``test`` is a function."""

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
    """Numbers between bounds, which may be tensors; None stands for no bound."""

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


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers from one bound to the other, with both."""
    return _Interval(lower_bound, upper_bound, f"from {_shown(lower_bound)} to {_shown(upper_bound)}")


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers from one bound up to the other, without that."""
    below = _Set("", lambda x: ops.logical_and(ops.greater_equal(x, lower_bound), ops.less(x, upper_bound)))
    below.description = f"from {_shown(lower_bound)} up to, but not including, {_shown(upper_bound)}"
    return below


def greater_than(lower_bound: Any) -> Constraint:
    """Numbers above a bound."""
    return _Interval(lower_bound, None, f"greater than {_shown(lower_bound)}", is_open=True)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Numbers not below a bound."""
    return _Interval(lower_bound, None, f"{_shown(lower_bound)} or greater")


def less_than(upper_bound: Any) -> Constraint:
    """Numbers below a bound."""
    return _Set(f"less than {_shown(upper_bound)}", lambda x: ops.less(x, upper_bound))


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Whole numbers from one bound to the other, with both."""
    told = f"a whole number from {_shown(lower_bound)} to {_shown(upper_bound)}"
    return _Interval(lower_bound, upper_bound, told, is_discrete=True)


def multinomial(upper_bound: Any) -> Constraint:
    """Vectors of counts with the sum ``upper_bound``."""

    def test(x: Any) -> Any:
        return ops.logical_and(
            ops.all(ops.logical_and(ops.greater_equal(x, 0), _is_whole(x)), -1), ops.equal(ops.sum(x, -1), upper_bound)
        )

    return _Set(f"a vector of counts with the sum {_shown(upper_bound)}", test, 1, is_discrete=True)


class independent(Constraint):
    """A constraint whose last ``reinterpreted_batch_ndims`` batch axes belong to one value."""

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


def _shown(bound: Any) -> str:
    return f"{bound:g}" if isinstance(bound, (int, float)) else "bounds that are tensors"


def _is_whole(x: Any) -> Any:
    return ops.equal(x, ops.floor(x)) if x.dtype.is_float else ops.equal(x, x)


def _is_symmetric(x: Any) -> Any:
    return ops.all(ops.less_equal(ops.abs(x - x.mT), 1e-6 + ops.abs(x) * 1e-5), (-2, -1))


def _is_positive_definite(x: Any) -> Any:
    eigenvalues = ops.linalg.eigh(ops.where(ops.isfinite(x), x, 0)).eigenvalues
    return ops.logical_and(_is_symmetric(x), ops.all(ops.greater(eigenvalues, 0), -1))


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
