"""Batches of distributions that together are one of larger values."""

from __future__ import annotations

from typing import Any

from runnel.core.errors import ShapeError
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, chosen, sum_last


class Independent(Distribution):
    """``base_distribution`` with its last ``reinterpreted_batch_ndims`` batch axes as part of a value: the probability
    of a value is the product of those of its parts."""

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        count = reinterpreted_batch_ndims
        if not 0 <= count <= len(base_distribution.batch_shape):
            raise ShapeError(
                f"[Independent] {count} axes cannot be taken of the batch shape {base_distribution.batch_shape}."
            )
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        cut = len(base_distribution.batch_shape) - count
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = count
        super().__init__(shape[:cut], shape[cut:], validate_args)

    @property
    def has_rsample(self) -> Any:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> Any:
        return constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        return self.base_dist.sample(sample_shape, **chosen(generator, key))

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        return self.base_dist.rsample(sample_shape, **chosen(generator, key))

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Any:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)
