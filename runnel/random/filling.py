"""Fill arrays with random numbers in place, draw arrays like others, and fork the generator's state."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np

from runnel import ops
from runnel.backends.context import default_device
from runnel.core.devices import as_device
from runnel.core.dtypes import DType, Dtype, as_dtype, bool_, int64, uint64
from runnel.core.errors import DTypeError
from runnel.ops.arguments import Array
from runnel.random import continuous, counts
from runnel.random.drawing import require_positive, wide_bits
from runnel.tensor.random import default_on, key_of, next_key, rand, randint, randn
from runnel.tensor.tensor import Tensor

_SIGNIFICANT_BITS: Final = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


def _float(name: str, x: Array) -> DType:
    if not x.dtype.is_float:
        raise DTypeError(f"[{name}] the dtype must be floating; got {x.dtype.name}.")
    kind: DType = x.dtype
    return kind


def _filled(name: str, distribution: Any, x: Array, parameters: tuple[Any, ...], generator: Any) -> Tensor:
    kind = _float(name, x)
    result: Tensor = distribution(*parameters, x.shape, dtype=kind, generator=generator, device=x.device)
    return result


def normal_of(x: Array, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Tensor:
    """Normal numbers of the shape of ``x``."""
    return _filled("normal_", continuous.normal, x, (mean, std), generator)


def uniform_of(x: Array, low: Any = 0.0, high: Any = 1.0, *, generator: Any = None) -> Tensor:
    """Uniform numbers of the shape of ``x``."""
    return _filled("uniform_", continuous.uniform, x, (low, high), generator)


def log_normal_of(x: Array, mean: Any = 1.0, std: Any = 2.0, *, generator: Any = None) -> Tensor:
    """Draw numbers whose logarithms are normal, in the shape of ``x``."""
    return _filled("log_normal_", continuous.lognormal, x, (mean, std), generator)


def cauchy_of(x: Array, median: Any = 0.0, sigma: Any = 1.0, *, generator: Any = None) -> Tensor:
    """Cauchy numbers of the shape of ``x``."""
    return _filled("cauchy_", continuous.cauchy, x, (median, sigma), generator)


def exponential_of(x: Array, lambd: Any = 1.0, *, generator: Any = None) -> Tensor:
    """Exponential numbers of mean 1/lambd, of the shape of ``x``. ValueError unless ``lambd`` is greater than 0."""
    require_positive("exponential_", lambd=lambd)
    return _filled("exponential_", continuous.exponential, x, (1 / lambd,), generator)


def geometric_of(x: Array, p: Any, *, generator: Any = None) -> Tensor:
    """Draw the number of trials of probability ``p`` until the first success, in the shape and dtype of ``x``."""
    return counts.geometric(p, x.shape, dtype=x.dtype, generator=generator, device=x.device)


def bernoulli_of(x: Array, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Draw 1 with probability ``p``, else 0, in the shape and dtype of ``x``."""
    return counts.bernoulli(p, x.shape, dtype=x.dtype, generator=generator, device=x.device)


def random_of(x: Array, low: int | None = None, high: int | None = None, *, generator: Any = None) -> Tensor:
    """Integers in [low, high) of the shape and dtype of ``x``; in [0, low) where only one is given, and where none is,
    all from 0 on that the dtype holds exactly. At most 2³² of them, or a power of 2, and of that dtype (else
    ValueError)."""
    one = high if low is None else low
    first, end = (0, _end(x.dtype) if one is None else one) if low is None or high is None else (low, high)
    least, most = _bounds(x.dtype)
    span = end - first
    if not (least <= first < end <= most + 1) or (span > 1 << 32 and span & (span - 1)):
        raise ValueError(
            f"[random_] the range must be within {x.dtype.name} and contain at most 2³² integers, or a power of 2; "
            f"got [{first}, {end})."
        )
    key = next_key(generator, x.device)
    if span <= 1 << 32:
        return ops.cast(ops.randint(key, first, end, x.shape), x.dtype)
    bits = ops.bitwise_right_shift(wide_bits(key, x.shape), 65 - span.bit_length())
    shifted = ops.cast(bits, uint64 if x.dtype is uint64 else int64)
    return ops.cast(shifted + first if first else shifted, x.dtype)


def _end(dtype: DType) -> int:
    return 1 << _SIGNIFICANT_BITS[dtype.name] if dtype.is_float else _bounds(dtype)[1] + 1


def _bounds(dtype: DType) -> tuple[int, int]:
    """Return the smallest and largest integer of a dtype; for floats, the bounds within which all integers are
    floats."""
    if dtype is bool_:
        return 0, 1
    if dtype.is_float:
        return -(1 << _SIGNIFICANT_BITS[dtype.name]), 1 << _SIGNIFICANT_BITS[dtype.name]
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def _key(x: Any, generator: Any, key: Any, device: Any) -> Any:
    return key_of(generator, key, device or (None if key is not None else x.device))


def rand_like(
    x: Array,
    *,
    dtype: Dtype = None,
    generator: Any = None,
    key: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform numbers in [0, 1) of the shape and dtype of ``x``; DTypeError if that is no float."""
    return rand(x.shape, dtype=dtype or x.dtype, key=_key(x, generator, key, device), requires_grad=requires_grad)


def randn_like(
    x: Array,
    *,
    dtype: Dtype = None,
    generator: Any = None,
    key: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers of mean 0 and deviation 1 of the shape and dtype of ``x``; DTypeError if that is no float."""
    return randn(x.shape, dtype=dtype or x.dtype, key=_key(x, generator, key, device), requires_grad=requires_grad)


def randint_like(
    x: Array,
    low: int,
    high: int | None = None,
    *,
    dtype: Dtype = None,
    generator: Any = None,
    key: Any = None,
    device: Any = None,
) -> Tensor:
    """Integers in [low, high), or in [0, low) if ``high`` is left out, of the shape and dtype of ``x``."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, x.shape, as_dtype(dtype) if dtype else x.dtype, key=_key(x, generator, key, device))


class fork_rng:
    """Restore the default generator after the block: ``with rn.random.fork_rng():``.

    Args:
        devices: the devices whose default generators are restored; by default ``runnel.device()``.
        enabled: False does nothing.
    """

    def __init__(self, devices: Any = None, enabled: bool = True) -> None:
        places = (default_device(),) if devices is None else tuple(map(as_device, devices))
        self._generators = [default_on(place) for place in places] if enabled else []
        self._states: list[list[Tensor]] = []

    def __enter__(self) -> Self:
        self._states.append([generator.get_state() for generator in self._generators])
        return self

    def __exit__(self, *error: object) -> None:
        for generator, state in zip(self._generators, self._states.pop(), strict=True):
            generator.set_state(state)
