"""Arrays with some elements replaced: what ``x[key] = value`` makes of ``x``."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.avals import Shape
from runnel.core.dispatch import Value
from runnel.core.dtypes import bool_
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, Operand
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.logic import logical_and, where
from runnel.ops.padding import laid_into_zeros
from runnel.ops.pieces import Window, window
from runnel.ops.promotion import lifted
from runnel.ops.views import reshape


def put(x: Array, key: Any, value: Operand) -> Array:
    """``x`` with ``value``, broadcast and converted to the dtype of ``x``, at ``x[key]``.

    Args:
        x: the array.
        key: integers, slices, ``...`` and None as in ``x[key]``, or a bool array that broadcasts to the shape of ``x``.
        value: what the elements there become; for a bool array, anything that broadcasts to the shape of ``x``.
    """
    if isinstance(key, (Value, np.ndarray)) and key.dtype in (bool_, np.dtype(bool)):
        _require_fit(np.shape(key) if isinstance(key, np.ndarray) else key.shape, x.shape)
        return where(lifted(x, key, bool_, x.ndim), _fitted(x, value, x.shape), x)
    part = window(x, key)
    new: Array = _fitted(x, value, part.shape)
    if part.is_whole(x):
        return reshape(broadcast_to(new, part.shape), x.shape)
    if 0 in part.sizes:
        return x
    if new.size == 1:
        return where(_inside(x, part), reshape(new, (1,) * x.ndim), x)
    piece = reshape(broadcast_to(new, part.shape), part.sizes)
    laid = laid_into_zeros(piece, x.shape, part.starts, part.sizes, part.steps)
    return where(_inside(x, part), laid, x)


def _fitted(x: Array, value: Operand, target: Shape) -> Array:
    """``value`` as a value of the kind and dtype of ``x`` that broadcasts to ``target``, with as many axes."""
    shape: Shape = value.shape if isinstance(value, Value) else np.shape(value)
    _require_fit(shape, target)
    own = lifted(x, value, x.dtype, len(target))
    return reshape(own, own.shape[own.ndim - len(target) :])


def _inside(x: Array, part: Window) -> Array:
    """True where the window is: what it leaves out along each axis, put together by broadcasting."""
    result = None
    for axis, (n, start, size, step) in enumerate(zip(x.shape, part.starts, part.sizes, part.steps, strict=True)):
        if size == n:
            continue
        along = np.zeros((1,) * axis + (n,) + (1,) * (x.ndim - axis - 1), bool)
        along.reshape(-1)[start + step * np.arange(size)] = True
        here = x.lift(along, bool_)
        result = here if result is None else logical_and(result, here)
    return x.lift(np.ones((1,) * x.ndim, bool), bool_) if result is None else result


def _require_fit(shape: Shape, target: Shape) -> None:
    """ShapeError unless ``shape``, axes of size 1 in front left out, broadcasts to ``target``."""
    inner = shape[max(len(shape) - len(target), 0) :]
    outer = shape[: len(shape) - len(inner)]
    fits = all(n in (1, m) for n, m in zip(reversed(inner), reversed(target), strict=False))
    if not fits or any(n != 1 for n in outer):
        raise ShapeError(f"[setitem] a value of shape {shape} does not broadcast to the shape {target} of what is set.")
