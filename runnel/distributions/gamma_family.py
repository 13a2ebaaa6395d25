"""Distributions of positive numbers: gamma and its relatives, Weibull and Pareto distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from runnel import ops
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, broadcast_all
from runnel.ops.elementwise.gamma import digamma, lgamma
from runnel.ops.elementwise.numbers import xlogy
from runnel.random import continuous, gamma_family as drawn
from runnel.random.incomplete_gamma import gammainc, gammaincc

_EULER = 0.57721566490153286


class Exponential(Distribution):
    """The exponential distribution, with density rate·exp(-rate·x)."""

    arg_constraints: ClassVar = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all("Exponential", rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        return continuous.exponential(1 / self.rate, self._extended_shape(sample_shape), generator=generator, key=key)

    mean = property(lambda self: 1 / self.rate)
    mode = property(lambda self: ops.zeros_like(self.rate))
    stddev = property(lambda self: 1 / self.rate)
    variance = property(lambda self: 1 / (self.rate * self.rate))

    def log_prob(self, value: Any) -> Any:
        return ops.log(self.rate) - self.rate * self._valid(value)

    def cdf(self, value: Any) -> Any:
        return -ops.expm1(-self.rate * self._valid(value))

    def icdf(self, value: Any) -> Any:
        return -ops.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1 - ops.log(self.rate)


class Gamma(Distribution):
    """The gamma distribution, with density proportional to x^(concentration - 1)·exp(-rate·x).

    Gradients of samples are implicit: see docs/train/random.md.
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(type(self).__name__, concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn_numbers = drawn.gamma(self.concentration, 1 / self.rate, shape, generator=generator, key=key)
        smallest = 2.0**-1022 if drawn_numbers.dtype.name == "float64" else 2.0**-126
        return ops.maximum(drawn_numbers, smallest)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ops.maximum(self.concentration - 1, 0) / self.rate)
    variance = property(lambda self: self.concentration / (self.rate * self.rate))

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        power = xlogy(self.concentration - 1, x)
        return xlogy(self.concentration, self.rate) + power - self.rate * x - lgamma(self.concentration)

    def cdf(self, value: Any) -> Any:
        return gammainc(self.concentration, self.rate * self._valid(value))

    def entropy(self) -> Any:
        a = self.concentration
        return a - ops.log(self.rate) + lgamma(a) + (1 - a) * digamma(a)


class Chi2(Gamma):
    """The chi-square distribution: sums of squares of ``df`` normal variables."""

    arg_constraints: ClassVar = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (self.df,) = broadcast_all("Chi2", df)
        super().__init__(self.df * 0.5, 0.5, validate_args=validate_args)


class InverseGamma(Distribution):
    """The distribution of inverses of gamma variables with ``concentration`` and ``rate``."""

    arg_constraints: ClassVar = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all("InverseGamma", concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)
        self.base_dist = Gamma(self.concentration, self.rate, validate_args=False)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        return 1 / self.base_dist.rsample(sample_shape, generator=generator, key=key)

    @property
    def mean(self) -> Any:
        return ops.where(ops.greater(self.concentration, 1), self.rate / (self.concentration - 1), math.inf)

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Any:
        a = self.concentration
        finite = self.rate * self.rate / ((a - 1) * (a - 1) * (a - 2))
        return ops.where(ops.greater(a, 2), finite, math.inf)

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        return self.base_dist.log_prob(1 / x) - ops.log(x) * 2

    def cdf(self, value: Any) -> Any:
        return gammaincc(self.concentration, self.rate / self._valid(value))

    def entropy(self) -> Any:
        a = self.concentration
        return a + ops.log(self.rate) + lgamma(a) - (1 + a) * digamma(a)


class Weibull(Distribution):
    """The Weibull distribution, with distribution function 1 - exp(-(x/scale)^concentration)."""

    arg_constraints: ClassVar = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all("Weibull", scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        return continuous.weibull(self.concentration, shape, generator=generator, key=key) * self.scale

    def _moment(self, order: int) -> Any:
        return ops.exp(lgamma(order / self.concentration + 1))

    mean = property(lambda self: self.scale * self._moment(1))

    @property
    def mode(self) -> Any:
        a = ops.maximum(self.concentration, 1)
        return self.scale * ops.pow((a - 1) / a, 1 / a)

    @property
    def variance(self) -> Any:
        first = self._moment(1)
        return self.scale * self.scale * (self._moment(2) - first * first)

    def log_prob(self, value: Any) -> Any:
        z = self._valid(value) / self.scale
        a = self.concentration
        return ops.log(a / self.scale) + (a - 1) * ops.log(z) - ops.pow(z, a)

    def cdf(self, value: Any) -> Any:
        return -ops.expm1(-ops.pow(self._valid(value) / self.scale, self.concentration))

    def icdf(self, value: Any) -> Any:
        return self.scale * ops.pow(-ops.log1p(-value), 1 / self.concentration)

    def entropy(self) -> Any:
        return (1 - 1 / self.concentration) * _EULER + ops.log(self.scale / self.concentration) + 1


class Pareto(Distribution):
    """The Pareto distribution, with distribution function 1 - (scale/x)^alpha for x ≥ scale."""

    arg_constraints: ClassVar = {"scale": constraints.positive, "alpha": constraints.positive}
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all("Pareto", scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    support = property(lambda self: constraints.greater_than_eq(self.scale))

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        return (continuous.pareto(self.alpha, shape, generator=generator, key=key) + 1) * self.scale

    @property
    def mean(self) -> Any:
        a = self.alpha
        return ops.where(ops.greater(a, 1), a * self.scale / (a - 1), math.inf)

    mode = property(lambda self: self.scale)

    @property
    def variance(self) -> Any:
        a = self.alpha
        return ops.where(ops.greater(a, 2), self.scale * self.scale * a / ((a - 1) * (a - 1) * (a - 2)), math.inf)

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        return ops.log(self.alpha) + self.alpha * ops.log(self.scale) - (self.alpha + 1) * ops.log(x)

    def cdf(self, value: Any) -> Any:
        return 1 - ops.pow(self.scale / self._valid(value), self.alpha)

    def icdf(self, value: Any) -> Any:
        return self.scale * ops.exp(-ops.log1p(-value) / self.alpha)

    def entropy(self) -> Any:
        return ops.log(self.scale / self.alpha) + 1 + 1 / self.alpha


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution, of values above a high threshold (J. Pickands, 1975).

    With z = (x - loc)/scale, values exceed x with probability (1 + ξ·z)^(-1/ξ), or exp(-z) for ξ = 0; ξ is
    ``concentration``. If ξ < 0, values end at loc - scale/ξ.
    """

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
        """Return a mask of ξ taken as 0, and ξ, replaced by 1 there."""
        is_zero = ops.less_equal(ops.abs(self.concentration), 1e-8)
        return is_zero, ops.where(is_zero, 1.0, self.concentration)

    def log_survival_function(self, value: Any) -> Any:
        """Return the log probability of values above ``value``."""
        z = (self._valid(value) - self.loc) / self.scale
        is_zero, shape = self._parted()
        near = (self.concentration * z * 0.5 - 1) * z  # to first order in ξ
        return ops.where(is_zero, near, -ops.log1p(shape * ops.where(is_zero, 0.0, z)) / shape)

    def log_cdf(self, value: Any) -> Any:
        """Return log cdf(value)."""
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

    mode = property(lambda self: self.loc)

    def entropy(self) -> Any:
        return ops.log(self.scale) + self.concentration + 1
