"""Functions of windows over one, two or three spatial axes, and the places of maxima as PyTorch counts them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel import ops
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array
from runnel.ops.convolution.windows import per_axis
from runnel.tensor.tensor import Tensor

Function = Callable[..., Any]
Size = int | Sequence[int]
Table = np.ndarray[Any, Any]


def over_axes(function: Function, name: str, arrays: int = 1) -> tuple[Function, Function, Function]:
    """Return ``function`` for one, two and three spatial axes as ``name``1d, …, for batches and for single images.

    The first ``arrays`` arguments are arrays (N, C, *sizes).
    """
    first, second, third = (_over(spatial, function, name.format(f"{spatial}d"), arrays) for spatial in (1, 2, 3))
    return first, second, third


def _over(spatial: int, function: Function, name: str, arrays: int) -> Function:
    @functools.wraps(function)
    def checked(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.ndim == spatial + 1:
            images = [ops.expand_dims(image, 0) for image in (x, *args[: arrays - 1])]
            return _single(function(*images, *args[arrays - 1 :], **kwargs))
        if x.ndim != spatial + 2:
            raise ShapeError(
                f"[{name}] x must have a batch axis, a channel axis and {spatial} spatial ones; got shape {x.shape}."
            )
        return function(x, *args, **kwargs)

    checked.__name__ = checked.__qualname__ = name
    return checked


def _single(result: Any) -> Any:
    """Remove the batch axis from the results for one image."""
    if isinstance(result, tuple):
        return tuple(map(_single, result))
    return ops.squeeze(result, 0)


def max_pool(
    x: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maximum of each window of ``x`` (N, C, *sizes).

    The first of equal elements receives the gradient, as in PyTorch.

    Args:
        x: the input.
        kernel_size: the size of the window, an int or one for each axis.
        stride: the step of the window; by default ``kernel_size``.
        padding: how many elements, which are never the maximum, to add on each side.
        dilation: the distance of window elements.
        ceil_mode: also use windows at the end that are only partly inside the input.
        return_indices: also return where the maxima are, as int64 indices into the flattened spatial axes.
    """
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
    """Return the maxima of ``output_size`` windows, which cover ``x`` (N, C, *sizes) and are about equally large.

    Args:
        x: the input.
        output_size: the number of windows, an int or one for each axis; None is the size of the input.
        return_indices: also return where the maxima are, as int64 indices into the flattened spatial axes.
    """
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
    """Move positions (taps, windows) outside an axis to the first or last position of their window inside it."""
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
