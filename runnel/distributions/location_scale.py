"""Distributions of loc + scale · z, where z has a distribution of its own."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from runnel import ops
from runnel.distributions import constraints
from runnel.distributions.distribution import LOG_2PI, Distribution, broadcast_all
from runnel.ops.library.circular import atan, tan
from runnel.ops.library.special import erfinv, ndtr
from runnel.random import continuous

_EULER = 0.57721566490153286


class LocationScale(Distribution):
    """What they share: their densities and quantiles are those of z, moved and stretched."""

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _draw: Any

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(type(self).__name__, loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        draw = type(self)._draw
        return draw(self.loc, self.scale, self._extended_shape(sample_shape), generator=generator, key=key)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    def _standard(self, value: Any) -> Any:
        return (self._valid(value) - self.loc) / self.scale


class Normal(LocationScale):
    """Normal numbers of mean ``loc`` and deviation ``scale``."""

    _draw = staticmethod(continuous.normal)

    @property
    def stddev(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        return self.scale * self.scale

    def log_prob(self, value: Any) -> Any:
        z = self._standard(value)
        return z * z * -0.5 - ops.log(self.scale) - 0.5 * LOG_2PI

    def cdf(self, value: Any) -> Any:
        return ndtr(self._standard(value))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * erfinv(value * 2 - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return ops.log(self.scale) + (0.5 + 0.5 * LOG_2PI)


class Laplace(LocationScale):
    """Numbers with the density exp(-|x - loc|/scale) / (2·scale)."""

    _draw = staticmethod(continuous.laplace)

    @property
    def stddev(self) -> Any:
        return self.scale * math.sqrt(2)

    @property
    def variance(self) -> Any:
        return self.scale * self.scale * 2

    def log_prob(self, value: Any) -> Any:
        return -ops.log(self.scale * 2) - ops.abs(self._standard(value))

    def cdf(self, value: Any) -> Any:
        z = self._standard(value)
        return 0.5 - 0.5 * ops.sign(z) * ops.expm1(-ops.abs(z))

    def icdf(self, value: Any) -> Any:
        centred = value - 0.5
        return self.loc - self.scale * ops.sign(centred) * ops.log1p(ops.abs(centred) * -2)

    def entropy(self) -> Any:
        return ops.log(self.scale * 2) + 1


class Cauchy(LocationScale):
    """Numbers with the density scale / (π·(scale² + (x - loc)²)); they have no mean."""

    _draw = staticmethod(continuous.cauchy)

    @property
    def mean(self) -> Any:
        return ops.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Any:
        return ops.full_like(self.loc, math.inf)

    def log_prob(self, value: Any) -> Any:
        z = self._standard(value)
        return -ops.log(self.scale) - math.log(math.pi) - ops.log1p(z * z)

    def cdf(self, value: Any) -> Any:
        return atan(self._standard(value)) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return tan((value - 0.5) * math.pi) * self.scale + self.loc

    def entropy(self) -> Any:
        return ops.log(self.scale) + math.log(4 * math.pi)


class Gumbel(LocationScale):
    """Numbers with the distribution function exp(-exp(-(x - loc)/scale))."""

    _draw = staticmethod(continuous.gumbel)

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * _EULER

    @property
    def variance(self) -> Any:
        return self.scale * self.scale * (math.pi**2 / 6)

    def log_prob(self, value: Any) -> Any:
        z = self._standard(value)
        return -z - ops.exp(-z) - ops.log(self.scale)

    def cdf(self, value: Any) -> Any:
        return ops.exp(-ops.exp(-self._standard(value)))

    def icdf(self, value: Any) -> Any:
        return self.loc - self.scale * ops.log(-ops.log(value))

    def entropy(self) -> Any:
        return ops.log(self.scale) + (1 + _EULER)
