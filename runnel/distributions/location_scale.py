"""Location-scale distributions, their half-line versions, and distributions of angles."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from runnel import ops
from runnel.distributions import constraints
from runnel.distributions.distribution import LOG_2PI, Distribution, broadcast_all
from runnel.ops.elementwise.circular import atan, tan
from runnel.ops.elementwise.gamma import erfinv, ndtr
from runnel.random import continuous
from runnel.special.bessel import i0e, i1e

_EULER = 0.57721566490153286


class LocationScale(Distribution):
    """A base of distributions of loc + scale·z, with densities and quantiles given for z."""

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

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    def _standard(self, value: Any) -> Any:
        return (self._valid(value) - self.loc) / self.scale


class Normal(LocationScale):
    """The normal distribution with mean ``loc`` and standard deviation ``scale``."""

    _draw = staticmethod(continuous.normal)

    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale * self.scale)

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
    """The Laplace distribution, with density exp(-|x - loc|/scale) / (2·scale)."""

    _draw = staticmethod(continuous.laplace)

    stddev = property(lambda self: self.scale * math.sqrt(2))
    variance = property(lambda self: self.scale * self.scale * 2)

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
    """The Cauchy distribution, with density scale / (π·(scale² + (x - loc)²)) and no mean."""

    _draw = staticmethod(continuous.cauchy)

    mean = property(lambda self: ops.full_like(self.loc, math.nan))
    variance = property(lambda self: ops.full_like(self.loc, math.inf))

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
    """The Gumbel distribution, with distribution function exp(-exp(-(x - loc)/scale))."""

    _draw = staticmethod(continuous.gumbel)

    mean = property(lambda self: self.loc + self.scale * _EULER)
    variance = property(lambda self: self.scale * self.scale * (math.pi**2 / 6))

    def log_prob(self, value: Any) -> Any:
        z = self._standard(value)
        return -z - ops.exp(-z) - ops.log(self.scale)

    def cdf(self, value: Any) -> Any:
        return ops.exp(-ops.exp(-self._standard(value)))

    def icdf(self, value: Any) -> Any:
        return self.loc - self.scale * ops.log(-ops.log(value))

    def entropy(self) -> Any:
        return ops.log(self.scale) + (1 + _EULER)


class Half(Distribution):
    """A base of absolute values of ``base_dist`` with location 0."""

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

    mode = property(lambda self: ops.zeros_like(self.scale))

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
    """The distribution of absolute values of normal variables with mean 0."""

    _of = Normal

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale * self.scale * (1 - 2 / math.pi))


class HalfCauchy(Half):
    """The distribution of absolute values of Cauchy variables with location 0; it has no finite mean."""

    _of = Cauchy

    mean = property(lambda self: ops.full_like(self.scale, math.inf))
    variance = property(lambda self: ops.full_like(self.scale, math.inf))


class VonMises(Distribution):
    """The von Mises distribution of angles, with density proportional to exp(concentration·cos(x - loc))."""

    arg_constraints: ClassVar = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all("VonMises", loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        return continuous.vonmises(self.loc, self.concentration, shape, generator=generator, key=key)

    @property
    def mean(self) -> Any:
        """Direction of the mean of (cos x, sin x)."""
        return self.loc

    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Any:
        """1 minus the length of the mean of (cos x, sin x)."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def log_prob(self, value: Any) -> Any:
        k = self.concentration
        half = ops.sin((self._valid(value) - self.loc) / 2)
        return -(half * half) * k * 2 - math.log(2 * math.pi) - ops.log(i0e(k))

    def entropy(self) -> Any:
        k = self.concentration
        return k * (1 - i1e(k) / i0e(k)) + math.log(2 * math.pi) + ops.log(i0e(k))
