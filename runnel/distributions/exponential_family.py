"""Exponential families, by their natural parameters and the logarithm of what normalizes them."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.distributions.distribution import Distribution, sum_last
from runnel.transforms.gradients import value_and_grad


class ExponentialFamily(Distribution):
    """Distributions with the density exp(⟨t(x), θ⟩ - F(θ) + k(x)): θ are ``_natural_params``, a tuple of tensors, F is
    ``_log_normalizer(*θ)``, and the mean of k is ``_mean_carrier_measure``. A subclass defines these; its entropy and
    divergence follow from the derivatives of F."""

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise self._missing("natural parameters")

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise self._missing("log normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise self._missing("mean carrier measure")

    def normalizer_and_slopes(self) -> tuple[Any, tuple[Any, ...]]:
        """F and its derivatives by each of the natural parameters."""
        parameters = self._natural_params

        def total(natural: tuple[Any, ...]) -> Any:
            return ops.sum(self._log_normalizer(*natural))

        return self._log_normalizer(*parameters), value_and_grad(total)(parameters)[1]

    def entropy(self) -> Any:
        value, slopes = self.normalizer_and_slopes()
        own = len(self.event_shape)
        result = value - self._mean_carrier_measure
        for parameter, slope in zip(self._natural_params, slopes, strict=True):
            result = result - sum_last(parameter * slope, own)
        return result
