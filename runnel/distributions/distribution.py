"""The base classes of distributions: shapes, argument checks, sampling, and exponential families."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

from runnel import ops
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import float32
from runnel.core.errors import ShapeError
from runnel.distributions.constraints import Constraint
from runnel.ops.arguments import as_sizes, broadcast_shapes
from runnel.ops.elementwise.arithmetic import add_p
from runnel.ops.promotion import common_dtype
from runnel.random.drawing import as_parameter, known_values
from runnel.tensor.creation import asarray
from runnel.tensor.effects import require_at_run
from runnel.tensor.grad_mode import run_recording
from runnel.tensor.tensor import Tensor
from runnel.transforms.gradients import value_and_grad

Shape = tuple[int, ...]


class Distribution:
    """A probability distribution, or a batch of them.

    ``batch_shape`` is the shape of the batch and ``event_shape`` the shape of one value.

    Args:
        validate_args: check parameters, and values passed to ``log_prob`` and ``cdf``, if they are known; tensors
            inside loops and branches are not. Compiled programs check them before they change anything, except for
            positive definite matrices. True by default; see :meth:`set_default_validate_args`.

    A subclass has ``arg_constraints``, sets its parameters as attributes before it calls this constructor, and defines
    ``rsample`` (whose gradients reach the parameters) or ``sample``, ``log_prob``, ``support`` and moments.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    _validates = True

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape = as_sizes("Distribution", batch_shape)
        self._event_shape = as_sizes("Distribution", event_shape)
        self._validate_args = Distribution._validates if validate_args is None else bool(validate_args)
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if isinstance(self.__dict__.get(name), TensorLike):
                    require_in(type(self).__name__, name, self.__dict__[name], constraint)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set the default of ``validate_args``."""
        Distribution._validates = bool(value)

    @property
    def batch_shape(self) -> Shape:
        """Shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Shape:
        """Shape of one value."""
        return self._event_shape

    @property
    def support(self) -> Any:
        """Constraint that values satisfy."""
        raise self._missing("support")

    # Moments ----------------------------------------------------------------------------------------------------------

    @property
    def mean(self) -> Any:
        """Mean."""
        raise self._missing("mean")

    @property
    def mode(self) -> Any:
        """Most probable value, or the value of highest density."""
        raise self._missing("mode")

    @property
    def variance(self) -> Any:
        """Variance."""
        raise self._missing("variance")

    @property
    def stddev(self) -> Any:
        """Standard deviation."""
        return ops.sqrt(self.variance)

    # Values -----------------------------------------------------------------------------------------------------------

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        """Draw values of shape sample_shape + batch_shape + event_shape without gradients.

        ``key`` and ``generator`` are used as in ``rn.random``.
        """
        return ops.stop_gradient(run_recording(False, self.rsample, sample_shape, **chosen(generator, key)))

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        """Draw values like :meth:`sample`, with gradients that reach the parameters."""
        raise self._missing("rsample")

    def sample_n(self, n: int) -> Any:
        """Return ``sample((n,))``."""
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """Return the log probability, or log density, of ``value``."""
        raise self._missing("log_prob")

    def cdf(self, value: Any) -> Any:
        """Return the probability of values up to ``value``."""
        raise self._missing("cdf")

    def icdf(self, value: Any) -> Any:
        """Return the quantile of probability ``value``."""
        raise self._missing("icdf")

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values, along a new first axis."""
        raise self._missing("enumerate_support")

    def entropy(self) -> Any:
        """Return the mean of -log_prob."""
        raise self._missing("entropy")

    def perplexity(self) -> Any:
        """Return exp(entropy)."""
        return ops.exp(self.entropy())

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """Return the distribution with its parameters expanded to ``batch_shape``."""
        shape = as_sizes("expand", batch_shape)
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        for name, value in self.__dict__.items():
            if isinstance(value, TensorLike):
                own = value.shape[len(self._batch_shape) :]
                copy.__dict__[name] = ops.broadcast_to(value, (*shape, *own))
            elif isinstance(value, Distribution):
                own = value.batch_shape[len(self._batch_shape) :]
                copy.__dict__[name] = value.expand((*shape, *own))
        copy._batch_shape = shape
        return copy

    # For subclasses ---------------------------------------------------------------------------------------------------

    def _extended_shape(self, sample_shape: Any = ()) -> Shape:
        return (*as_sizes("sample", sample_shape), *self._batch_shape, *self._event_shape)

    def _valid(self, value: Any) -> Any:
        """Return ``value`` as a tensor; ValueError if it is known to be outside the support."""
        tensor = asarray(value)
        if self._validate_args:
            name = type(self).__name__
            if self._event_shape and tensor.shape[len(tensor.shape) - len(self._event_shape) :] != self._event_shape:
                raise ShapeError(f"[{name}] value must have shape {self._event_shape}; got {tensor.shape}.")
            broadcast_shapes(name, tensor.shape, (*self._batch_shape, *self._event_shape))
            require_in(name, "value", tensor, self.support)
        return tensor

    def _validate_sample(self, value: Any) -> None:
        """Raise ValueError if ``value`` is outside the support, for subclasses written for PyTorch."""
        self._valid(value)

    def _missing(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"[{type(self).__name__}] has no {what}.")

    def __repr__(self) -> str:
        shapes = [f"{name}: {tuple(x.shape)}" for name, x in self.__dict__.items() if name in self.arg_constraints]
        return f"{type(self).__name__}({', '.join(shapes)})"


def chosen(generator: Any, key: Any) -> dict[str, Any]:
    """Return the arguments that are not None, because users' distributions may not take them."""
    return {name: value for name, value in (("generator", generator), ("key", key)) if value is not None}


def require_in(owner: str, name: str, value: Any, constraint: Constraint) -> None:
    """Raise ValueError unless ``value`` satisfies the constraint.

    If a compiled program computes the value, the program checks it, unless the check has to factorize matrices.
    """
    if value.ndim < constraint.event_dim:
        raise ShapeError(f"[{owner}] {name} must have at least {constraint.event_dim} axes; got shape {value.shape}.")
    if known_values(value) is None:
        if not constraint.factorizes:
            require_at_run(lambda: constraint.check(value), f"[{owner}] {name} must be {constraint.description}")
        return
    inside = known_values(run_recording(False, constraint.check, value))
    if inside is not None and not inside.all():
        values = value.numpy()
        wrong = values[~inside].reshape(-1)[:4].tolist() if values.shape == inside.shape else values.tolist()
        raise ValueError(f"[{owner}] {name} must be {constraint.description}; got {wrong}.")


def broadcast_all(owner: str, *values: Any) -> list[Tensor]:
    """Return the parameters of a distribution as tensors of one float dtype and shape."""
    arrays = [as_parameter(x) for x in values]
    tensors = [x for x in arrays if isinstance(x, Tensor)]
    dtype = common_dtype(add_p, tuple(tensors)) if tensors else float32
    dtype = dtype if dtype.is_float else float32
    device = tensors[0].device if tensors else None
    same = [ops.cast(x, dtype) if isinstance(x, Tensor) else asarray(x, dtype, device=device) for x in arrays]
    shape = broadcast_shapes(owner, *(x.shape for x in same))
    return [ops.broadcast_to(x, shape) for x in same]


def sum_last(x: Any, count: int) -> Any:
    """Sum over the last ``count`` axes."""
    return ops.sum(x, tuple(range(-count, 0))) if count else x


LOG_2PI = math.log(2 * math.pi)


class ExponentialFamily(Distribution):
    """Distributions with the density exp(⟨t(x), θ⟩ - F(θ) + k(x)).

    A subclass defines θ as ``_natural_params``, a tuple of tensors, F as ``_log_normalizer(*θ)``, and the mean of k as
    ``_mean_carrier_measure``. Its entropy and divergence follow from the derivatives of F.
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise self._missing("natural parameters")

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise self._missing("log normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise self._missing("mean carrier measure")

    def normalizer_and_slopes(self) -> tuple[Any, tuple[Any, ...]]:
        """Return F and its derivatives by each natural parameter."""
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
