"""Strided views of the memory of other nodes."""

from __future__ import annotations

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
        """Whether it is the whole of a dense array of ``shape``, in order."""
        return self.offset == 0 and all(
            n <= 1 or s == d for n, s, d in zip(shape, self.strides, row_major(shape), strict=True)
        )


def reshaped_strides(shape: Shape, strides: Shape, target: Shape) -> Shape | None:
    """Strides of ``target`` over the same memory in the same row-major order; None when a copy is needed."""
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
