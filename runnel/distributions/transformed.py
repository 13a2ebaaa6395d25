"""Distributions derived from others: transformed values, independent batches as one event, and mixtures."""

from __future__ import annotations

from typing import Any, ClassVar

from runnel import ops
from runnel.core.errors import ArgumentError, ShapeError
from runnel.distributions import constraints
from runnel.distributions.categorical import Categorical
from runnel.distributions.distribution import Distribution, chosen, sum_last
from runnel.distributions.location_scale import Normal
from runnel.distributions.transforms import ComposeTransform, ExpTransform, StickBreakingTransform, Transform
from runnel.tensor.grad_mode import run_recording
from runnel.tensor.random import key_of


class Independent(Distribution):
    """``base_distribution`` with its last ``reinterpreted_batch_ndims`` batch axes as part of a value.

    The probability of a value is the product of the probabilities of its parts.
    """

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

    support = property(lambda self: constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims))

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        return self.base_dist.sample(sample_shape, **chosen(generator, key))

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        return self.base_dist.rsample(sample_shape, **chosen(generator, key))

    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def log_prob(self, value: Any) -> Any:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)


class TransformedDistribution(Distribution):
    """The distribution of values of ``base_distribution`` after one or more ``transforms``.

    The density is the base density of the argument divided by the stretching of volumes.
    """

    base_dist: Any

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(part, Transform) for part in parts):
            raise ArgumentError(f"[TransformedDistribution] transforms must be Transforms; got {transforms!r}.")
        self.transforms = parts
        whole = ComposeTransform(parts)
        base_shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        dim = whole.domain.event_dim
        if len(base_shape) < dim:
            raise ShapeError(f"[TransformedDistribution] values must have {dim} axes; the base has shape {base_shape}.")
        forward = tuple(whole.forward_shape(base_shape))
        expanded = tuple(whole.inverse_shape(forward))
        if expanded != base_shape:
            batch = expanded[: len(expanded) - len(base_distribution.event_shape)]
            base_distribution = base_distribution.expand(batch)
        more = dim - len(base_distribution.event_shape)
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        change = whole.codomain.event_dim - dim
        event_dim = max(len(self.base_dist.event_shape) + change, whole.codomain.event_dim)
        cut = len(forward) - event_dim
        super().__init__(forward[:cut], forward[cut:], validate_args)

    @property
    def has_rsample(self) -> Any:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        more = len(self.event_shape) - last.event_dim
        return constraints.independent(last, more) if more > 0 else last

    def expand(self, batch_shape: Any, _instance: Any = None) -> TransformedDistribution:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        shape = tuple(batch_shape)
        inner = tuple(ComposeTransform(self.transforms).inverse_shape((*shape, *self.event_shape)))
        copy.base_dist = self.base_dist.expand(inner[: len(inner) - len(self.base_dist.event_shape)])
        copy._batch_shape = shape
        return copy

    def _transformed(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        drawn = self.base_dist.sample(sample_shape, **chosen(generator, key))
        return ops.stop_gradient(run_recording(False, self._transformed, drawn))

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        return self._transformed(self.base_dist.rsample(sample_shape, **chosen(generator, key)))

    def log_prob(self, value: Any) -> Any:
        y = self._valid(value)
        event_dim = len(self.event_shape)
        stretched: Any = 0.0
        for transform in reversed(self.transforms):
            x = transform._inverse(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(x, y)
            stretched = stretched - sum_last(slope, event_dim - transform.domain.event_dim)
            y = x
        own = len(self.base_dist.event_shape)
        return sum_last(self.base_dist.log_prob(y), event_dim - own) + stretched

    def _sign(self) -> Any:
        return ComposeTransform(self.transforms).sign

    def cdf(self, value: Any) -> Any:
        y = self._valid(value)
        for transform in reversed(self.transforms):
            y = transform._inverse(y)
        return (self.base_dist.cdf(y) - 0.5) * self._sign() + 0.5

    def icdf(self, value: Any) -> Any:
        return self._transformed(self.base_dist.icdf((value - 0.5) * self._sign() + 0.5))


class LogNormal(TransformedDistribution):
    """The distribution of exp(x) for normal x with mean ``loc`` and standard deviation ``scale``."""

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Any:
        """Mean of the logarithms."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """Standard deviation of the logarithms."""
        return self.base_dist.scale

    mean = property(lambda self: ops.exp(self.loc + self.scale * self.scale / 2))
    mode = property(lambda self: ops.exp(self.loc - self.scale * self.scale))

    @property
    def variance(self) -> Any:
        square = self.scale * self.scale
        return ops.expm1(square) * ops.exp(self.loc * 2 + square)

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Vectors of n + 1 probabilities made from n normal variables by stick breaking."""

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Any:
        """Means of the normal variables."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """Standard deviations of the normal variables."""
        return self.base_dist.base_dist.scale


class MixtureSameFamily(Distribution):
    """A mixture of the components along the last batch axis of ``component_distribution``.

    ``mixture_distribution``, a Categorical, has their probabilities.
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(
                f"[MixtureSameFamily] the mixture must be a Categorical; got {type(mixture_distribution).__name__}."
            )
        batch = component_distribution.batch_shape
        if not batch or batch[-1] != mixture_distribution.param_shape[-1]:
            raise ShapeError(
                f"[MixtureSameFamily] {mixture_distribution.param_shape[-1]} categories go with as many components on "
                f"the last batch axis; got the batch shape {batch}."
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

    support = property(lambda self: self.component_distribution.support)

    def _weighted(self, values: Any) -> Any:
        """Return the mean of the components' ``values``."""
        weights = self.mixture_distribution.probs
        spread = ops.reshape(weights, (*weights.shape, *(1,) * len(self.event_shape)))
        return ops.sum(spread * values, -1 - len(self.event_shape))

    mean = property(lambda self: self._weighted(self.component_distribution.mean))

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
