"""Values stored inside larger arrays: in-place concatenations and pads, and padded aliases.

The producer of a part stores it directly into the concatenation or padded array if enough of the part's elements are
adjacent there; other parts are copied. This applies to values of map kernels without reductions and of products with
their epilogues. A value that is stored in a padded array needs no separate memory (a padded alias) if all its other
readers can use strides or offset tables, and if the array is not much larger than the value, since it lives as long.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from runnel.compiler.lowering.protocol import lowering_of, resolve_views
from runnel.compiler.plan_ir.calls import Allocation, BufferView
from runnel.compiler.plan_ir.clusters import Cluster, Form, aligned_strides, essential, essential_strides
from runnel.compiler.plan_ir.strides import Strided, reshaped_strides
from runnel.core.avals import Shape
from runnel.core.records import field, record
from runnel.graph.graph import Graph
from runnel.graph.node import Value


@record
class Subview:
    """``base``, the node that is stored, is part of a larger array from element ``offset`` on, with ``strides``."""

    base: Value
    offset: int
    strides: Shape

    def of(self, allocation: Allocation) -> BufferView:
        """Return the view of ``place``, over the axes that are not 1."""
        return allocation, self.offset, essential_strides(self.base.aval.shape, self.strides)


@record
class InPlace:
    """``subviews`` are, for each concatenation and padded array, the inputs, by number, that their producers store in
    place."""

    subviews: dict[Value, dict[int, Subview]] = field(default_factory=dict)

    def spares(self, node: Value, x: Value) -> bool:
        """Return whether ``node`` need not read its input ``x``."""
        return node in self.subviews and all(i in self.subviews[node] for i, y in enumerate(node.inputs) if y is x)

    def views(self, targets: dict[Value, list[Allocation]]) -> dict[Value, list[BufferView]]:
        """Return the views of each stored node in larger ones, with strides over its axes that are not 1."""
        views: dict[Value, list[BufferView]] = {}
        for node, subviews in self.subviews.items():
            for subview in subviews.values():
                views.setdefault(subview.base, []).append(subview.of(targets[node][0]))
        return views


def find_in_place(
    cluster_of: dict[Value, Cluster], views: dict[Value, Strided], control_dependencies: Collection[Value]
) -> InPlace:
    """Return all values that can be stored in place."""
    subviews: dict[Value, dict[int, Subview]] = {}
    for node in cluster_of:
        for number, (offset, strides) in lowering_of(node).subviews(node).items():
            x = node.inputs[number]
            subview = None if x in control_dependencies else _subview(x, views[x], offset, strides)
            if subview is not None and _fits(subview, cluster_of.get(subview.base), node.aval.size):
                subviews.setdefault(node, {})[number] = subview
    return InPlace(subviews)


def _subview(x: Value, view: Strided, offset: int, strides: Shape) -> Subview | None:
    """Return the subview of the base of ``x``, if ``x`` is the whole base in order."""
    if not view.is_dense(x.aval.shape) or view.base.aval.size != x.aval.size or not x.aval.size:
        return None
    base_strides = reshaped_strides(x.aval.shape, strides, view.base.aval.shape)
    return None if base_strides is None else Subview(view.base, offset, base_strides)


def _fits(subview: Subview, cluster: Cluster | None, size: int) -> bool:
    """Return whether ``cluster`` can store the subview into an array of ``size``."""
    shape = essential(subview.base.aval.shape)
    if cluster is None or cluster.needs_rows or cluster.reduced or shape != cluster.domain or not shape:
        return False
    root = cluster.root
    return lowering_of(root).takes_subview(root, subview.base.aval.shape, subview.strides, size)


_MUCH: Final = 3  # times half the value's size


@record
class PaddedAliases:
    """``holders`` are the padded arrays of the values that are stored only there; ``views`` are all views of the graph
    with these aliases."""

    holders: dict[Value, Value]
    views: dict[Value, Strided]


def find_aliases(
    graph: Graph,
    strides: dict[Value, Shape],
    views: dict[Value, Strided],
    cluster_of: dict[Value, Cluster],
    in_place: InPlace,
    dense: Collection[Value],
) -> PaddedAliases:
    """Return the values that need no separate memory; values of ``dense`` always have it. ``strides`` are the strides
    of inputs that are not dense."""
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
        roomy = not readers[base] or 2 * node.aval.size <= _MUCH * base.aval.size
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
    """Return whether ``node`` can read ``x`` efficiently as this strided view."""
    if cluster.form is Form.ROOTED and node is not cluster.root:
        axes = lowering_of(cluster.root).epilogue_axes(cluster.root)
        strides = aligned_strides(x.aval.shape, view.strides, lowering_of(node).point_shape(node))
        return axes is not None and axes.point_rows(strides) is not None
    return lowering_of(node).reads_by_strides(node, x, view)
