"""Gradients that name few rows: the rows whose gradient is 0 everywhere rest, with all their state.

There is no tensor type for such gradients. In a compiled step the sums of rows are formed inside the kernel that uses
them, which passes over the rows that rest: the gradient is never stored.
"""

from __future__ import annotations

from runnel import ops
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


def touched(g: Tensor) -> Tensor:
    """Which rows of a gradient are not all 0; one column (each element of a vector is a row)."""
    different: Tensor = g != 0.0
    if g.ndim < 2:
        return different
    result: Tensor = ops.any(different, axis=tuple(range(1, g.ndim)), keepdims=True)
    return result


def resting(p: Variable, g: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """``new``, but ``old`` in the rows that rest, if ``p`` is a Parameter with sparse gradients."""
    if not getattr(p, "is_sparse", False):
        return new
    chosen: Tensor = ops.where(touched(g), new, old)
    return chosen
