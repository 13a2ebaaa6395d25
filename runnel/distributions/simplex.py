"""Distributions of probabilities: beta and Dirichlet."""

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


class Beta(Distribution):
    """Numbers in (0, 1) with a density proportional to x^(concentration1 - 1)·(1 - x)^(concentration0 - 1)."""

    arg_constraints: ClassVar = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all("Beta", concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        return gamma_family.beta(self.concentration1, self.concentration0, shape, generator=generator, key=key)

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        """NaN unless both concentrations are greater than 1, or one of them is and the other is not."""
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
    """Vectors of probabilities with a density proportional to Π x_i^(concentration_i - 1)."""

    arg_constraints: ClassVar = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        (self.concentration,) = broadcast_all("Dirichlet", concentration)
        if not self.concentration.ndim:
            raise ShapeError("[Dirichlet] concentration has an element for each probability; received a number.")
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)[:-1]
        return gamma_family.dirichlet(self.concentration, shape, generator=generator, key=key)

    def _total(self) -> Any:
        return ops.sum(self.concentration, -1, keepdims=True)

    @property
    def mean(self) -> Any:
        return self.concentration / self._total()

    @property
    def mode(self) -> Any:
        """Where no concentration is above 1, the unit vector of the greatest."""
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
