"""Concatenations and padded arrays without copies: a kernel that makes a part of one stores it where it belongs.

That holds for values of map kernels without reductions and of products with what follows them, whose elements lie side
by side in the larger array, enough of them; other parts are copied.
"""

from __future__ import annotations

from collections.abc import Collection

from runnel.compiler.fusion.cluster import Cluster, essential, essential_strides
from runnel.compiler.fusion.strided import Strided, reshaped_strides
from runnel.compiler.kernels.lowering import lowering_of
from runnel.compiler.kernels.places import BufferView, Place
from runnel.core.avals import Shape
from runnel.core.records import field, record
from runnel.graph.node import Value


@record
class Subview:
    """``base``, the node that is stored, lies in a larger array from element ``offset`` on, with ``strides``."""

    base: Value
    offset: int
    strides: Shape

    def of(self, place: Place) -> BufferView:
        """The same inside of ``place``, over the axes that are not 1."""
        return place, self.offset, essential_strides(self.base.aval.shape, self.strides)


@record
class InPlace:
    """``subviews`` are, for each concatenation and padded array, those of its inputs, by their numbers, that are stored
    in place by their makers."""

    subviews: dict[Value, dict[int, Subview]] = field(default_factory=dict)

    def spares(self, node: Value, x: Value) -> bool:
        """Whether ``node`` has no need to read its input ``x``."""
        return node in self.subviews and all(i in self.subviews[node] for i, y in enumerate(node.inputs) if y is x)

    def views(self, targets: dict[Value, list[Place]]) -> dict[Value, list[BufferView]]:
        """Where each stored node lies in larger ones, with strides over its axes that are not 1."""
        found: dict[Value, list[BufferView]] = {}
        for node, subviews in self.subviews.items():
            for subview in subviews.values():
                found.setdefault(subview.base, []).append(subview.of(targets[node][0]))
        return found


def find(
    cluster_of: dict[Value, Cluster], views: dict[Value, Strided], control_dependencies: Collection[Value]
) -> InPlace:
    """All that can be stored in place."""
    subviews: dict[Value, dict[int, Subview]] = {}
    for node in cluster_of:
        for number, (offset, strides) in lowering_of(node).subviews(node).items():
            x = node.inputs[number]
            subview = None if x in control_dependencies else _subview(x, views[x], offset, strides)
            if subview is not None and _fits(subview, cluster_of.get(subview.base), node.aval.size):
                subviews.setdefault(node, {})[number] = subview
    return InPlace(subviews)


def _subview(x: Value, view: Strided, offset: int, strides: Shape) -> Subview | None:
    """``x``, which lies so in a larger array, as its base: where ``x`` is all of that, in order."""
    if not view.is_dense(x.aval.shape) or view.base.aval.size != x.aval.size or not x.aval.size:
        return None
    found = reshaped_strides(x.aval.shape, strides, view.base.aval.shape)
    return None if found is None else Subview(view.base, offset, found)


def _fits(subview: Subview, cluster: Cluster | None, size: int) -> bool:
    """Whether ``cluster`` can store the subview into an array of ``size``."""
    shape = essential(subview.base.aval.shape)
    if cluster is None or cluster.needs_rows or cluster.reduced or shape != cluster.domain or not shape:
        return False
    root = cluster.root
    return lowering_of(root).takes_subview(root, subview.base.aval.shape, subview.strides, size)
