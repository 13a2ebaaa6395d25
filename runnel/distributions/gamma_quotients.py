"""Distributions of quotients of gamma variables: beta, Dirichlet, Student's t and Snedecor's F."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, broadcast_all
from runnel.ops.elementwise.gamma import digamma, lgamma
from runnel.ops.elementwise.numbers import xlog1py, xlogy
from runnel.random import gamma_family
from runnel.tensor.random import key_of


class Beta(Distribution):
    """The beta distribution, with density proportional to x^(concentration1 - 1)·(1 - x)^(concentration0 - 1)."""

    arg_constraints: ClassVar = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all("Beta", concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        return gamma_family.beta(self.concentration1, self.concentration0, shape, generator=generator, key=key)

    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))

    @property
    def mode(self) -> Any:
        """Mode; NaN unless at least one concentration is greater than 1."""
        a, b = self.concentration1, self.concentration0
        total = a + b - 2
        inner = (a - 1) / ops.where(ops.equal(total, 0), 1, total)
        is_inner = ops.logical_and(ops.greater(a, 1), ops.greater(b, 1))
        edge = ops.where(ops.greater(a, b), 1.0, ops.where(ops.less(a, b), 0.0, math.nan))
        is_edge = ops.logical_or(ops.greater_equal(a, 1), ops.greater_equal(b, 1))
        return ops.where(is_inner, inner, ops.where(is_edge, edge, math.nan))

    @property
    def variance(self) -> Any:
        a, b = self.concentration1, self.concentration0
        total = a + b
        return a * b / (total * total * (total + 1))

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        return xlogy(self.concentration1 - 1, x) + xlog1py(self.concentration0 - 1, -x) - self._log_beta()

    def _log_beta(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return lgamma(a) + lgamma(b) - lgamma(a + b)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return self._log_beta() - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b)


class Dirichlet(Distribution):
    """The Dirichlet distribution of probability vectors, with density proportional to Π x_i^(concentration_i - 1)."""

    arg_constraints: ClassVar = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        (self.concentration,) = broadcast_all("Dirichlet", concentration)
        if not self.concentration.ndim:
            raise ShapeError("[Dirichlet] concentration must have an element for each probability; got a number.")
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)[:-1]
        return gamma_family.dirichlet(self.concentration, shape, generator=generator, key=key)

    def _total(self) -> Any:
        return ops.sum(self.concentration, -1, keepdims=True)

    mean = property(lambda self: self.concentration / self._total())

    @property
    def mode(self) -> Any:
        """Mode; the unit vector of the largest concentration if none is above 1."""
        above = ops.maximum(self.concentration - 1, 0)
        total = ops.sum(above, -1, keepdims=True)
        places = ops.iota(self.concentration, self.concentration.shape, -1)
        greatest = ops.equal(places, ops.argmax(self.concentration, -1, keepdims=True))
        has_none = ops.equal(total, 0)
        return ops.where(
            has_none, ops.cast(greatest, self.concentration.dtype), above / ops.where(has_none, 1.0, total)
        )

    @property
    def variance(self) -> Any:
        total = self._total()
        return self.concentration * (total - self.concentration) / (total * total * (total + 1))

    def log_prob(self, value: Any) -> Any:
        a = self.concentration
        return ops.sum(xlogy(a - 1, self._valid(value)), -1) + lgamma(ops.sum(a, -1)) - ops.sum(lgamma(a), -1)

    def entropy(self) -> Any:
        a, total, count = self.concentration, ops.sum(self.concentration, -1), self.concentration.shape[-1]
        inner = ops.sum((a - 1) * digamma(a), -1)
        return ops.sum(lgamma(a), -1) - lgamma(total) - (count - total) * digamma(total) - inner


class StudentT(Distribution):
    """The distribution of loc + scale · t, where t is Student's with ``df`` degrees of freedom."""

    arg_constraints: ClassVar = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all("StudentT", df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.loc + self.scale * gamma_family.standard_t(self.df, shape, generator=generator, key=key)

    mean = property(lambda self: ops.where(ops.greater(self.df, 1), self.loc, math.nan))
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Any:
        is_finite = ops.greater(self.df, 2)
        finite = self.scale * self.scale * self.df / (ops.where(is_finite, self.df, 3.0) - 2)
        return ops.where(is_finite, finite, ops.where(ops.greater(self.df, 1), math.inf, math.nan))

    def _log_constant(self) -> Any:
        half = self.df * 0.5
        return ops.log(self.scale) + 0.5 * ops.log(self.df * math.pi) + lgamma(half) - lgamma(half + 0.5)

    def log_prob(self, value: Any) -> Any:
        z = (self._valid(value) - self.loc) / self.scale
        return (self.df + 1) * -0.5 * ops.log1p(z * z / self.df) - self._log_constant()

    def entropy(self) -> Any:
        half = self.df * 0.5
        return (half + 0.5) * (digamma(half + 0.5) - digamma(half)) + self._log_constant()


class FisherSnedecor(Distribution):
    """The distribution of quotients of two chi-square variables, each divided by its degrees of freedom."""

    arg_constraints: ClassVar = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all("FisherSnedecor", df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        of = key_of(generator, key, None if key is not None else self.df1.device)
        above, below = (
            gamma_family.chisquare(df, shape, key=ops.fold_in(of, i)) / df for i, df in enumerate((self.df1, self.df2))
        )
        return above / below

    @property
    def mean(self) -> Any:
        is_finite = ops.greater(self.df2, 2)
        return ops.where(is_finite, self.df2 / (ops.where(is_finite, self.df2, 3.0) - 2), math.nan)

    @property
    def mode(self) -> Any:
        a, b = self.df1, self.df2
        return ops.where(ops.greater(a, 2), (a - 2) / a * b / (b + 2), math.nan)

    @property
    def variance(self) -> Any:
        a, is_finite = self.df1, ops.greater(self.df2, 4)
        b = ops.where(is_finite, self.df2, 5.0)
        finite = b * b * 2 * (a + b - 2) / (a * (b - 2) * (b - 2) * (b - 4))
        return ops.where(is_finite, finite, math.nan)

    def log_prob(self, value: Any) -> Any:
        x, a, b = self._valid(value), self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        constant = lgamma(a + b) - lgamma(a) - lgamma(b)
        return constant + a * ops.log(ratio) + (a - 1) * ops.log(x) - (a + b) * ops.log1p(ratio * x)
