"""A contraction as one product of matrices: which axes make up rows, columns and the sum, and how operands lie.

Several axes count as one where a single stride steps through them in row-major order. What does not lie so is read
through lists of offsets (the first operand) or copied (the second).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from runnel.compiler.kernels.places import Place, Space
from runnel.core import tables
from runnel.core.avals import Shape
from runnel.core.dtypes import int32
from runnel.core.errors import VerifierError
from runnel.graph.node import Value
from runnel.loops.rules import Contraction, Winograd

_LIMITS = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True)
class Extents:
    """The axes of a contraction: A[*batch, *rows, *inner] · B[*batch, *inner, *columns]."""

    batch: Shape
    rows: Shape
    inner: Shape
    columns: Shape

    @property
    def m(self) -> int:
        return math.prod(self.rows)

    @property
    def n(self) -> int:
        return math.prod(self.columns)

    @property
    def k(self) -> int:
        return math.prod(self.inner)

    @property
    def is_batched(self) -> bool:
        """Whether it is many products rather than one."""
        return any(size != 1 for size in self.batch)


def extents(product: Value) -> Extents:
    """The axes of a contraction node."""
    a, b = (x.aval.shape for x in product.inputs)
    rule = tables.lower.get(product.op) if product.op is not None else None
    if isinstance(rule, Winograd):  # as the convolution that it is, of one tap
        return Extents((), product.aval.shape[:-1], (a[-1],), product.aval.shape[-1:])
    if isinstance(rule, Contraction) and rule.several:
        rows, columns = len(a) - product.attrs["axes"], product.attrs["axes"]
        return Extents((), a[:rows], a[rows:], product.attrs["columns"] if rule.panels else b[columns:])
    return Extents(a[:-2], a[-2:-1], a[-1:], b[-1:])


def is_in_panels(product: Value) -> bool:
    """Whether the second operand of a contraction came in panels."""
    rule = tables.lower.get(product.op) if product.op is not None else None
    return isinstance(rule, Contraction) and rule.panels


def merged_stride(shape: Shape, strides: Shape) -> int | None:
    """The stride that steps through all axes in row-major order; None if there is none."""
    if 0 in shape:
        return 0
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    for (_, outer), (n, inner) in pairwise(axes):
        if outer != inner * n:
            return None
    return axes[-1][1] if axes else 0


def point_strides(product: Value, strides: Shape) -> tuple[int, int] | None:
    """Strides over the result's axes that are not 1 as strides of rows and columns; None where neither can be."""
    found = point_rows(product, strides)
    row = None if found is None else merged_stride(found.shape, found.strides)
    return None if found is None or row is None else (row, found.column)


@dataclass(frozen=True, slots=True)
class PointRows:
    """How an array lies that has an element for each of a result's: its rows over several axes, its columns as one."""

    shape: Shape
    strides: Shape
    column: int


def point_rows(product: Value, strides: Shape) -> PointRows | None:
    """The same from strides over the result's axes that are not 1; None where columns are not one axis."""
    axes = extents(product)
    rows, columns = (tuple(n for n in part if n != 1) for part in (axes.rows, axes.columns))
    column = merged_stride(columns, strides[len(rows) :])
    return None if column is None else PointRows(rows, strides[: len(rows)], column)


class OffsetLists:
    """Lists of the offsets that strided axes reach, in row-major order, as constants: each list once."""

    def __init__(self) -> None:
        self._places: dict[tuple[tuple[int, int], ...], Place] = {}

    def place(self, shape: Shape, strides: Shape) -> Place | None:
        """The list of these axes; None if an offset is too large for one."""
        key = tuple((n, s) for n, s in zip(shape, strides, strict=True) if n != 1)
        reach = [(n - 1) * s for n, s in key]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        if low < _LIMITS.min or high > _LIMITS.max:
            return None
        if key not in self._places:
            offsets = np.zeros(1, np.int32)
            for n, s in key:
                offsets = (offsets[:, None] + np.arange(n, dtype=np.int32) * np.int32(s)).reshape(-1)
            self._places[key] = Place(Space.CONSTANT, int32, offsets.size, "offsets", value=offsets)
        return self._places[key]


def values_of(offsets: Place) -> np.ndarray[Any, np.dtype[np.int32]]:
    """What a list holds."""
    if offsets.value is None:
        raise VerifierError(f"The list '{offsets.label}' of offsets is no constant.")
    return offsets.value
