"""Reindexing and its transpose: tensor expressions of one operand, whose subscripts are given as texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from runnel.core.errors import ArgumentError
from runnel.core.showing import short_repr
from runnel.expressions import syntax
from runnel.expressions.function import tensor_expr
from runnel.ops.arguments import Array

_AGGREGATIONS: Final = {"sum": "+=", "prod": "*=", "max": "max=", "min": "min="}


def reindex(x: Array, shape: Sequence[int], indices: Sequence[str]) -> Array:
    """y[i0, i1, …] = x[indices], of ``shape``: 0 where an index is outside of ``x``.

    ``indices`` has a text for each axis of ``x``, affine in ``i0``, ``i1``, …, the positions along the axes of the
    result, as in ``reindex(x, (n, c, h, w, 3, 3), ["i0", "i1", "i2 + i4 - 1", "i3 + i5 - 1"])``. Its gradient is
    ``reindex_reduce``. In a program it is a view, which the kernels that read it include.
    """
    axes = ", ".join(f"i{a}: {n}" for a, n in enumerate(_sizes("reindex", shape)))
    inside = _inside("reindex", x.shape, indices, len(shape))
    return tensor_expr(f"y[{axes}] = x[{', '.join(indices)}]" + (f" where {inside}" if inside else ""))(x)


def reindex_reduce(y: Array, op: str, shape: Sequence[int], indices: Sequence[str]) -> Array:
    """x[indices] = the ``op`` ("sum", "prod", "max" or "min") of all y[i0, i1, …] with these indices, of ``shape``.

    ``indices`` has a text for each axis of ``shape``, affine in ``i0``, ``i1``, …; elements whose indices are
    outside are left out. The gradient of a sum is ``reindex``.
    """
    if op not in _AGGREGATIONS:
        raise ArgumentError(f"[reindex_reduce] received {op!r}; the operations are {', '.join(_AGGREGATIONS)}.")
    sizes = _sizes("reindex_reduce", shape)
    inside = _inside("reindex_reduce", sizes, indices, y.ndim)
    axes = ", ".join(f"{text}: {n}" for text, n in zip(indices, sizes, strict=True))
    source = ", ".join(f"i{a}" for a in range(y.ndim))
    return tensor_expr(f"x[{axes}] {_AGGREGATIONS[op]} y[{source}]" + (f" where {inside}" if inside else ""))(y)


def _sizes(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    if not isinstance(shape, Sequence) or not all(type(n) is int and n >= 0 for n in shape):
        raise ArgumentError(f"[{name}] received the shape {short_repr(shape)}; pass integers of 0 or more.")
    return tuple(shape)


def _inside(name: str, shape: Sequence[int], indices: Sequence[str], rank: int) -> str:
    """The constraints that keep ``indices``, of ``rank`` positions, in an array of ``shape``."""
    is_list = isinstance(indices, Sequence) and not isinstance(indices, str)
    if not is_list or len(indices) != len(shape) or not all(isinstance(text, str) for text in indices):
        raise ArgumentError(
            f"[{name}] received {short_repr(indices)} for the shape {tuple(shape)}; pass a text for each axis."
        )
    for text in indices:
        syntax.parse(f"x[{text}] = 0")  # one subscript each
        unknown = sorted({*re.findall(r"[^\W\d]\w*", text)} - {f"i{axis}" for axis in range(rank)})
        if unknown:
            raise ArgumentError(
                f"[{name}] the index {text!r} has the name '{unknown[0]}'; the positions are called i0 to i{rank - 1}."
            )
    return ", ".join(f"0 <= {text} < {n}" for text, n in zip(indices, shape, strict=True))
