"""Mixtures: values of one of several distributions, chosen at random."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.errors import ArgumentError, ShapeError
from runnel.distributions.categorical import Categorical
from runnel.distributions.distribution import Distribution
from runnel.tensor.random import key_of


class MixtureSameFamily(Distribution):
    """The components are the last batch axis of ``component_distribution``; ``mixture_distribution``, a Categorical,
    says how likely each is."""

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(
                f"[MixtureSameFamily] the mixture is a Categorical; received {type(mixture_distribution).__name__}."
            )
        batch = component_distribution.batch_shape
        if not batch or batch[-1] != mixture_distribution.param_shape[-1]:
            raise ShapeError(
                f"[MixtureSameFamily] {mixture_distribution.param_shape[-1]} categories go with as many components on "
                f"the last batch axis; received the batch shape {batch}."
            )
        self.mixture_distribution = mixture_distribution.expand(batch[:-1])
        self.component_distribution = component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> MixtureSameFamily:
        shape = tuple(batch_shape)
        count = self.component_distribution.batch_shape[-1]
        return MixtureSameFamily(
            self.mixture_distribution.expand(shape), self.component_distribution.expand((*shape, count)),
            self._validate_args,
        )  # fmt: skip

    @property
    def support(self) -> Any:
        return self.component_distribution.support

    def _weighted(self, values: Any) -> Any:
        """The mean of the components' ``values``."""
        weights = self.mixture_distribution.probs
        spread = ops.reshape(weights, (*weights.shape, *(1,) * len(self.event_shape)))
        return ops.sum(spread * values, -1 - len(self.event_shape))

    @property
    def mean(self) -> Any:
        return self._weighted(self.component_distribution.mean)

    @property
    def variance(self) -> Any:
        means = self.component_distribution.mean
        apart = means - ops.expand_dims(self.mean, -1 - len(self.event_shape))
        return self._weighted(self.component_distribution.variance + apart * apart)

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        weights = self.mixture_distribution.probs
        of = key_of(generator, key, None if key is not None else weights.device)
        chosen = self.mixture_distribution.sample(sample_shape, key=ops.fold_in(of, 0))
        every = self.component_distribution.sample(sample_shape, key=ops.fold_in(of, 1))
        axis = every.ndim - 1 - len(self.event_shape)
        places = ops.reshape(chosen, (*chosen.shape, *(1,) * (1 + len(self.event_shape))))
        places = ops.broadcast_to(places, (*every.shape[:axis], 1, *self.event_shape))
        return ops.reshape(ops.take_along_axis(every, places, axis), (*chosen.shape, *self.event_shape))

    def _of_each(self, value: Any) -> Any:
        return ops.expand_dims(self._valid(value), -1 - len(self.event_shape))

    def log_prob(self, value: Any) -> Any:
        each = self.component_distribution.log_prob(self._of_each(value))
        return ops.logsumexp(each + ops.log_softmax(self.mixture_distribution.logits, -1), -1)

    def cdf(self, value: Any) -> Any:
        each = self.component_distribution.cdf(self._of_each(value))
        return ops.sum(each * self.mixture_distribution.probs, -1)
