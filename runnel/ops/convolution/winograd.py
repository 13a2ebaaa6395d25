"""Winograd's minimal filtering F(4×4, 3×3): 3×3 convolutions with fewer multiplications.

A tile of 4×4 results needs 36 multiplications for each pair of channels instead of 144:
Y = Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A for a filter g and the 6×6 inputs d of the tile (A. Lavin, S. Gray, "Fast Algorithms for
Convolutional Neural Networks", 2015). The matrices come from evaluating polynomials at five points and at infinity
(Cook and Toom; S. Winograd, "Arithmetic Complexity of Computations", 1980). The points 0, ±3/4, ±3/2 keep the error in
float32 near the error of a direct sum; docs/internals/winograd.md has the bound. Everything here is channels-last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.axes import LOOPED
from runnel.core.dispatch import apply
from runnel.core.dtypes import float32, float64
from runnel.core.errors import ShapeError
from runnel.core.rules import bilinear
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference
from runnel.loops.ir import K_BLOCK
from runnel.loops.rules import Winograd, WinogradGradient
from runnel.ops.arguments import Array, require_dtype, require_same_dtype
from runnel.ops.convolution.primitives import DIRECT, WINOGRAD
from runnel.ops.convolution.windows import Pairs, channels_first, channels_last
from runnel.ops.linear_algebra.contraction import matmul
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.padding import pad, zero_extended
from runnel.ops.shapes.pieces import flip
from runnel.ops.shapes.views import Leading, contiguous, permute, reshape

OUTPUTS: Final = 4  # results of a tile along an axis
KERNEL: Final = 3
GRAIN: Final = 8  # filters
SPAN: Final = OUTPUTS + KERNEL - 1  # inputs of a tile along an axis
POINTS: Final = tuple(Fraction(p, 4) for p in (0, 3, -3, 6, -6))

Matrix = tuple[tuple[Fraction, ...], ...]


def _times(p: Sequence[Fraction], root: Fraction) -> list[Fraction]:
    """Return the coefficients of p(x)·(x − root), lowest first."""
    shifted = [Fraction(0), *p]
    return [s - root * c for s, c in zip(shifted, [*p, Fraction(0)], strict=True)]


def _product_over(points: Sequence[Fraction]) -> list[Fraction]:
    product = [Fraction(1)]
    for p in points:
        product = _times(product, p)
    return product


def matrices() -> tuple[Matrix, Matrix, Matrix]:
    """Return exact Aᵀ of shape (4, 6), G of shape (6, 3) and Bᵀ of shape (6, 6)."""
    others = [[q for q in POINTS if q != p] for p in POINTS]
    norms = [math.prod((p - q for q in rest), start=Fraction(1)) for p, rest in zip(POINTS, others, strict=True)]
    zero, one = Fraction(0), Fraction(1)
    output = tuple((*(p**i for p in POINTS), one if i == OUTPUTS - 1 else zero) for i in range(OUTPUTS))
    filters = tuple(tuple(p**i / n for i in range(KERNEL)) for p, n in zip(POINTS, norms, strict=True))
    inputs = tuple((*_product_over(rest), zero) for rest in others)
    return output, (*filters, (zero, zero, one)), (*inputs, tuple(_product_over(POINTS)))


OUTPUT, FILTER, INPUT = matrices()


def as_floats(matrix: Matrix, dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    """Round each entry once."""
    return np.array([[float(x) for x in row] for row in matrix], dtype)


def tiles(extent: int) -> int:
    """Return the number of tiles that cover ``extent`` results."""
    return -(-extent // OUTPUTS)


def rounded(filters: int) -> int:
    """Return the number of filters for which the small products are made: whole vectors of most machines."""
    return -(-filters // GRAIN) * GRAIN


def padded(extent: int) -> int:
    """Return the number of inputs along an axis that the tiles of ``extent`` results read."""
    return tiles(extent) * OUTPUTS + KERNEL - 1


winograd_p = Op(
    "winograd",
    "x, filters, *, height, width, count",
    "The correlation of x[N, H, W, C] with `count` 3×3 filters, given as winograd_filters makes them: y[N, height, "
    "width, count]. H and W are what the tiles of 4×4 results read.",
)
lower.register(winograd_p, Winograd())
jvp.register(winograd_p, bilinear(winograd_p))
axes.register(winograd_p, Leading())


@abstract_eval.rule(winograd_p)
def _abstract_eval(x: ShapedArray, filters: ShapedArray, *, height: int, width: int, count: int) -> ShapedArray:
    require_same_dtype("winograd", x, filters)
    require_dtype("winograd", x.dtype, (float32, float64))
    if x.ndim != 4 or filters.shape != (SPAN * SPAN, x.shape[-1], rounded(count)):
        raise ShapeError(
            f"[winograd] x of shape {x.shape} and filters of shape {filters.shape} do not match: x is (N, H, W, C), "
            f"{count} filters are ({SPAN * SPAN}, C, {rounded(count)})."
        )
    if x.shape[1:3] != (padded(height), padded(width)):
        raise ShapeError(
            f"[winograd] {height}×{width} results need an x of {padded(height)}×{padded(width)}, got shape {x.shape}."
        )
    return aval((x.shape[0], height, width, count), x.dtype)


@reference.rule(winograd_p)
def _reference(x: Any, filters: Any, *, height: int, width: int, count: int) -> Any:
    n, _, _, c = x.shape
    rows, columns = tiles(height), tiles(width)
    v = _transformed(x, rows, columns).reshape(SPAN * SPAN, n * rows * columns, c)
    m = np.matmul(v, filters).reshape(SPAN, SPAN, n, rows, columns, filters.shape[2])
    y = np.einsum("pr,qs,rsnhwk->nhpwqk", as_floats(OUTPUT), as_floats(OUTPUT), m, optimize=True)
    return y.reshape(n, rows * OUTPUTS, columns * OUTPUTS, filters.shape[2])[:, :height, :width, :count].astype(x.dtype)


def _transformed(x: Any, rows: int, columns: int) -> Any:
    """Return Bᵀ d B of each tile: (6, 6, N, rows, columns, C)."""
    n, _, _, c = x.shape
    cut = np.empty((n, rows, columns, SPAN, SPAN, c), x.dtype)
    for i in range(rows):
        for j in range(columns):
            cut[:, i, j] = x[:, i * OUTPUTS : i * OUTPUTS + SPAN, j * OUTPUTS : j * OUTPUTS + SPAN]
    return np.einsum("ri,sj,nhwijc->rsnhwc", as_floats(INPUT), as_floats(INPUT), cut, optimize=True)


@cost.rule(winograd_p)
def _cost(x: ShapedArray, filters: ShapedArray, *, height: int, width: int, count: int) -> int:
    return 2 * SPAN * SPAN * x.shape[0] * tiles(height) * tiles(width) * x.shape[3] * count


winograd_gradient_p = Op(
    "winograd_gradient",
    "x, dy",
    "The gradient by w of y = winograd(x, winograd_filters(w)): S parts (S, 3, 3, C, K) of the sum over tiles, from "
    "x[N, H, W, C] and dy[N, height, width, K].",
)
lower.register(winograd_gradient_p, WinogradGradient())
jvp.register(winograd_gradient_p, bilinear(winograd_gradient_p))
axes.register(winograd_gradient_p, LOOPED)  # parts of the sum over all images
MOST_CHANNELS: Final = 128  # of a block, the same of filters: sums of 36 planes stay in a cache
VECTOR: Final = 16  # channels of a block are a multiple of it
FEWEST_UNITS: Final = 8  # parts of blocks: what threads share out without a change of the result


def blocks_of(channels: int) -> int:
    """Return the number of equal blocks of channels or filters."""
    vectors, rest = divmod(channels, VECTOR)
    return 1 if rest else next(n for n in range(1, vectors + 1) if vectors % n == 0 and channels <= n * MOST_CHANNELS)


def parts_of(images: int, height: int, width: int, channels: int, filters: int) -> int:
    """Return the number of parts of the sum over all tiles.

    Each part is one chain, not longer than the chains of matrix products."""
    blocks = blocks_of(channels) * blocks_of(filters)
    return max(-(-FEWEST_UNITS // blocks), -(-images * tiles(height) * tiles(width) // K_BLOCK))


@abstract_eval.rule(winograd_gradient_p)
def _gradient_abstract_eval(x: ShapedArray, dy: ShapedArray) -> ShapedArray:
    require_same_dtype("winograd_gradient", x, dy)
    require_dtype("winograd_gradient", x.dtype, (float32, float64))
    n, height, width, filters = dy.shape
    if x.shape[:3] != (n, padded(height), padded(width)):
        raise ShapeError(f"[winograd_gradient] x of shape {x.shape} and dy of shape {dy.shape} do not match.")
    return aval((parts_of(n, height, width, x.shape[3], filters), KERNEL, KERNEL, x.shape[3], filters), x.dtype)


@reference.rule(winograd_gradient_p)
def _gradient_reference(x: Any, dy: Any) -> Any:
    n, height, width, filters = dy.shape
    rows, columns = tiles(height), tiles(width)
    full = np.zeros((n, rows * OUTPUTS, columns * OUTPUTS, filters), dy.dtype)
    full[:, :height, :width] = dy
    cut = full.reshape(n, rows, OUTPUTS, columns, OUTPUTS, filters)
    d = np.einsum("pr,qs,nhpwqk->rsnhwk", as_floats(OUTPUT), as_floats(OUTPUT), cut, optimize=True)
    v = _transformed(x, rows, columns)
    count = n * rows * columns
    many = parts_of(n, height, width, x.shape[3], filters)
    share = -(-count // many)
    d, v = d.reshape(SPAN * SPAN, count, filters), v.reshape(SPAN * SPAN, count, x.shape[3])
    cuts = [slice(part * share, (part + 1) * share) for part in range(many)]
    parts = [np.matmul(v[:, cut].swapaxes(1, 2), d[:, cut]) for cut in cuts]
    sums = np.stack(parts).reshape(many, SPAN, SPAN, x.shape[3], filters)
    return np.einsum("ri,sj,prsck->pijck", as_floats(FILTER), as_floats(FILTER), sums, optimize=True).astype(x.dtype)


@cost.rule(winograd_gradient_p)
def _gradient_cost(x: ShapedArray, dy: ShapedArray) -> int:
    n, height, width, filters = dy.shape
    return 2 * SPAN * SPAN * n * tiles(height) * tiles(width) * x.shape[3] * filters


def winograd_filters(weight: Array) -> Array:
    """Transform filters (3, 3, C, K) to G g Gᵀ of shape (36, C, K), for :func:`winograd`.

    Adds zero filters up to a multiple of GRAIN."""
    if weight.ndim != 4 or weight.shape[:2] != (KERNEL, KERNEL):
        raise ShapeError(f"[winograd_filters] takes filters of shape (3, 3, C, K), got {weight.shape}.")
    g = as_floats(FILTER)
    channels, count = weight.shape[2:]
    if rounded(count) != count:
        weight = pad(weight, ((0, 0), (0, 0), (0, 0), (0, rounded(count) - count)))
    taps = reshape(weight, (KERNEL * KERNEL, channels * rounded(count)))
    transform = weight.lift(np.kron(g, g).astype(weight.dtype.numpy), weight.dtype)
    return reshape(matmul(transform, taps), (SPAN * SPAN, channels, rounded(count)))


def winograd(x: Array, filters: Array, height: int, width: int, count: int) -> Array:
    """Apply :data:`winograd_p`."""
    return apply(winograd_p, x, filters, height=height, width=width, count=count)


def winograd_gradient(x: Array, dy: Array) -> Array:
    """Return the gradient of filters (3, 3, C, K), given ``dy``, the gradient of winograd(x,
    winograd_filters(filters))."""
    parts = apply(winograd_gradient_p, x, dy)
    return sum(parts, 0) if parts.shape[0] > 1 else reshape(parts, parts.shape[1:])


FEWEST_CHANNELS: Final = 16  # in and out: below, the transforms cost more than they save
FEWEST_TILES: Final = 16  # below, reading the transformed filters costs more
USED: Final = 0.5  # part of the tiles' results that lies inside the image


def fits(kernel: Shape, stride: Shape, dilation: Shape, groups: int) -> bool:
    """Return whether the algorithm can compute such a convolution."""
    return kernel == (KERNEL, KERNEL) and stride == (1, 1) and dilation == (1, 1) and groups == 1


def wins(images: int, channels: int, filters: int, out_size: Shape) -> bool:
    """Return whether it is faster than a direct sum for ``out_size`` results per image and filter."""
    height, width = out_size
    count = images * tiles(height) * tiles(width)
    return (
        min(channels, filters) >= FEWEST_CHANNELS
        and count >= FEWEST_TILES
        and images * height * width >= USED * count * OUTPUTS**2
    )


def chosen(
    algorithm: str, x: Array, weight: Shape, out_size: Shape, stride: Shape, dilation: Shape, groups: int
) -> bool:
    """Return whether a convolution of x[N, ...] with weights of shape ``weight``, or its transpose, uses the algorithm.

    This depends on shapes and dtype only. float64, which users choose for accuracy, uses it only on request."""
    if algorithm == DIRECT or not fits(weight[2:], stride, dilation, groups):
        return False
    if algorithm == WINOGRAD:
        return True
    return x.dtype is float32 and wins(x.shape[0], weight[1], weight[0], out_size)


def extended(x: Array, before: Shape, out_size: Shape) -> Array:
    """Pad channels-last ``x`` with ``before`` zeros first, and with as many last as the tiles of ``out_size``
    results read."""
    (top, left), (height, width) = before, out_size
    return zero_extended(x, (0, -top, -left, 0), (x.shape[0], padded(height), padded(width), x.shape[-1]))


def convolution(x: Array, w: Array, padding: Pairs, out_size: Shape) -> Array:
    """Convolve x[N, C, H, W] with w[K, C, 3, 3]."""
    (top, _), (left, _) = padding
    filters = winograd_filters(contiguous(permute(w, (2, 3, 1, 0))))
    x_extended = extended(channels_last(x), (top, left), out_size)
    return channels_first(winograd(x_extended, filters, out_size[0], out_size[1], w.shape[0]))


def input_gradient(g: Array, w: Array, padding: Pairs, size: Shape) -> Array:
    """Return the gradient of an x of ``size``: a convolution of g with the rotated filters."""
    (top, _), (left, _) = padding
    turned = permute(flip(flip(w, 2), 3), (2, 3, 0, 1))
    g_extended = extended(channels_last(g), (KERNEL - 1 - top, KERNEL - 1 - left), size)
    return channels_first(winograd(g_extended, winograd_filters(contiguous(turned)), size[0], size[1], w.shape[1]))


def weight_gradient(x: Array, g: Array, padding: Pairs) -> Array:
    """Return the gradient of w[K, C, 3, 3]."""
    (top, _), (left, _) = padding
    x_extended = extended(channels_last(x), (top, left), g.shape[2:])
    return permute(winograd_gradient(x_extended, channels_last(g)), (3, 2, 0, 1))
