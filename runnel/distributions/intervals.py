"""Distributions over intervals."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from runnel import ops
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, broadcast_all
from runnel.distributions.trials import ByProbability
from runnel.ops.elementwise.circular import atanh
from runnel.ops.elementwise.gamma import digamma, lgamma
from runnel.random import continuous, drawing
from runnel.tensor.random import key_of

_EULER = 0.57721566490153286


class Uniform(Distribution):
    """The uniform distribution on [low, high). ValueError unless low < high."""

    arg_constraints: ClassVar = {"low": constraints.real, "high": constraints.real}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all("Uniform", low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args:
            drawing.require("Uniform", "high - low", self.high - self.low, lambda x: x > 0, "must be greater than 0")

    support = property(lambda self: constraints.interval(self.low, self.high))

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        return continuous.uniform(self.low, self.high, shape, generator=generator, key=key)

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: ops.full_like(self.high, math.nan))
    stddev = property(lambda self: (self.high - self.low) / math.sqrt(12))
    variance = property(lambda self: (self.high - self.low) * (self.high - self.low) / 12)

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        inside = ops.logical_and(ops.greater_equal(x, self.low), ops.less(x, self.high))
        return ops.where(inside, 0.0, -math.inf) - ops.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        return ops.clip((self._valid(value) - self.low) / (self.high - self.low), 0.0, 1.0)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return ops.log(self.high - self.low)


class Kumaraswamy(Distribution):
    """The Kumaraswamy distribution on (0, 1), with distribution function 1 - (1 - xᵃ)ᵇ.

    a is ``concentration1`` and b is ``concentration0``.
    """

    arg_constraints: ClassVar = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all("Kumaraswamy", concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        of = key_of(generator, key, None if key is not None else self.concentration1.device)
        return self.icdf(drawing.open_unit(of, self._extended_shape(sample_shape), self.concentration1.dtype))

    def _moment(self, order: int) -> Any:
        b, more = self.concentration0, order / self.concentration1 + 1
        return b * ops.exp(lgamma(more) + lgamma(b) - lgamma(more + b))

    mean = property(lambda self: self._moment(1))

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        inside = ops.logical_and(ops.greater_equal(a, 1), ops.greater_equal(b, 1))
        inside = ops.logical_and(inside, ops.greater(a * b, 1))
        safe_a, safe_b = ops.where(inside, a, 2), ops.where(inside, b, 2)
        return ops.where(inside, ops.pow((safe_a - 1) / (safe_a * safe_b - 1), 1 / safe_a), math.nan)

    @property
    def variance(self) -> Any:
        first = self._moment(1)
        return self._moment(2) - first * first

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        a, b = self.concentration1, self.concentration0
        return ops.log(a * b) + (a - 1) * ops.log(x) + (b - 1) * ops.log1p(-ops.pow(x, a))

    def cdf(self, value: Any) -> Any:
        rest = ops.log1p(-ops.pow(self._valid(value), self.concentration1))
        return -ops.expm1(self.concentration0 * rest)

    def icdf(self, value: Any) -> Any:
        power = -ops.expm1(ops.log1p(-value) / self.concentration0)
        return ops.pow(power, 1 / self.concentration1)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) + _EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - ops.log(a * b)


class ContinuousBernoulli(ByProbability):
    """The continuous Bernoulli distribution on [0, 1], with density proportional to pˣ·(1 - p)¹⁻ˣ.

    G. Loaiza-Ganem, J. Cunningham, "The continuous Bernoulli", 2019. Near p = ½, within ``lims``, Taylor series replace
    quotients that are 0/0 there.
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: Any = (0.499, 0.501), validate_args: bool | None = None
    ) -> None:
        self._lims = lims
        self._take(probs, logits, validate_args)

    def _near(self) -> tuple[Any, Any, Any]:
        """Return a mask of p near ½, p elsewhere, and p there."""
        p = self.probs
        is_near = ops.logical_and(ops.greater(p, self._lims[0]), ops.less(p, self._lims[1]))
        return is_near, ops.where(is_near, 0.25, p), ops.where(is_near, p - 0.5, 0)

    def _log_constant(self) -> Any:
        is_near, p, x = self._near()
        exact = ops.log(ops.abs(atanh(1 - p * 2) * 2)) - ops.log(ops.abs(1 - p * 2))
        return ops.where(is_near, math.log(2) + (4 / 3 + 104 / 45 * x * x) * x * x, exact)

    @property
    def mean(self) -> Any:
        is_near, p, x = self._near()
        exact = p / (p * 2 - 1) + 1 / (atanh(1 - p * 2) * 2)
        return ops.where(is_near, 0.5 + (1 / 3 + 16 / 45 * x * x) * x, exact)

    @property
    def variance(self) -> Any:
        is_near, p, x = self._near()
        tilt = ops.log1p(-p) - ops.log(p)
        exact = p * (p - 1) / ((1 - p * 2) * (1 - p * 2)) + 1 / (tilt * tilt)
        return ops.where(is_near, 1 / 12 - (1 / 15 - 128 / 945 * x * x) * x * x, exact)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        of = key_of(generator, key, None if key is not None else self.probs.device)
        return self.icdf(drawing.open_unit(of, self._extended_shape(sample_shape), self.probs.dtype))

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        return x * self.logits - ops.softplus(self.logits) + self._log_constant()

    def cdf(self, value: Any) -> Any:
        x = self._valid(value)
        is_near, p, _ = self._near()
        exact = (ops.pow(p, x) * ops.pow(1 - p, 1 - x) + p - 1) / (p * 2 - 1)
        return ops.clip(ops.where(is_near, x, exact), 0.0, 1.0)

    def icdf(self, value: Any) -> Any:
        is_near, p, _ = self._near()
        exact = (ops.log1p(-p + value * (p * 2 - 1)) - ops.log1p(-p)) / (ops.log(p) - ops.log1p(-p))
        return ops.where(is_near, value, exact)

    def entropy(self) -> Any:
        rest = ops.log1p(-self.probs)
        return self.mean * (rest - ops.log(self.probs)) - self._log_constant() - rest
