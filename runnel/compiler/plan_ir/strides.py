"""Strides: views of the memory of other nodes, and a kernel's result as rows and columns.

Several axes count as one axis where they have a single stride in row-major order.
"""

from __future__ import annotations

import math
from itertools import pairwise

from runnel.core.avals import Shape, row_major
from runnel.core.records import record
from runnel.graph.node import Value


@record
class Strided:
    """Element [i…] of a node is element ``offset + Σ strides·i`` of the memory of ``base``: dense row-major memory,
    unless ``base`` is a strided input."""

    base: Value
    offset: int
    strides: Shape

    def is_dense(self, shape: Shape) -> bool:
        """Return whether it is the whole of a dense array of ``shape``, in order."""
        return self.offset == 0 and all(
            n <= 1 or s == d for n, s, d in zip(shape, self.strides, row_major(shape), strict=True)
        )


def reshaped_strides(shape: Shape, strides: Shape, target: Shape) -> Shape | None:
    """Return strides of ``target`` over the same memory in the same row-major order; None when a copy is needed."""
    if 0 in target:
        return row_major(target)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    extents = list(target)
    i = 0
    j = 0
    while j < len(extents):
        if extents[j] == 1:
            result.append(0)
            j += 1
            continue
        if i >= len(old):
            return None
        size, stride = old[i]
        i += 1
        group: list[int] = []
        total = 1
        while total < size and j < len(extents):
            group.append(extents[j])
            total *= extents[j]
            j += 1
        while total > size:  # the target axis spans several old ones, which must be contiguous
            if i >= len(old):
                return None
            inner, inner_stride = old[i]
            if stride != inner_stride * inner:
                return None
            size, stride = size * inner, inner_stride
            i += 1
            while total < size and j < len(extents):
                group.append(extents[j])
                total *= extents[j]
                j += 1
        if total != size:
            return None
        step = stride
        group_strides: list[int] = []
        for n in reversed(group):
            group_strides.append(step)
            step *= n
        result.extend(reversed(group_strides))
    return tuple(result) if i == len(old) else None


def merged_stride(shape: Shape, strides: Shape) -> int | None:
    """Return the single stride of all axes in row-major order; None if there is none."""
    if 0 in shape:
        return 0
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    for (_, outer), (n, inner) in pairwise(axes):
        if outer != inner * n:
            return None
    return axes[-1][1] if axes else 0


@record
class PointRows:
    """The strides of an array of a result's shape: its rows over several axes, its columns as one."""

    shape: Shape
    strides: Shape
    column: int


@record
class ResultAxes:
    """The axes of a kernel's result, in order: those of its rows, then those of its columns."""

    rows: Shape
    columns: Shape

    @property
    def m(self) -> int:
        return math.prod(self.rows)

    @property
    def n(self) -> int:
        return math.prod(self.columns)

    def point_rows(self, strides: Shape) -> PointRows | None:
        """Return an array of these ``strides`` over the axes that are not 1; None where its columns are not
        one axis."""
        rows, columns = (tuple(n for n in part if n != 1) for part in (self.rows, self.columns))
        column = merged_stride(columns, strides[len(rows) :])
        return None if column is None else PointRows(rows, strides[: len(rows)], column)

    def has_steps(self, strides: Shape) -> bool:
        """Return whether such an array has one stride for rows and one for columns."""
        rows = self.point_rows(strides)
        return rows is not None and merged_stride(rows.shape, rows.strides) is not None


@record
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
        """True for a batch of products."""
        return any(size != 1 for size in self.batch)

    @property
    def result(self) -> ResultAxes:
        return ResultAxes(self.rows, self.columns)
