"""Products with prepacked weights, for serving programs (``compiler.passes.hoisted``).

In *panels* the columns of a matrix are in groups as wide as the tiles of the machine's product: panels[q, k, c] is
element (k, q·width + c), and zeros fill the last group up. So a product reads its weights in the order of memory. Of
bfloat16, for dot instructions, they hold pairs of k: panels[q, p, 2·c + h] is element (2·p + h, q·width + c).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.axes import batching
from runnel.core.dispatch import apply
from runnel.core.dtypes import bfloat16
from runnel.core.errors import ShapeError
from runnel.core.rules import bilinear
from runnel.core.tables import Op, abstract_eval, cost, jvp, lower, reference
from runnel.loops.rules import DotGeneral
from runnel.ops.arguments import Array, require_dtype, require_same_dtype
from runnel.ops.linear_algebra.dots import OPERAND_DTYPES, sum_dtype, summed
from runnel.ops.shapes.padding import pad
from runnel.ops.shapes.views import bare, contiguous, permute, reshape

panel_product_p = Op(
    "panel_product",
    "x, panels, *, axes, columns",
    "The product of x[*rows, *inner], summed over its last ``axes`` axes, with a matrix in panels: [*rows, *columns].",
)
lower.register(panel_product_p, DotGeneral(several=True, panels=True))
jvp.register(panel_product_p, bilinear(panel_product_p))
cost.register(panel_product_p, lambda x, panels, *, axes, columns: 2 * x.size * math.prod(columns))


@abstract_eval.rule(panel_product_p)
def _abstract_eval(x: ShapedArray, panels: ShapedArray, *, axes: int, columns: Shape) -> ShapedArray:
    require_same_dtype("panel_product", x, panels)
    require_dtype("panel_product", x.dtype, OPERAND_DTYPES)
    rows, inner = x.shape[: x.ndim - axes], x.shape[x.ndim - axes :]
    count, steps, row = panels.shape
    together = _together(x)
    if -(-math.prod(inner) // together) != steps or count != -(-math.prod(columns) * together // row):
        raise ShapeError(
            f"[panel_product] panels of shape {panels.shape} do not fit sums over {inner} for columns {columns}."
        )
    return aval((*rows, *columns), sum_dtype(x.dtype))


def _together(x: Any) -> int:
    """Return how many steps of k a row of a panel contains."""
    return 1 + (x.dtype in (bfloat16, bfloat16.numpy))


@reference.rule(panel_product_p)
def _reference(x: Any, panels: Any, *, axes: int, columns: Shape) -> Any:
    count, steps, row = panels.shape
    together = _together(x)
    split = panels.reshape(count, steps, row // together, together).transpose(1, 3, 0, 2)
    rows, k = x.shape[: x.ndim - axes], math.prod(x.shape[x.ndim - axes :])
    matrix = split.reshape(steps * together, count * row // together)[:k, : math.prod(columns)]
    with np.errstate(all="ignore"):
        return np.matmul(summed(x).reshape(math.prod(rows), k), summed(matrix)).reshape(*rows, *columns)


@batching(panel_product_p)
def _batched(size: int, x: Array, panels: Array, *, axes: int, columns: Shape) -> Array | None:
    return apply(panel_product_p, x, bare(panels), axes=axes, columns=columns) if panels.shape[0] == 1 else None


def in_panels(weight: Array, axes: int, width: int) -> Array:
    """Pack weight[*inner, *columns], with ``axes`` inner axes, into panels of ``width`` columns."""
    k, n = math.prod(weight.shape[:axes]), math.prod(weight.shape[axes:])
    together = _together(weight)
    count, steps = -(-n // width), -(-k // together)
    matrix = reshape(weight, (k, n))
    if n % width or k % together:
        matrix = pad(matrix, ((0, steps * together - k), (0, count * width - n)))
    split = permute(reshape(matrix, (steps, together, count, width)), (2, 0, 3, 1))
    return reshape(contiguous(split), (count, steps, width * together))


def panel_product(x: Array, panels: Array, axes: int, columns: Shape) -> Array:
    """Multiply x[*rows, *inner], with ``axes`` inner axes, by a matrix that :func:`in_panels` made."""
    return apply(panel_product_p, x, panels, axes=axes, columns=columns)
