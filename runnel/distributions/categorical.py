"""Distributions over categories, with probabilities or logits along the last axis of a parameter."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, broadcast_all
from runnel.distributions.trials import clamped, require_one
from runnel.ops.arguments import broadcast_shapes
from runnel.ops.elementwise.gamma import lgamma
from runnel.ops.elementwise.numbers import xlogy
from runnel.ops.reductions.cumulative import cumsum
from runnel.random import categories, counts
from runnel.random.drawing import require
from runnel.tensor.random import key_of


class ByCategories(Distribution):
    """A base with normalized ``probs`` and their logarithms ``logits``, one of which is a parameter."""

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _probs: Any = None
    _logits: Any = None

    def _take(self, probs: Any, logits: Any) -> tuple[int, ...]:
        """Set the parameter and return its shape; ValueError unless exactly one is given and has categories."""
        owner = type(self).__name__
        require_one(owner, probs, logits)
        name, value = ("probs", probs) if logits is None else ("logits", logits)
        (tensor,) = broadcast_all(owner, value)
        if not tensor.ndim or not tensor.shape[-1]:
            raise ShapeError(f"[{owner}] {name} must have an element for each category; got shape {tensor.shape}.")
        if logits is None:
            total = ops.sum(tensor, -1, keepdims=True)
            require(owner, "an element of probs", tensor, lambda x: x >= 0, "must not be negative")
            require(owner, "the sum of probs", total, lambda x: (x > 0) & (x < math.inf), "is finite and not 0")
            self._probs = tensor / total
        else:
            require(owner, "an element of logits", tensor, lambda x: x == x, "must be a number")
            self._logits = tensor - ops.logsumexp(tensor, -1, keepdims=True)
        return tuple(tensor.shape)

    @property
    def probs(self) -> Any:
        """Probabilities of the categories."""
        return ops.softmax(self._logits, -1) if self._probs is None else self._probs

    @property
    def logits(self) -> Any:
        """Log probabilities of the categories."""
        return ops.log(clamped(self._probs)) if self._logits is None else self._logits

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Shape of the parameter."""
        return tuple((self._logits if self._probs is None else self._probs).shape)

    @property
    def _num_events(self) -> int:
        return self.param_shape[-1]

    def _drawn(self, sample_shape: Any, generator: Any, key: Any) -> Any:
        logits = ops.stop_gradient(self._gumbel_logits())
        return categories.categorical(logits, sample_shape, generator=generator, key=key)

    def _gumbel_logits(self) -> Any:
        return self._logits if self._probs is None else ops.log(self._probs)  # what has probability 0 is never drawn

    def entropy(self) -> Any:
        lowest = -3.4028234663852886e38
        return -ops.sum(ops.maximum(self.logits, lowest) * self.probs, -1)


class Categorical(ByCategories):
    """Category numbers, int64, with normalized probabilities ``probs`` or softmax of ``logits``."""

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        shape = self._take(probs, logits)
        super().__init__(shape[:-1], validate_args=validate_args)

    support = property(lambda self: constraints.integer_interval(0, self._num_events - 1))

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        return self._drawn(sample_shape, generator, key)

    mean = property(lambda self: ops.full_like(self.probs, math.nan, self.batch_shape))
    mode = property(lambda self: ops.argmax(self.probs, -1))
    variance = property(lambda self: ops.full_like(self.probs, math.nan, self.batch_shape))

    def log_prob(self, value: Any) -> Any:
        x, logits = ops.cast(self._valid(value), "int64"), self.logits
        shape = broadcast_shapes("Categorical", x.shape, self.batch_shape)
        rows = ops.broadcast_to(logits, (*shape, self._num_events))
        places = ops.expand_dims(ops.broadcast_to(x, shape), -1)
        return ops.take_along_axis(rows, places, -1)[..., 0]

    def enumerate_support(self, expand: bool = True) -> Any:
        count = self._num_events
        values = ops.reshape(ops.iota(self.probs, (count,)), (count, *(1,) * len(self.batch_shape)))
        return ops.broadcast_to(values, (count, *self.batch_shape)) if expand else values


class OneHotCategorical(ByCategories):
    """One-hot vectors of random categories."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        shape = self._take(probs, logits)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        return self._one_hot(self._drawn(sample_shape, generator, key))

    def _one_hot(self, places: Any) -> Any:
        return ops.cast(ops.one_hot(places, self._num_events), self.probs.dtype)

    mean = property(lambda self: self.probs)
    mode = property(lambda self: self._one_hot(ops.argmax(self.probs, -1)))
    variance = property(lambda self: self.probs * (1 - self.probs))

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        return ops.sum(ops.where(ops.equal(x, 0), 0.0, self.logits) * x, -1)

    def enumerate_support(self, expand: bool = True) -> Any:
        count = self._num_events
        values = self._one_hot(ops.iota(self.probs, (count,)))
        values = ops.reshape(values, (count, *(1,) * len(self.batch_shape), count))
        return ops.broadcast_to(values, (count, *self.batch_shape, count)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors with the gradients of the probabilities.

    Y. Bengio, N. Léonard, A. Courville, "Estimating or propagating gradients through stochastic neurons", 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        drawn = self.sample(sample_shape, generator=generator, key=key)
        return drawn + (self.probs - ops.stop_gradient(self.probs))


class Multinomial(ByCategories):
    """Counts of each category in ``total_count`` draws, an int."""

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int) or total_count < 0:
            raise ValueError(f"[Multinomial] total_count must be an int that is not negative; got {total_count!r}.")
        self.total_count = total_count
        shape = self._take(probs, logits)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    support = property(lambda self: constraints.multinomial(self.total_count))

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        """Draw a binomial count for each category in turn from the remaining draws."""
        shape = self._extended_shape(sample_shape)[:-1]
        probs = ops.stop_gradient(self.probs)
        of = key_of(generator, key, None if key is not None else probs.device)
        left = ops.full_like(probs, float(self.total_count), shape)
        rest = ops.flip(cumsum(ops.flip(probs, -1), -1), -1)
        drawn = []
        for i in range(self._num_events - 1):
            share = ops.clip(probs[..., i] / ops.where(ops.greater(rest[..., i], 0), rest[..., i], 1.0), 0.0, 1.0)
            drawn.append(counts.binomial(left, share, shape, key=ops.fold_in(of, i)))
            left = left - drawn[-1]
        return ops.stack([*drawn, left], -1)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.probs * (1 - self.probs) * self.total_count)

    def log_prob(self, value: Any) -> Any:
        x = self._valid(value)
        logits = ops.where(ops.logical_and(ops.equal(x, 0), ops.equal(self.logits, -math.inf)), 0.0, self.logits)
        ways = lgamma(ops.sum(x, -1) + 1) - ops.sum(lgamma(x + 1), -1)
        return ways + ops.sum(x * logits, -1)

    def entropy(self) -> Any:
        """Return n·H(p) - log n! + Σ over categories and counts of P(count)·log count!"""
        n = self.total_count
        probs = self.probs
        values = ops.reshape(ops.iota(probs, (n + 1,), dtype=probs.dtype), (n + 1, *(1,) * probs.ndim))
        ways = math.lgamma(n + 1) - lgamma(values + 1) - lgamma(n - values + 1)
        chance = ops.exp(ways + xlogy(values, probs) + xlogy(n - values, 1 - probs))
        spread = ops.sum(ops.sum(chance * lgamma(values + 1), 0), -1)
        return super().entropy() * n - math.lgamma(n + 1) + spread
