"""Padded aliases: values without memory of their own, which readers access by strides inside a padded array.

A value that its producer stores into a padded array is stored only there if every other reader can use strides or
offset tables, and if the array is not much larger than the value, since it lives as long.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from runnel.compiler.fusion.cluster import Cluster, Form, aligned_strides
from runnel.compiler.fusion.strided import Strided
from runnel.compiler.fusion.views import resolve_views
from runnel.compiler.kernels.lowering import lowering_of
from runnel.compiler.memory.subviews import InPlace, Subview
from runnel.core.avals import Shape
from runnel.core.records import record
from runnel.graph.graph import Graph
from runnel.graph.node import Value

_MUCH: Final = 1.5  # times the value's size


@record
class PaddedAliases:
    """``holders`` are the padded arrays of the values that are stored only there; ``views`` are all views of the graph
    with these aliases."""

    holders: dict[Value, Value]
    views: dict[Value, Strided]


def find(
    graph: Graph,
    strides: dict[Value, Shape],
    views: dict[Value, Strided],
    cluster_of: dict[Value, Cluster],
    in_place: InPlace,
    dense: Collection[Value],
) -> PaddedAliases:
    """The values that need no memory of their own; those of ``dense`` always have it. ``strides`` are those of inputs
    that are not dense."""
    subviews: dict[Value, tuple[Value, Subview]] = {}
    for node, parts in in_place.subviews.items():
        if lowering_of(node).holds_operand and parts[0].base not in dense:
            subviews.setdefault(parts[0].base, (node, parts[0]))
    if not subviews:
        return PaddedAliases({}, views)
    aliased = resolve_views(graph, strides | {base: subview.strides for base, (_, subview) in subviews.items()})
    broken = {views[x].base for x in graph.values if views[x].base is not aliased[x].base}
    readers: dict[Value, list[tuple[Value, Value]]] = {base: [] for base in subviews}
    for node in cluster_of:
        for x in node.inputs:
            base = views[x].base
            if base in readers and cluster_of[base] is not cluster_of[node] and not in_place.spares(node, x):
                readers[base].append((node, x))
    holders: dict[Value, Value] = {}
    for base, (node, _) in subviews.items():
        roomy = not readers[base] or node.aval.size <= _MUCH * base.aval.size
        if (
            base not in broken
            and roomy
            and all(_goes_by_strides(n, x, aliased[x], cluster_of[n]) for n, x in readers[base])
        ):
            holders[base] = node
    offsets = {base: subviews[base][1].offset for base in holders}
    moved = {
        x: Strided(view.base, view.offset + offsets[view.base], view.strides)
        for x, view in aliased.items()
        if view.base in offsets
    }
    return PaddedAliases(holders, views | moved)


def _goes_by_strides(node: Value, x: Value, view: Strided, cluster: Cluster) -> bool:
    """Whether ``node`` can read ``x`` efficiently as this strided view."""
    if cluster.form is Form.ROOTED and node is not cluster.root:
        axes = lowering_of(cluster.root).epilogue_axes(cluster.root)
        strides = aligned_strides(x.aval.shape, view.strides, lowering_of(node).point_shape(node))
        return axes is not None and axes.point_rows(strides) is not None
    return lowering_of(node).reads_by_strides(node, x, view)
