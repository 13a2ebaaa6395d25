"""Distributions of Bernoulli trials and counts, given a probability or its logit."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from runnel import ops
from runnel.core.dtypes import float64
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, broadcast_all, require_in
from runnel.ops.elementwise.gamma import lgamma
from runnel.ops.elementwise.numbers import xlogy
from runnel.random import counts, drawing, gamma_family
from runnel.tensor.random import key_of


class ByProbability(Distribution):
    """A base with ``probs`` and ``logits``, one of which is a parameter; other parameters broadcast with it."""

    _probs: Any = None
    _logits: Any = None

    def _take(self, probs: Any, logits: Any, validate_args: bool | None, **others: Any) -> None:
        """Set the parameter and ``others``; ValueError unless exactly one of the two is given."""
        owner = type(self).__name__
        require_one(owner, probs, logits)
        name, value = ("probs", probs) if logits is None else ("logits", logits)
        names = [f"_{name}", *others]
        tensors = broadcast_all(owner, value, *others.values())
        for each, tensor in zip(names, tensors, strict=True):
            setattr(self, each, tensor)
        Distribution.__init__(self, tensors[0].shape, validate_args=validate_args)
        if self._validate_args:
            require_in(owner, name, tensors[0], self.arg_constraints[name])

    @property
    def probs(self) -> Any:
        """Probability of success."""
        return ops.sigmoid(self._logits) if self._probs is None else self._probs

    @property
    def logits(self) -> Any:
        """Log odds, log(p / (1 - p))."""
        if self._logits is not None:
            return self._logits
        p = clamped(self._probs)
        return ops.log(p) - ops.log1p(-p)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Shape of the parameter."""
        return tuple((self._logits if self._probs is None else self._probs).shape)


def clamped(p: Any) -> Any:
    """Limit probabilities to [eps, 1 - eps], so that their logits are finite."""
    smallest = float(np.finfo(np.float64 if p.dtype is float64 else np.float32).eps)
    return ops.clip(p, smallest, 1 - smallest)


def require_one(owner: str, probs: Any, logits: Any) -> None:
    """Raise ValueError unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError(f"[{owner}] takes one of probs and logits; got {'none' if probs is None else 'both'}.")


class Bernoulli(ByProbability):
    """The Bernoulli distribution: 1 with probability ``probs`` = sigmoid(``logits``), else 0."""

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits, validate_args)

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        p = ops.stop_gradient(self.probs)
        return counts.bernoulli(p, self._extended_shape(sample_shape), generator=generator, key=key)

    mean = property(lambda self: self.probs)

    @property
    def mode(self) -> Any:
        p = self.probs
        return ops.where(ops.equal(p, 0.5), math.nan, ops.cast(ops.greater(p, 0.5), p.dtype))

    @property
    def variance(self) -> Any:
        p = self.probs
        return p * (1 - p)

    def log_prob(self, value: Any) -> Any:
        x = ops.cast(self._valid(value), self.logits.dtype)
        return x * self.logits - ops.softplus(self.logits)

    def entropy(self) -> Any:
        return ops.softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Any:
        p = self.probs
        values = ops.reshape(ops.iota(p, (2,), dtype=p.dtype), (2, *(1,) * p.ndim))
        return ops.broadcast_to(values, (2, *p.shape)) if expand else values


class Geometric(ByProbability):
    """The number of failures before the first success, each trial succeeding with probability ``probs``."""

    arg_constraints: ClassVar = {"probs": constraints.interval(2.0**-1022, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits, validate_args)

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        return counts.geometric(ops.stop_gradient(self.probs), shape, generator=generator, key=key) - 1

    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: ops.zeros_like(self.probs))
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def log_prob(self, value: Any) -> Any:
        x, p = self._valid(value), self.probs
        is_certain = ops.logical_and(ops.equal(p, 1), ops.equal(x, 0))
        return x * ops.log1p(-ops.where(is_certain, 0.0, p)) + ops.log(p)

    def entropy(self) -> Any:
        p = self.probs
        return (ops.softplus(self.logits) - p * self.logits) / p


class Binomial(ByProbability):
    """The number of successes in ``total_count`` trials with probability ``probs``."""

    arg_constraints: ClassVar = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real
    }  # fmt: skip
    has_enumerate_support = True
    total_count: Any

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits, validate_args, total_count=total_count)

    support = property(lambda self: constraints.integer_interval(0, self.total_count))

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        p = ops.stop_gradient(self.probs)
        return counts.binomial(self.total_count, p, self._extended_shape(sample_shape), generator=generator, key=key)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ops.minimum(ops.floor((self.total_count + 1) * self.probs), self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def log_prob(self, value: Any) -> Any:
        x, n = self._valid(value), self.total_count
        ways = lgamma(n + 1) - lgamma(x + 1) - lgamma(n - x + 1)
        return ways + x * self.logits - n * ops.softplus(self.logits)

    def entropy(self) -> Any:
        log_prob = self.log_prob(self.enumerate_support(False))
        return -ops.sum(ops.exp(log_prob) * log_prob, 0)

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values; ValueError unless the counts are known and all equal."""
        known = drawing.known_values(self.total_count)
        if known is None or not known.size or known.min() != known.max():
            raise ValueError("[Binomial] values are enumerated where total_count is known, and the same for all.")
        n, p = int(known.max()), self.probs
        values = ops.reshape(ops.iota(p, (n + 1,), dtype=p.dtype), (n + 1, *(1,) * p.ndim))
        return ops.broadcast_to(values, (n + 1, *p.shape)) if expand else values


class NegativeBinomial(ByProbability):
    """The number of successes with probability ``probs`` before ``total_count`` failures.

    ``total_count`` need not be an integer.
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.nonnegative, "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer
    total_count: Any

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits, validate_args, total_count=total_count)

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        n, odds = ops.stop_gradient(self.total_count), ops.exp(ops.stop_gradient(self.logits))
        of = key_of(generator, key, None if key is not None else n.device)
        means = gamma_family.gamma(n, odds, self._extended_shape(sample_shape), key=ops.fold_in(of, 0))
        return counts.poisson(means, key=ops.fold_in(of, 1))

    mean = property(lambda self: self.total_count * ops.exp(self.logits))
    mode = property(lambda self: ops.maximum(ops.floor((self.total_count - 1) * ops.exp(self.logits)), 0))
    variance = property(lambda self: self.mean / ops.sigmoid(-self.logits))

    def log_prob(self, value: Any) -> Any:
        x, n = self._valid(value), self.total_count
        is_never = ops.equal(n + x, 0)
        ways = lgamma(ops.where(is_never, 1.0, n + x)) - lgamma(x + 1) - lgamma(ops.where(is_never, 1.0, n))
        return ways - n * ops.softplus(self.logits) - x * ops.softplus(-self.logits)


class Poisson(Distribution):
    """The Poisson distribution with mean ``rate``."""

    arg_constraints: ClassVar = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all("Poisson", rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        return counts.poisson(self.rate, self._extended_shape(sample_shape), generator=generator, key=key)

    mean = property(lambda self: self.rate)
    mode = property(lambda self: ops.floor(self.rate))
    variance = property(lambda self: self.rate)

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        return xlogy(x, self.rate) - self.rate - lgamma(x + 1)
