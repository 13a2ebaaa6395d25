"""Random arrays of the shape, dtype and device of another."""

from __future__ import annotations

from typing import Any

from runnel.core.dtypes import as_dtype
from runnel.ops.arguments import Array
from runnel.tensor.random import key_of, rand, randint, randn
from runnel.tensor.tensor import Tensor


def _key(x: Any, generator: Any, key: Any, device: Any) -> Any:
    return key_of(generator, key, device or (None if key is not None else x.device))


def rand_like(
    x: Array,
    *,
    dtype: Any = None,
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
    dtype: Any = None,
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
    dtype: Any = None,
    generator: Any = None,
    key: Any = None,
    device: Any = None,
) -> Tensor:
    """Integers in [low, high), or in [0, low) if ``high`` is left out, of the shape and dtype of ``x``."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, x.shape, as_dtype(dtype) if dtype else x.dtype, key=_key(x, generator, key, device))
