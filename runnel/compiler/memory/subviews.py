"""In-place concatenations and pads: the producer of a part stores it into the larger array.

This applies to values of map kernels without reductions and of products with their epilogues, if enough of their
elements are adjacent in the larger array; other parts are copied.
"""

from __future__ import annotations

from collections.abc import Collection

from runnel.compiler.fusion.cluster import Cluster, essential, essential_strides
from runnel.compiler.fusion.strided import Strided, reshaped_strides
from runnel.compiler.kernels.allocations import Allocation, BufferView
from runnel.compiler.kernels.lowering import lowering_of
from runnel.core.avals import Shape
from runnel.core.records import field, record
from runnel.graph.node import Value


@record
class Subview:
    """``base``, the node that is stored, is part of a larger array from element ``offset`` on, with ``strides``."""

    base: Value
    offset: int
    strides: Shape

    def of(self, allocation: Allocation) -> BufferView:
        """The view of ``place``, over the axes that are not 1."""
        return allocation, self.offset, essential_strides(self.base.aval.shape, self.strides)


@record
class InPlace:
    """``subviews`` are, for each concatenation and padded array, those of its inputs, by number, that their producers
    store in place."""

    subviews: dict[Value, dict[int, Subview]] = field(default_factory=dict)

    def spares(self, node: Value, x: Value) -> bool:
        """Whether ``node`` need not read its input ``x``."""
        return node in self.subviews and all(i in self.subviews[node] for i, y in enumerate(node.inputs) if y is x)

    def views(self, targets: dict[Value, list[Allocation]]) -> dict[Value, list[BufferView]]:
        """The views of each stored node in larger ones, with strides over its axes that are not 1."""
        views: dict[Value, list[BufferView]] = {}
        for node, subviews in self.subviews.items():
            for subview in subviews.values():
                views.setdefault(subview.base, []).append(subview.of(targets[node][0]))
        return views


def find(
    cluster_of: dict[Value, Cluster], views: dict[Value, Strided], control_dependencies: Collection[Value]
) -> InPlace:
    """All values that can be stored in place."""
    subviews: dict[Value, dict[int, Subview]] = {}
    for node in cluster_of:
        for number, (offset, strides) in lowering_of(node).subviews(node).items():
            x = node.inputs[number]
            subview = None if x in control_dependencies else _subview(x, views[x], offset, strides)
            if subview is not None and _fits(subview, cluster_of.get(subview.base), node.aval.size):
                subviews.setdefault(node, {})[number] = subview
    return InPlace(subviews)


def _subview(x: Value, view: Strided, offset: int, strides: Shape) -> Subview | None:
    """The subview of the base of ``x``, if ``x`` is the whole base in order."""
    if not view.is_dense(x.aval.shape) or view.base.aval.size != x.aval.size or not x.aval.size:
        return None
    base_strides = reshaped_strides(x.aval.shape, strides, view.base.aval.shape)
    return None if base_strides is None else Subview(view.base, offset, base_strides)


def _fits(subview: Subview, cluster: Cluster | None, size: int) -> bool:
    """Whether ``cluster`` can store the subview into an array of ``size``."""
    shape = essential(subview.base.aval.shape)
    if cluster is None or cluster.needs_rows or cluster.reduced or shape != cluster.domain or not shape:
        return False
    root = cluster.root
    return lowering_of(root).takes_subview(root, subview.base.aval.shape, subview.strides, size)
