"""Parts of the formulas of several optimizers."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


def item(values: Tensor, i: int, p: Variable) -> Tensor:
    """Return item ``i`` of a vector with a number for each Parameter of a group, in the dtype of ``p``."""
    return ops.cast(values, p.dtype)[i]


def decayed(group: ParamGroup, p: Variable, g: Tensor) -> Tensor:
    """Add the gradient of the penalty weight_decay/2 · |p|² to ``g``."""
    return g + p.value * group["weight_decay"] if group.has("weight_decay") else g


def shrunk(group: ParamGroup, p: Variable) -> Tensor:
    """Return the Parameter after decoupled weight decay: multiplied by 1 - lr·weight_decay."""
    return p.value * (1 - group["lr"] * group["weight_decay"]) if group.has("weight_decay") else p.value


def mean(average: Variable, new: Tensor, share: Any) -> Tensor:
    """Move a running mean towards ``new``, which gets this share; return it."""
    before = average.value
    after: Tensor = before + (new - before) * share
    average.assign(after)
    return after


def momentum(buffer: Variable, g: Tensor, factor: Any) -> Tensor:
    """Multiply a momentum by ``factor`` and add ``g``; return it."""
    after: Tensor = buffer.value * factor + g
    buffer.assign(after)
    return after


def touched(g: Tensor) -> Tensor:
    """Return which rows of a gradient are not all 0, as one column. Each element of a vector is a row.

    Sparse gradients have no tensor type. In a compiled step the sums of rows are formed inside the kernel that uses
    them, which skips the other rows: the gradient is never stored.
    """
    different: Tensor = g != 0.0
    return different if g.ndim < 2 else ops.any(different, axis=tuple(range(1, g.ndim)), keepdims=True)


def resting(p: Variable, g: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Return ``new``, with ``old`` in the rows that ``g`` does not touch if the gradients of ``p`` are sparse."""
    return ops.where(touched(g), new, old) if getattr(p, "is_sparse", False) else new
