"""Values that lie nowhere but inside a padded array, where their readers find them by strides.

A value that its maker stores into a padded array is stored once, not twice, where every other reader of it can go by
strides or lists of offsets, and the array is not much larger than the value, since it must be held as long.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from runnel.compiler.fusion.clusters import Cluster, Form, aligned_strides, is_batched, point_shape
from runnel.compiler.fusion.strided import Strided, resolve_views
from runnel.compiler.kernels.contraction import matrices
from runnel.compiler.memory.laying import Laying, Piece
from runnel.core import tables
from runnel.core.avals import Shape
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.loops.rules import BucketSums, Concatenation, Padding, WinogradGradient

_MUCH: Final = 1.5  # times the value's size


@dataclass(frozen=True, slots=True)
class Interiors:
    """``holders`` are the padded arrays of the values that lie inside of them alone; ``views`` says how all views of
    the graph lie then."""

    holders: dict[Value, Value]
    views: dict[Value, Strided]


def find(
    graph: Graph,
    strides: dict[Value, Shape],
    views: dict[Value, Strided],
    home: dict[Value, Cluster],
    laying: Laying,
    dense: Collection[Value],
) -> Interiors:
    """The values that need no memory of their own; those of ``dense`` have it anyhow. ``strides`` are those of inputs
    that are not dense."""
    pieces: dict[Value, tuple[Value, Piece]] = {}
    for node, parts in laying.pieces.items():
        if node.op is not None and isinstance(tables.lower.get(node.op), Padding) and parts[0].base not in dense:
            pieces.setdefault(parts[0].base, (node, parts[0]))
    if not pieces:
        return Interiors({}, views)
    lying = resolve_views(graph, strides | {base: piece.strides for base, (_, piece) in pieces.items()})
    broken = {views[x].base for x in graph.values if views[x].base is not lying[x].base}
    readers: dict[Value, list[tuple[Value, Value]]] = {base: [] for base in pieces}
    for node in home:
        for x in node.inputs:
            base = views[x].base
            if base in readers and home[base] is not home[node] and not laying.spares(node, x):
                readers[base].append((node, x))
    holders: dict[Value, Value] = {}
    for base, (node, _) in pieces.items():
        roomy = not readers[base] or node.aval.size <= _MUCH * base.aval.size
        if base not in broken and roomy and all(_goes_by_strides(n, x, lying[x], home[n]) for n, x in readers[base]):
            holders[base] = node
    offsets = {base: pieces[base][1].offset for base in holders}
    moved = {
        x: Strided(view.base, view.offset + offsets[view.base], view.strides)
        for x, view in lying.items()
        if view.base in offsets
    }
    return Interiors(holders, views | moved)


def _goes_by_strides(node: Value, x: Value, view: Strided, cluster: Cluster) -> bool:
    """Whether ``node`` reads ``x`` well where it lies so."""
    rule = tables.lower.get(node.op) if node.op is not None else None
    if cluster.form is Form.MAP:
        return not isinstance(rule, BucketSums)
    if cluster.form is Form.ALONE:
        return isinstance(rule, Padding | Concatenation) or (isinstance(rule, WinogradGradient) and _has_rows(view))
    if node is cluster.product:
        return x is node.inputs[0] and x not in node.inputs[1:] and not is_batched(node)
    return (
        matrices.point_rows(cluster.product, aligned_strides(x.aval.shape, view.strides, point_shape(node))) is not None
    )


def _has_rows(view: Strided) -> bool:
    """Whether the elements along the last axis are neighbours."""
    return view.strides[-1] == 1
