"""Choices among categories, by logits or by weights."""

from __future__ import annotations

import operator
from typing import Any

from runnel import ops
from runnel.core.composed import composed
from runnel.core.dtypes import DType, float32, float64, int64
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, as_sizes, normalize_axis
from runnel.ops.reductions.cumulative import cumsum
from runnel.ops.sorting.order import searchsorted
from runnel.random.continuous import standard_gumbel
from runnel.random.drawing import known_values, require
from runnel.tensor.effects import require_at_run
from runnel.tensor.random import key_of
from runnel.tensor.tensor import Tensor


def categorical(
    logits: Array, size: Any = None, *, axis: int = -1, generator: Any = None, key: Any = None, device: Any = None
) -> Tensor:
    """int64 positions along ``axis`` of ``logits``, with probabilities softmax(logits); of the shape of the other axes,
    behind the axes of ``size``. Each is where logit + Gumbel number is greatest (E. Gumbel, 1954)."""
    logits = ops.stop_gradient(logits)
    if not logits.ndim or not logits.shape[normalize_axis("categorical", axis, logits.ndim)]:
        raise ShapeError(f"[categorical] there is no category along axis {axis} of shape {logits.shape}.")
    place = normalize_axis("categorical", axis, logits.ndim) - logits.ndim
    shape = (*(() if size is None else as_sizes("categorical", size)), *logits.shape)
    wide = logits.dtype if logits.dtype is float64 else float32
    return _greatest(logits, key_of(generator, key, device or logits.device), shape, wide, place)


@composed
def _greatest(logits: Array, key: Array, shape: tuple[int, ...], dtype: DType, place: int) -> Tensor:
    """Return the positions at which the sum of ``logits`` and a Gumbel number is greatest."""
    chosen: Tensor = ops.argmax(ops.add(ops.cast(logits, dtype), standard_gumbel(key, shape, dtype)), place)
    return chosen


def multinomial(
    x: Array, num_samples: int, replacement: bool = False, *, generator: Any = None, key: Any = None
) -> Array:
    """Draw ``num_samples`` int64 positions along the last axis of the weights ``x``, a vector or the rows of a
    matrix.

    The weights need not sum to 1. With ``replacement``, positions are drawn by inversion of the running sums.
    Without, they differ: they are the positions of the largest log weight + Gumbel number, in order (W. Kool et al.,
    "Stochastic beams and where to find them", 2019).

    ValueError for a negative or infinite weight, for weights that are all 0, or if fewer weights are positive than
    samples are drawn without replacement.
    """
    count = operator.index(num_samples)
    weights = ops.cast(ops.stop_gradient(x), float64)
    if weights.ndim not in (1, 2) or not weights.shape[-1]:
        raise ShapeError(f"[multinomial] weights must be a vector or a matrix that is not empty; got {x.shape}.")
    if count <= 0:
        raise ValueError(f"[multinomial] num_samples must be greater than 0; got {num_samples}.")
    require_weights("multinomial", x, 1 if replacement else count)
    of = key_of(generator, key, None if key is not None else x.device)
    return with_replacement(of, weights, count) if replacement else without_replacement(of, weights, count)


def require_weights(name: str, weights: Any, positive: int) -> None:
    """ValueError unless weights are finite and not negative, and ``positive`` of each row greater than 0."""
    require(name, "a weight", weights, lambda w: (w >= 0) & (w < float("inf")), "must be finite and not negative")
    if positive > weights.shape[-1]:
        raise ValueError(
            f"[{name}] {positive} different ones cannot be chosen among {weights.shape[-1]}; allow replacement."
        )
    known = known_values(weights)
    message = f"[{name}] fewer weights are positive than the {positive} to be chosen without replacement"
    if known is None:
        require_at_run(lambda: ops.greater_equal(ops.sum(ops.greater(weights, 0), -1), positive), message)
    elif ((known > 0).sum(-1) < positive).any():
        raise ValueError(f"{message}.")


def with_replacement(key: Any, weights: Tensor, count: int) -> Tensor:
    """Draw ``count`` independent positions for each row of ``weights``."""
    sums = cumsum(weights, -1)
    total = sums[..., -1:]
    sought = ops.uniform(key, (*weights.shape[:-1], count), float64) * total
    sought = ops.minimum(sought, total * (1 - 2.0**-53))  # a product may round up to the total
    chosen: Tensor = ops.cast(searchsorted(sums, sought, "right"), int64)
    return chosen


def without_replacement(key: Any, weights: Tensor, count: int) -> Tensor:
    """Draw ``count`` different positions for each row of ``weights``."""
    perturbed = ops.log(weights) + standard_gumbel(key, weights.shape, float64)
    chosen: Tensor = ops.topk(perturbed, count, -1).indices
    return chosen
