"""Shared by all functions of this package: parameters, sizes, dtypes and keys; uniform numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from runnel import ops
from runnel.core.devices import as_device
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType, as_dtype, bool_, float32, float64, int32, int64, uint64
from runnel.core.errors import DTypeError, ShapeError
from runnel.ops.arguments import as_sizes, broadcast_shapes
from runnel.ops.elementwise.arithmetic import add_p
from runnel.ops.promotion import common_dtype
from runnel.tensor.creation import asarray
from runnel.tensor.effects import require_at_run
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.random import key_of
from runnel.tensor.tensor import Tensor
from runnel.transforms.control import while_loop


class Draw(NamedTuple):
    """A draw: ``shape`` and ``dtype`` of the result, the ``key``, and the distribution's parameters, tensors or
    numbers."""

    key: Any
    shape: tuple[int, ...]
    dtype: DType
    parameters: tuple[Any, ...]

    @property
    def wide(self) -> DType:
        """The dtype to compute in: float64 for itself, float32 for all others."""
        return float64 if self.dtype is float64 else float32

    def in_float64(self) -> list[Tensor]:
        """Return the parameters in float64, broadcast to the shape of the result."""
        return [self.as_float64(x) for x in self.parameters]

    def as_float64(self, x: Any) -> Tensor:
        wide = ops.cast(x, float64) if isinstance(x, TensorLike) else ops.full_like(self.key, x, (), float64)
        spread: Tensor = ops.broadcast_to(wide, self.shape)
        return spread

    def result(self, x: Any) -> Tensor:
        """Convert ``x`` to the dtype of the result."""
        narrow: Tensor = ops.cast(x, self.dtype)
        return narrow


def drawn(
    name: str,
    parameters: tuple[Any, ...],
    size: Any,
    dtype: Any,
    generator: Any,
    key: Any,
    device: Any,
    *,
    floating: bool = True,
) -> Draw:
    """Return the arguments that all drawing functions share, in their plain form.

    The shape is ``size``, to which the parameters broadcast, or by default their common shape. The dtype is by
    default the parameters' dtype, float32 for numbers and integers. DTypeError if it must be ``floating`` and is not.
    """
    arrays = tuple(as_parameter(x) for x in parameters)
    tensors = [x for x in arrays if isinstance(x, Tensor)]
    met = broadcast_shapes(name, *(x.shape for x in tensors))
    shape = met if size is None else as_sizes(name, size)
    if size is not None and not _reaches(met, shape):
        raise ShapeError(f"[{name}] parameters of shape {met} do not broadcast to the size {shape}.")
    if dtype is not None:
        kind = as_dtype(dtype)
    else:
        kind = common_dtype(add_p, tuple(tensors)) if tensors else float32
        kind = kind if kind.is_float else float32
    if floating and not kind.is_float:
        raise DTypeError(f"[{name}] the dtype must be floating; got {kind.name}.")
    place = as_device(device) if device is not None else tensors[0].device if tensors and key is None else None
    return Draw(key_of(generator, key, place), shape, kind, arrays)


def _reaches(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether an array of ``shape`` broadcasts to ``target``."""
    last = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(shape, last, strict=True))


def as_parameter(x: Any) -> Any:
    """Return a parameter as a tensor, or as the number that it is."""
    if isinstance(x, ArrayMethods):
        return x.read()
    return asarray(x) if isinstance(x, (np.ndarray, list, tuple)) else x


# --- checks -----------------------------------------------------------------------------------------------------------


def require(name: str, parameter: str, value: Any, test: Callable[[Any], Any], description: str) -> None:
    """ValueError unless all elements of ``value`` pass ``test``; where a program computes them, it checks that."""
    known = known_values(value)
    if known is None and isinstance(value, TensorLike):
        require_at_run(lambda: test(value), f"[{name}] {parameter} {description}")
    elif known is not None and not np.all(test(known)):
        wrong = known[~np.asarray(test(known))].flat[0] if known.ndim else known
        raise ValueError(f"[{name}] {parameter} {description}; got {float(wrong):g}.")


def known_values(value: Any) -> np.ndarray | None:
    """Return the values of a parameter if they exist; None while a function is traced."""
    if isinstance(value, TensorLike):
        array = value.known()
        return None if array is None else np.asarray(array)
    return np.asarray(value) if isinstance(value, (bool, int, float, np.generic, np.ndarray)) else None


def require_positive(name: str, **parameters: Any) -> None:
    """ValueError unless each of them is greater than 0."""
    for parameter, value in parameters.items():
        require(name, parameter, value, lambda x: x > 0, "must be greater than 0")


def require_scale(name: str, **parameters: Any) -> None:
    """ValueError if one of them is negative, or not a number."""
    for parameter, value in parameters.items():
        require(name, parameter, value, lambda x: x >= 0, "must not be negative")


def require_probability(name: str, **parameters: Any) -> None:
    """ValueError unless each of them lies from 0 to 1."""
    for parameter, value in parameters.items():
        require(name, parameter, value, lambda x: (x >= 0) & (x <= 1), "is a probability, from 0 to 1")


# --- uniform numbers --------------------------------------------------------------------------------------------------


def open_unit(key: Any, shape: Iterable[int], dtype: DType, word: int = 0) -> Tensor:
    """Uniform numbers in (0, 1), symmetric about ½: odd multiples of 2⁻²⁴ (float32) or 2⁻⁵³ (float64). ``word`` is 0 or
    2, which are independent of one another."""
    sizes = tuple(shape)
    first = ops.random_bits(key, sizes, word)
    if dtype is float64:
        second = ops.random_bits(key, sizes, word + 1)
        upper, lower = (ops.cast(ops.bitwise_right_shift(bits, 6), float64) for bits in (first, second))
        unit = (upper * 2.0**26 + lower + 0.5) * 2.0**-52
    else:
        unit = (ops.cast(ops.cast(ops.bitwise_right_shift(first, 9), int32), float32) + 0.5) * 2.0**-23
    result: Tensor = ops.cast(unit, dtype)
    return result


def wide_bits(key: Any, shape: Iterable[int]) -> Tensor:
    """Uniform uint64."""
    sizes = tuple(shape)
    upper, lower = (ops.cast(ops.random_bits(key, sizes, word), uint64) for word in (0, 1))
    bits: Tensor = ops.bitwise_or(ops.bitwise_left_shift(upper, 32), lower)
    return bits


Attempt = Callable[[Any], tuple[Any, Any]]


def first_accepted(key: Any, shape: tuple[int, ...], attempt: Attempt) -> Tensor:
    """float64 of ``shape``: for each element the value of the first attempt that accepts it.

    ``attempt(key)`` gives values and whether they are accepted. It must accept each element with a positive
    probability, whatever the parameters are: NaN, too.
    """

    def again(carry: Any) -> Any:
        number, value, is_accepted = carry
        proposed, accepts = attempt(ops.fold_in(key, number))
        value = ops.where(is_accepted, value, proposed)
        return number + 1, value, ops.logical_or(is_accepted, accepts)

    def goes_on(carry: Any) -> Any:
        return ops.logical_not(ops.all(carry[2]))

    start = (
        ops.full_like(key, 0, (), int64), ops.full_like(key, 0, shape, float64), ops.full_like(key, 0, shape, bool_)
    )  # fmt: skip
    accepted: Tensor = while_loop(goes_on, again, start)[1]
    return accepted


def counted(u: Any, first: Any, ratio: Callable[[Any], Any]) -> Tensor:
    """Inversion of a distribution of counts by search from 0: the smallest k with P(count ≤ k) > u, where
    P(0) = ``first`` and P(k) = P(k - 1) · ``ratio(k)``. The search ends where P(k) no longer changes the sum."""

    def is_sought(carry: Any) -> Any:
        _, term, total = carry
        return ops.logical_and(ops.greater_equal(u, total), ops.greater(total + term, total))

    def further(carry: Any) -> Any:
        k, term, total = carry
        sought = is_sought(carry)
        following = term * ratio(k + 1)
        return (
            ops.where(sought, k + 1, k),
            ops.where(sought, following, term),
            ops.where(sought, total + following, total),
        )

    start = (ops.zeros_like(u), first, first)
    count: Tensor = while_loop(lambda carry: ops.any(is_sought(carry)), further, start)[0]
    return count
