"""Relaxed Bernoulli and categorical distributions, with gradients.

C. Maddison, A. Mnih, Y. Teh, "The Concrete distribution", 2016; E. Jang, S. Gu, B. Poole, "Categorical
reparameterization with Gumbel-softmax", 2016.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from runnel import ops
from runnel.distributions import constraints
from runnel.distributions.categorical import ByCategories
from runnel.distributions.distribution import broadcast_all
from runnel.distributions.transformed import TransformedDistribution
from runnel.distributions.transforms import ExpTransform, SigmoidTransform
from runnel.distributions.trials import ByProbability
from runnel.random import continuous


class LogitRelaxedBernoulli(ByProbability):
    """Logits of relaxed Bernoulli variables: (logits + logistic noise) / temperature."""

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    temperature: Any

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits, validate_args, temperature=temperature)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape, logits = self._extended_shape(sample_shape), self.logits
        return continuous.logistic(logits, 1.0, shape, generator=generator, key=key) / self.temperature

    def log_prob(self, value: Any) -> Any:
        apart = self.logits - self._valid(value) * self.temperature
        return ops.log(self.temperature) + apart - ops.softplus(apart) * 2


class _Relaxed(TransformedDistribution):
    """A base of transformed distributions with a temperature."""

    @property
    def temperature(self) -> Any:
        """Temperature."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Any:
        """Probabilities of the base distribution."""
        return self.base_dist.probs

    @property
    def logits(self) -> Any:
        """Logits of the base distribution."""
        return self.base_dist.logits


class RelaxedBernoulli(_Relaxed):
    """Numbers in (0, 1) that are close to 0 or 1 for a small ``temperature``."""

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(ByCategories):
    """Logarithms of relaxed one-hot vectors."""

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        shape = self._take(probs, logits)
        (self.temperature,) = broadcast_all("RelaxedOneHotCategorical", temperature)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> ExpRelaxedCategorical:
        temperature = self.__dict__.pop("temperature")  # of all alike
        copy = super().expand(batch_shape)
        self.temperature = copy.temperature = temperature
        return copy

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape, logits = self._extended_shape(sample_shape), self.logits
        scores = continuous.gumbel(logits, 1.0, shape, generator=generator, key=key) / self.temperature
        return scores - ops.logsumexp(scores, -1, keepdims=True)

    def log_prob(self, value: Any) -> Any:
        x, count = self._valid(value), self._num_events
        scores = self.logits - x * self.temperature
        scores = ops.sum(scores - ops.logsumexp(scores, -1, keepdims=True), -1)
        return scores + math.lgamma(count) + ops.log(self.temperature) * (count - 1)


class RelaxedOneHotCategorical(_Relaxed):
    """Probability vectors that are close to one-hot vectors for a small ``temperature``."""

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    support = property(lambda self: constraints.simplex)
