"""A contraction as one product of matrices: the axes of rows, of columns and of the sum."""

from __future__ import annotations

from runnel.compiler.kernels.result_axes import Extents
from runnel.graph.node import Value
from runnel.loops.rules import DotGeneral


def extents(product: Value, rule: DotGeneral) -> Extents:
    """The axes of a contraction node."""
    a, b = (x.aval.shape for x in product.inputs)
    if rule.several:
        rows, columns = len(a) - product.attrs["axes"], product.attrs["axes"]
        return Extents((), a[:rows], a[rows:], product.attrs["columns"] if rule.panels else b[columns:])
    return Extents(a[:-2], a[-2:-1], a[-1:], b[-1:])
