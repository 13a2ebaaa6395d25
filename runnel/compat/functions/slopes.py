"""Derivatives of sampled functions, by finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import float32
from runnel.core.errors import AxisError, ShapeError
from runnel.ops.arguments import Array, Axis, as_tuple, normalize_axis
from runnel.ops.conversion import cast
from runnel.ops.elementwise.arithmetic import add, divide, multiply, subtract
from runnel.ops.shapes.pieces import concat, narrow
from runnel.ops.shapes.views import reshape


def gradient(
    x: Array,
    *,
    spacing: float | Array | Sequence[Any] | None = None,
    axis: Axis = None,
    edge_order: int = 1,
) -> tuple[Array, ...]:
    """Return the derivative of a sampled function along each of ``axis`` (None: all), in the shape of ``x``.

    Uses central differences inside, which are exact for parabolas. At the two ends it uses differences of two samples
    (``edge_order`` 1), or of three, which are also exact for parabolas (2). B. Fornberg, "Generation of finite
    difference formulas on arbitrarily spaced grids", 1988.

    Args:
        x: the samples; edge_order + 1 of them at least along each axis.
        spacing: their distance (None: 1): one number for all axes; or for each axis a number, or the vector of
            positions.
        axis: one axis, or several.
        edge_order: 1 or 2.
    """
    if edge_order not in (1, 2):
        raise ValueError(f"[gradient] edge_order is 1 or 2; received {edge_order}.")
    listed = range(x.ndim) if axis is None else as_tuple(axis)
    places = [normalize_axis("gradient", a, x.ndim) for a in listed]
    if len(set(places)) < len(places):
        raise AxisError(f"[gradient] each axis is named once; received {axis!r}.")
    spacing = 1.0 if spacing is None else spacing
    if isinstance(spacing, TensorLike) and spacing.ndim:
        spacing = (spacing,)
    steps = list(spacing) if isinstance(spacing, Sequence) else [spacing] * len(places)
    if len(steps) != len(places):
        raise ShapeError(f"[gradient] {len(steps)} spacings for {len(places)} axes; give one for each.")
    values = x if x.dtype.is_inexact else cast(x, float32)
    return tuple(_along(values, place, step, edge_order) for place, step in zip(places, steps, strict=True))


def _along(x: Array, place: int, spacing: Any, edge_order: int) -> Array:
    n = x.shape[place]
    if n <= edge_order:
        raise ShapeError(
            f"[gradient] edge_order {edge_order} needs {edge_order + 1} samples along axis {place}; got {n}."
        )

    def at(start: int, size: int = 1) -> Array:
        return narrow(x, place, start, size)

    if not (isinstance(spacing, TensorLike) and spacing.ndim):
        inner = divide(subtract(at(2, n - 2), at(0, n - 2)), spacing * 2)
        if edge_order == 1:
            ends = [divide(subtract(at(i + 1), at(i)), spacing) for i in (0, n - 2)]
        else:
            first = subtract(subtract(multiply(at(1), 2), multiply(at(0), 1.5)), multiply(at(2), 0.5))
            last = add(subtract(multiply(at(n - 1), 1.5), multiply(at(n - 2), 2)), multiply(at(n - 3), 0.5))
            ends = [divide(end, spacing) for end in (first, last)]
        return concat([ends[0], inner, ends[1]], place)
    if spacing.shape != (n,):
        raise ShapeError(f"[gradient] positions of shape {spacing.shape} for the {n} samples along axis {place}.")
    thin = tuple(-1 if a == place else 1 for a in range(x.ndim))
    positions = reshape(cast(spacing, x.dtype), thin)
    gaps = subtract(narrow(positions, place, 1, n - 1), narrow(positions, place, 0, n - 1))

    def gap(start: int, size: int = 1) -> Array:
        return narrow(gaps, place, start, size)

    if n > 2:
        lines = _parabola([at(i, n - 2) for i in range(3)], gap(0, n - 2), gap(1, n - 2))
    else:
        lines = [at(0, 0)] * 3
    if edge_order == 1:
        ends = [divide(subtract(at(i + 1), at(i)), gap(i)) for i in (0, n - 2)]
    else:
        sides = [_parabola([at(i + j) for j in range(3)], gap(i), gap(i + 1)) for i in (0, n - 3)]
        ends = [sides[0][0], sides[1][2]]
    return concat([ends[0], lines[1], ends[1]], place)


def _parabola(values: Sequence[Array], left: Array, right: Array) -> list[Array]:
    """Return the slopes of the parabola through three samples, at each of them."""
    low, high = (divide(subtract(b, a), d) for a, b, d in ((*values[:2], left), (*values[1:], right)))
    bend = divide(subtract(high, low), add(left, right))
    return [
        subtract(low, multiply(bend, left)), add(low, multiply(bend, left)), add(high, multiply(bend, right)),
    ]  # fmt: skip
