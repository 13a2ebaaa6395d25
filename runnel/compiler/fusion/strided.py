"""Views as index arithmetic: each view of a graph is an offset and strides over the dense memory of another node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runnel.core import tables
from runnel.core.avals import Aval, Shape, row_major
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.loops.rules import View


@dataclass(frozen=True, slots=True)
class Strided:
    """Element [i…] of a node is element ``offset + Σ strides·i`` of the memory of ``base``: dense row-major memory,
    unless ``base`` is an input that lies otherwise."""

    base: Value
    offset: int
    strides: Shape

    def is_dense(self, shape: Shape) -> bool:
        """Whether it is the whole of a dense array of ``shape``, in order."""
        return self.offset == 0 and all(
            n <= 1 or s == d for n, s, d in zip(shape, self.strides, row_major(shape), strict=True)
        )


def resolve_views(graph: Graph, strides: dict[Value, Shape] | None = None) -> dict[Value, Strided]:
    """For every node, what it is a view of: itself, unless its op is a view that needs no copy. ``strides`` are those
    of inputs that are not dense.

    A view that strides cannot express (a reshape that merges axes out of order) is its own base: it will be copied.
    """
    found: dict[Value, Strided] = {}
    for node in graph.values:
        rule = tables.lower.get(node.op) if node.op is not None else None
        viewed = _view(found[node.inputs[0]], node, rule) if isinstance(rule, View) else None
        own = (strides or {}).get(node, row_major(node.aval.shape))
        found[node] = viewed if viewed is not None else Strided(node, 0, own)
    return found


def _view(source: Strided, node: Value, rule: View) -> Strided | None:
    viewed = view_layout(rule, node.inputs[0].aval, source.strides, node.aval, node.attrs)
    return None if viewed is None else Strided(source.base, source.offset + viewed[0], viewed[1])


def view_layout(
    rule: View, source: Aval, strides: Shape, result: Aval, attrs: dict[str, Any]
) -> tuple[int, Shape] | None:
    """Offset and strides of a view of memory with ``strides``; None when it needs a copy."""
    mapping = rule.map(source, result, **attrs)
    if mapping is None:
        found = reshaped_strides(source.shape, strides, result.shape)
        return None if found is None else (0, found)
    offset = 0
    steps = [0] * result.ndim
    for (start, terms), stride in zip(mapping, strides, strict=True):
        offset += start * stride
        for axis, step in terms:
            steps[axis] += step * stride
    return offset, tuple(steps)


def reshaped_strides(shape: Shape, strides: Shape, target: Shape) -> Shape | None:
    """Strides of ``target`` over the same memory in the same row-major order; None when a copy is needed."""
    if 0 in target:
        return row_major(target)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    wanted = list(target)
    i = 0
    j = 0
    while j < len(wanted):
        if wanted[j] == 1:
            result.append(0)
            j += 1
            continue
        if i >= len(old):
            return None
        size, stride = old[i]
        i += 1
        group: list[int] = []
        total = 1
        while total < size and j < len(wanted):
            group.append(wanted[j])
            total *= wanted[j]
            j += 1
        while total > size:  # the target axis spans several old ones: they must lie densely in one another
            if i >= len(old):
                return None
            inner, inner_stride = old[i]
            if stride != inner_stride * inner:
                return None
            size, stride = size * inner, inner_stride
            i += 1
            while total < size and j < len(wanted):
                group.append(wanted[j])
                total *= wanted[j]
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
