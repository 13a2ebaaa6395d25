"""The generalized Pareto distribution: what exceeds a high threshold (J. Pickands, 1975)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from runnel import ops
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, broadcast_all
from runnel.random import continuous


class GeneralizedPareto(Distribution):
    """Numbers of which the share (1 + ξ·z)^(-1/ξ), exp(-z) for ξ = 0, is greater than x, with z = (x - loc)/scale; ξ is
    ``concentration``. Where that is less than 0, they end at loc - scale/ξ."""

    arg_constraints: ClassVar = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real
    }  # fmt: skip
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all("GeneralizedPareto", loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def support(self) -> Any:
        is_bounded = ops.less(self.concentration, 0)
        end = self.loc - self.scale / ops.where(is_bounded, self.concentration, -1.0)
        return constraints.interval(self.loc, ops.where(is_bounded, end, math.inf))

    def _parted(self) -> tuple[Any, Any]:
        """Whether ξ is taken for 0, and ξ, or 1 there."""
        is_zero = ops.less_equal(ops.abs(self.concentration), 1e-8)
        return is_zero, ops.where(is_zero, 1.0, self.concentration)

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of what is greater than ``value``."""
        z = (self._valid(value) - self.loc) / self.scale
        is_zero, shape = self._parted()
        near = (self.concentration * z * 0.5 - 1) * z  # to first order in ξ
        return ops.where(is_zero, near, -ops.log1p(shape * ops.where(is_zero, 0.0, z)) / shape)

    def log_cdf(self, value: Any) -> Any:
        """log cdf(value)."""
        return ops.log(self.cdf(value))

    def log_prob(self, value: Any) -> Any:
        return (self.concentration + 1) * self.log_survival_function(value) - ops.log(self.scale)

    def cdf(self, value: Any) -> Any:
        return -ops.expm1(self.log_survival_function(value))

    def icdf(self, value: Any) -> Any:
        is_zero, shape = self._parted()
        left = ops.log1p(-value)
        near = (self.concentration * left * 0.5 - 1) * left  # to first order in ξ
        return self.loc + self.scale * ops.where(is_zero, near, ops.expm1(-shape * left) / shape)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shares = continuous.uniform(0.0, 1.0, self._extended_shape(sample_shape), generator=generator, key=key)
        return self.icdf(ops.cast(shares, self.loc.dtype))

    @property
    def mean(self) -> Any:
        is_finite = ops.less(self.concentration, 1)
        shape = ops.where(is_finite, self.concentration, 0.5)
        return ops.where(is_finite, self.loc + self.scale / (1 - shape), math.nan)

    @property
    def variance(self) -> Any:
        is_finite = ops.less(self.concentration, 0.5)
        shape = ops.where(is_finite, self.concentration, 0.25)
        every = self.scale * self.scale / ((1 - shape) * (1 - shape) * (1 - shape * 2))
        return ops.where(is_finite, every, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    def entropy(self) -> Any:
        return ops.log(self.scale) + self.concentration + 1
