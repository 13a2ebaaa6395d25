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
    """A distribution of probability, or a batch of them: ``batch_shape`` counts distributions, and ``event_shape`` is
    the shape of one value.

    Args:
        validate_args: check parameters, and values given to ``log_prob`` and ``cdf``, where they are known: not those
            of tensors in the bodies of loops and branches. Programs check them before they change anything, but for
            positive definite matrices. On unless :meth:`set_default_validate_args` says otherwise.

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
        """Whether distributions made from now on check their arguments."""
        Distribution._validates = bool(value)

    @property
    def batch_shape(self) -> Shape:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Shape:
        """The shape of one value."""
        return self._event_shape

    @property
    def support(self) -> Any:
        """The constraint that values fulfil."""
        raise self._missing("support")

    # Moments ----------------------------------------------------------------------------------------------------------

    @property
    def mean(self) -> Any:
        """The mean."""
        raise self._missing("mean")

    @property
    def mode(self) -> Any:
        """The value of the greatest probability or density."""
        raise self._missing("mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise self._missing("variance")

    @property
    def stddev(self) -> Any:
        """The root of the variance."""
        return ops.sqrt(self.variance)

    # Values -----------------------------------------------------------------------------------------------------------

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        """Random values of shape sample_shape + batch_shape + event_shape, through which no gradient flows; by ``key``
        or ``generator`` as those of ``rn.random``."""
        return ops.stop_gradient(run_recording(False, self.rsample, sample_shape, **chosen(generator, key)))

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        """Random values as those of :meth:`sample`, whose gradients reach the parameters."""
        raise self._missing("rsample")

    def sample_n(self, n: int) -> Any:
        """``sample((n,))``."""
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability, or of the density, of ``value``."""
        raise self._missing("log_prob")

    def cdf(self, value: Any) -> Any:
        """The probability of what is not greater than ``value``."""
        raise self._missing("cdf")

    def icdf(self, value: Any) -> Any:
        """The value up to which the probability is ``value``."""
        raise self._missing("icdf")

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values, along a new first axis."""
        raise self._missing("enumerate_support")

    def entropy(self) -> Any:
        """The mean of -log_prob."""
        raise self._missing("entropy")

    def perplexity(self) -> Any:
        """exp(entropy)."""
        return ops.exp(self.entropy())

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The same distribution with its parameters repeated to ``batch_shape``."""
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
        """``value`` as a tensor; ValueError where it is known to be no value of the distribution."""
        tensor = asarray(value)
        if self._validate_args:
            name = type(self).__name__
            if self._event_shape and tensor.shape[len(tensor.shape) - len(self._event_shape) :] != self._event_shape:
                raise ShapeError(f"[{name}] a value has the shape {self._event_shape}; received {tensor.shape}.")
            broadcast_shapes(name, tensor.shape, (*self._batch_shape, *self._event_shape))
            require_in(name, "value", tensor, self.support)
        return tensor

    def _validate_sample(self, value: Any) -> None:
        """What subclasses written for PyTorch call: ValueError where ``value`` is no value of the distribution."""
        self._valid(value)

    def _missing(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"[{type(self).__name__}] has no {what}.")

    def __repr__(self) -> str:
        shapes = [f"{name}: {tuple(x.shape)}" for name, x in self.__dict__.items() if name in self.arg_constraints]
        return f"{type(self).__name__}({', '.join(shapes)})"


def chosen(generator: Any, key: Any) -> dict[str, Any]:
    """Those of the two that are given: distributions of the user's may draw without them."""
    return {name: value for name, value in (("generator", generator), ("key", key)) if value is not None}


def require_in(owner: str, name: str, value: Any, constraint: Constraint) -> None:
    """ValueError unless ``value`` fulfils the constraint; where a program computes it, it checks that, unless matrices
    had to be factorized."""
    if value.ndim < constraint.event_dim:
        raise ShapeError(f"[{owner}] {name} has {constraint.event_dim} axes at least; received shape {value.shape}.")
    if known_values(value) is None:
        if not constraint.factorizes:
            require_at_run(lambda: constraint.check(value), f"[{owner}] {name} is {constraint.description}")
        return
    inside = known_values(run_recording(False, constraint.check, value))
    if inside is not None and not inside.all():
        values = value.numpy()
        wrong = values[~inside].reshape(-1)[:4].tolist() if values.shape == inside.shape else values.tolist()
        raise ValueError(f"[{owner}] {name} is {constraint.description}; received {wrong}.")


def broadcast_all(owner: str, *values: Any) -> list[Tensor]:
    """The parameters of a distribution as tensors of one float dtype and shape."""
    arrays = [as_parameter(x) for x in values]
    tensors = [x for x in arrays if isinstance(x, Tensor)]
    dtype = common_dtype(add_p, tuple(tensors)) if tensors else float32
    dtype = dtype if dtype.is_float else float32
    device = tensors[0].device if tensors else None
    same = [ops.cast(x, dtype) if isinstance(x, Tensor) else asarray(x, dtype, device=device) for x in arrays]
    shape = broadcast_shapes(owner, *(x.shape for x in same))
    return [ops.broadcast_to(x, shape) for x in same]


def sum_last(x: Any, count: int) -> Any:
    """The sum over the last ``count`` axes."""
    return ops.sum(x, tuple(range(-count, 0))) if count else x


LOG_2PI = math.log(2 * math.pi)


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
