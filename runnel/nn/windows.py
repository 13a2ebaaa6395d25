"""Functions for one, two or three spatial axes, made from those for any number of axes.
Maxima of windows with their indices in the flattened spatial axes, as PyTorch counts them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel import ops
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array
from runnel.ops.spatial import per_axis
from runnel.tensor.tensor import Tensor

Function = Callable[..., Any]


def over_axes(function: Callable[..., Any], name: str) -> tuple[Function, Function, Function]:
    """Return ``function`` for one, two and three spatial axes as ``name``1d, …, which also accept one image."""
    first, second, third = (_over(spatial, function, name.format(f"{spatial}d")) for spatial in (1, 2, 3))
    return first, second, third


def _over(spatial: int, function: Callable[..., Any], name: str) -> Function:
    @functools.wraps(function)
    def checked(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.ndim == spatial + 1:
            return _alone(function(ops.expand_dims(x, 0), *args, **kwargs))
        if x.ndim != spatial + 2:
            raise ShapeError(
                f"[{name}] an input has a batch axis, a channel axis and {spatial} spatial ones; got shape {x.shape}."
            )
        return function(x, *args, **kwargs)

    checked.__name__ = checked.__qualname__ = name
    return checked


def _alone(result: Any) -> Any:
    """Remove the batch axis from the results for one image."""
    if isinstance(result, tuple):
        return tuple(map(_alone, result))
    return ops.squeeze(result, 0)


Size = int | Sequence[int]
Table = np.ndarray[Any, Any]


def max_pool(
    x: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of each window of ``x`` (N, C, *sizes) as :func:`runnel.ops.max_pool` gives it; with
    ``return_indices`` also the number of each in the spatial axes of its channel (int64; the first of equals)."""
    values = ops.max_pool(x, kernel_size, stride, padding, dilation, ceil_mode)
    if not return_indices:
        return values
    spatial = x.ndim - 2
    kernel = per_axis("max_pool", "kernel_size", kernel_size, spatial)
    steps = per_axis("max_pool", "stride", kernel if stride is None else stride, spatial)
    around, gaps = (per_axis("max_pool", "padding", p, spatial) for p in (padding, dilation))
    each = zip(x.shape[2:], values.shape[2:], kernel, steps, around, gaps, strict=True)
    tables = [_within(n, np.arange(m) * s - p + np.arange(k)[:, None] * g) for n, m, k, s, p, g in each]
    return values, greatest_places(x, tables)


def adaptive_max_pool(x: Array, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> Any:
    """The greatest elements of as many windows as ``output_size`` says; with ``return_indices`` also where they are, as
    :func:`max_pool` does."""
    values = ops.adaptive_max_pool(x, output_size)
    if not return_indices:
        return values
    tables = []
    for n, m in zip(x.shape[2:], values.shape[2:], strict=True):
        first = np.arange(m) * n // m
        last = -(-(np.arange(m) + 1) * n // m) - 1
        tables.append(np.minimum(first + np.arange(int((last - first).max()) + 1)[:, None], last))
    return values, greatest_places(x, tables)


def _within(n: int, positions: Table) -> Table:
    """Positions (taps, windows) outside of an axis moved to the first or the last one of their window inside of it."""
    first = np.where(positions >= 0, positions, n).min(0)
    last = np.where(positions < n, positions, -1).max(0)
    return np.clip(positions, first, last)


def flat_table(shape: Sequence[int], tables: Sequence[Table]) -> Table:
    """Return indices into the flattened spatial axes of ``shape``: (taps of all axes, windows of all axes)."""
    flat = functools.reduce(
        lambda table, axis: (table[:, None, :, None] * axis[0] + axis[1][None, :, None, :]).reshape(
            table.shape[0] * axis[1].shape[0], -1
        ),
        zip(shape, tables, strict=True),
        np.zeros((1, 1), np.int64),
    )
    return flat.astype(np.int64)


def greatest_places(x: Array, tables: Sequence[Table]) -> Tensor:
    """Return which element of each window is the largest, given the windows' positions along each axis."""
    flat = flat_table(x.shape[2:], tables)
    rows = ops.reshape(ops.stop_gradient(x), (*x.shape[:2], -1))
    patches = ops.take(rows, x.lift(flat, int64), 2)  # (N, C, taps, windows)
    chosen = ops.equal(ops.iota(patches, patches.shape, 2), ops.argmax(patches, 2, keepdims=True))
    places = ops.sum(ops.where(chosen, x.lift(flat[None, None], int64), 0), 2)
    result: Tensor = ops.reshape(places, (*x.shape[:2], *(table.shape[1] for table in tables)))
    return result
