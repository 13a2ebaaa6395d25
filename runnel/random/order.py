"""Orders and samples of elements that are there: permutations, shuffles, choices."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from runnel import ops
from runnel.core.arrays import short_repr
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import Dtype, as_dtype, float64, int64
from runnel.core.errors import ArgumentError, ShapeError
from runnel.ops.arguments import Numbers, as_sizes, normalize_axis
from runnel.random.categories import require_weights, with_replacement, without_replacement
from runnel.random.drawing import known_values, wide_bits
from runnel.tensor.creation import asarray
from runnel.tensor.effects import require_at_run
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.random import key_of
from runnel.tensor.tensor import Tensor


def randperm(n: int, *, dtype: Dtype = int64, generator: Any = None, key: Any = None, device: Any = None) -> Tensor:
    """Return 0, …, n - 1 in random order: the sorting order of n random numbers of 64 bits."""
    count = operator.index(n)
    if count < 0:
        raise ValueError(f"[randperm] n must not be negative; got {n}.")
    result: Tensor = ops.cast(_order(key_of(generator, key, device), count), as_dtype(dtype))
    return result


def _order(key: Any, count: int) -> Tensor:
    order: Tensor = ops.argsort(wide_bits(key, (count,)))
    return order


def permutation(x: Any, axis: int = 0, *, generator: Any = None, key: Any = None, device: Any = None) -> Tensor:
    """Return the slices of an array or list ``x`` along ``axis`` in random order; for an int n, of ``arange(n)``."""
    if not isinstance(x, (TensorLike, np.ndarray, list, tuple)):
        if not hasattr(x, "__index__"):
            raise ArgumentError(f"[permutation] x must be an array, a list or an int; got {type(x).__name__}.")
        return randperm(x, generator=generator, key=key, device=device)
    array = asarray(x)
    along = normalize_axis("permutation", axis, array.ndim)
    of = key_of(generator, key, None if key is not None else device or array.device)
    result: Tensor = ops.take(array, _order(of, array.shape[along]), along)
    return result


def shuffle(x: Any, axis: int = 0, *, generator: Any = None, key: Any = None) -> None:
    """Bring the slices of ``x``, a Variable or a tensor, into random order along ``axis``, in place. ArgumentError for
    lists and NumPy arrays, which :func:`permutation` takes."""
    if not isinstance(x, ArrayMethods):
        raise ArgumentError(
            f"[shuffle] x must be a tensor or a Variable; got {type(x).__name__}. permutation() gives a "
            "shuffled tensor."
        )
    x.update("shuffle", lambda value: permutation(value, axis, generator=generator, key=key))


def choice(
    a: Numbers,
    size: Any = None,
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    *,
    generator: Any = None,
    key: Any = None,
    device: Any = None,
) -> Tensor:
    """Choose random slices of ``a`` along ``axis``; for an int n, random numbers below n.

    The shape ``size`` replaces that axis; without ``size``, one slice is returned without the axis.

    Args:
        replace: whether a slice may be chosen again.
        p: the probability of each slice, with a sum of 1; equal by default.

    ValueError if ``a`` is empty, if more slices are requested than exist without ``replace``, or if ``p`` does not
    contain probabilities that sum to 1.
    """
    is_array = isinstance(a, (TensorLike, np.ndarray, list, tuple))
    array = asarray(a) if is_array else None
    along = 0 if array is None else normalize_axis("choice", axis, array.ndim)
    if array is None and not hasattr(type(a), "__index__"):
        raise ArgumentError(f"[choice] a must be an array or the number of choices, an int; got {short_repr(a)}.")
    n = operator.index(a) if array is None else array.shape[along]
    sizes = () if size is None else as_sizes("choice", size)
    count = math.prod(sizes)
    if n <= 0 and count:
        raise ValueError(f"[choice] there is nothing to choose from: {n} elements.")
    if not replace and count > n:
        raise ValueError(f"[choice] {count} different ones cannot be chosen among {n}; allow replace=True.")
    weights = None if p is None else _probabilities(p, n, 1 if replace else count)
    of = key_of(generator, key, device if array is None or key is not None else device or array.device)
    chosen = ops.reshape(_positions(of, n, count, replace, weights), sizes)
    result: Tensor = chosen if array is None else ops.take(array, chosen, along)
    return result


def _probabilities(p: Any, n: int, positive: int) -> Any:
    """Return ``p`` as a vector of n probabilities with the sum 1, of which at least ``positive`` are greater than 0;
    else ValueError."""
    weights = ops.stop_gradient(asarray(p))
    if weights.shape != (n,):
        raise ShapeError(f"[choice] p must have a probability for each of {n}; got shape {weights.shape}.")
    require_weights("choice", weights, positive)
    known = known_values(weights)
    tolerance = 1e-8 if weights.dtype is float64 else 1e-4
    if known is None:
        require_at_run(
            lambda: ops.less_equal(ops.abs(ops.sum(ops.cast(weights, float64)) - 1), tolerance),
            "[choice] the probabilities p have the sum 1",
        )
    elif abs(float(known.sum(dtype=np.float64)) - 1) > tolerance:
        raise ValueError(f"[choice] the probabilities p have the sum 1; theirs is {float(known.sum()):g}.")
    return weights


def _positions(key: Any, n: int, count: int, replace: bool, weights: Any) -> Any:
    if weights is None and replace:
        return ops.randint(key, 0, n or 1, (count,))
    if weights is None:
        return _order(key, n)[:count]
    wide = ops.cast(weights, float64)
    return with_replacement(key, wide, count) if replace else without_replacement(key, wide, count)
