"""Reindexing and its transpose: tensor expressions of one operand, whose subscripts are given as texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from runnel.core.errors import ArgumentError
from runnel.core.surface import offered
from runnel.expressions import syntax
from runnel.expressions.function import tensor_expr
from runnel.ops.arguments import Array

_AGGREGATIONS: Final = {"sum": "+=", "prod": "*=", "max": "max=", "min": "min="}


@offered("rn")
def reindex(x: Array, shape: Sequence[int], indices: Sequence[str]) -> Array:
    """y[i0, i1, …] = x[indices], of ``shape``: 0 where an index is outside of ``x``.

    ``indices`` has a text for each axis of ``x``, affine in ``i0``, ``i1``, …, the positions along the axes of the
    result, as in ``reindex(x, (n, c, h, w, 3, 3), ["i0", "i1", "i2 + i4 - 1", "i3 + i5 - 1"])``. Its gradient is
    ``reindex_reduce``. In a program it is a view, which the kernels that read it include.
    """
    axes = ", ".join(f"i{a}: {n}" for a, n in enumerate(_sizes("reindex", shape)))
    inside = _inside("reindex", x.shape, indices)
    return tensor_expr(f"y[{axes}] = x[{', '.join(indices)}]" + (f" where {inside}" if inside else ""))(x)


@offered("rn")
def reindex_reduce(y: Array, op: str, shape: Sequence[int], indices: Sequence[str]) -> Array:
    """x[indices] = the ``op`` ("sum", "prod", "max" or "min") of all y[i0, i1, …] with these indices, of ``shape``.

    ``indices`` has a text for each axis of ``shape``, affine in ``i0``, ``i1``, …; elements whose indices are
    outside are left out. The gradient of a sum is ``reindex``.
    """
    if op not in _AGGREGATIONS:
        raise ArgumentError(f"[reindex_reduce] received {op!r}; the operations are {', '.join(_AGGREGATIONS)}.")
    sizes = _sizes("reindex_reduce", shape)
    inside = _inside("reindex_reduce", sizes, indices)
    axes = ", ".join(f"{text}: {n}" for text, n in zip(indices, sizes, strict=True))
    source = ", ".join(f"i{a}" for a in range(y.ndim))
    return tensor_expr(f"x[{axes}] {_AGGREGATIONS[op]} y[{source}]" + (f" where {inside}" if inside else ""))(y)


def _sizes(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    if not all(type(n) is int and n >= 0 for n in shape):
        raise ArgumentError(f"[{name}] received the shape {tuple(shape)}; pass integers of 0 or more.")
    return tuple(shape)


def _inside(name: str, shape: Sequence[int], indices: Sequence[str]) -> str:
    """The constraints that keep ``indices`` in an array of ``shape``."""
    if len(indices) != len(shape) or not all(isinstance(text, str) for text in indices):
        raise ArgumentError(
            f"[{name}] received {list(indices)} for the shape {tuple(shape)}; pass a text for each axis."
        )
    for text in indices:
        syntax.parse(f"x[{text}] = 0")  # one subscript each
    return ", ".join(f"0 <= {text} < {n}" for text, n in zip(indices, shape, strict=True))
