"""Absolute values of numbers whose distribution is symmetric about 0."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from runnel import ops
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, broadcast_all
from runnel.distributions.location_scale import Cauchy, LocationScale, Normal


class Half(Distribution):
    """What they share: they are folded from ``base_dist``, of location 0."""

    arg_constraints: ClassVar = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _of: type[LocationScale]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(type(self).__name__, scale)
        super().__init__(self.scale.shape, validate_args=validate_args)
        self.base_dist = self._of(ops.zeros_like(self.scale), self.scale, validate_args=False)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        return ops.abs(self.base_dist.rsample(sample_shape, generator=generator, key=key))

    @property
    def mode(self) -> Any:
        return ops.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        return ops.where(ops.greater_equal(x, 0), self.base_dist.log_prob(x) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        return self.base_dist.cdf(self._valid(value)) * 2 - 1

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Half):
    """Absolute values of normal numbers of mean 0 and deviation ``scale``."""

    _of = Normal

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale * self.scale * (1 - 2 / math.pi)


class HalfCauchy(Half):
    """Absolute values of Cauchy numbers of location 0; they have no finite mean."""

    _of = Cauchy

    @property
    def mean(self) -> Any:
        return ops.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Any:
        return ops.full_like(self.scale, math.inf)
