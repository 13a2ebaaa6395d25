"""Orders of axes: regions computed in the best order, transposed products, and results in any order.

Ops that commute with permutes (by table ``axes``: elementwise ops, slices, padding, …) and the permutes between them
form *regions*. A region can be computed in any order of axes. Its operands and readers prefer certain orders, and
:func:`sink_permutes` chooses the one that most bytes at the border prefer. Permutes inside the region disappear;
permutes at the border that disagree become views. Float reductions are borders, since their result depends on the
order of summation.

:func:`flip_transposed_products` replaces (A·B)ᵀ by Bᵀ·Aᵀ where all readers of the product transpose it. The transposes
of the operands are views and cost nothing, and the consumers of the product (such as an optimizer's update of a
weight) then read it in the order of computation, so that they can be fused as its epilogue. A cast of the product may
be between them. The bits are the same: each element is the same chain over k, and multiplication commutes.

:func:`in_any_order` removes permutes of final results; strides then describe the memory of the results.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from runnel.core import tables
from runnel.core.avals import Shape, aval, row_major
from runnel.graph.graph import Graph
from runnel.graph.node import Constant, Value, applied, reapplied
from runnel.graph.rewriting import Rewriter, substituted
from runnel.ops.conversion import cast_p
from runnel.ops.linear_algebra.contraction import matmul_p
from runnel.ops.shapes.views import inverse_order, permute_p

Order = tuple[int, ...]  # a value in this order has the value's axis order[i] as its axis i

LEAST_AXES: Final = 3  # products read matrices with any strides
SMALL: Final = 1 << 16  # most bytes of a constant that is transposed at compile time


def in_order(node: Value, order: Order) -> dict[str, Any] | None:
    """Return the attributes of ``node`` with its operands and result in another order of axes; None if it has none."""
    rule = None if node.op is None or node.aval.ndim < LEAST_AXES else tables.axes.get(node.op)
    attrs: dict[str, Any] | None = None if rule is None else rule.in_order(node.attrs, order, node.aval)
    return attrs


def _is_movable(node: Value) -> bool:
    return in_order(node, tuple(range(node.aval.ndim))) is not None


def sink_permutes(graph: Graph) -> Graph:
    """Compute each region of ``graph`` in the order of axes that its border prefers."""
    if not any(n.op is permute_p and n.aval.ndim >= LEAST_AXES for n in graph.values):
        return graph
    orders = _Regions(graph).orders()
    return _Rewriting(graph, orders).graph() if orders else graph


def _after(first: Order, second: Order) -> Order:
    """Return the composition of two orders: axis i of the result is axis first[second[i]] of the operand of
    ``first``."""
    return tuple(first[a] for a in second)


class _Regions:
    """The regions of a graph and their preferred orders. The order of a member is ``relative`` composed with the order
    of its region."""

    def __init__(self, graph: Graph) -> None:
        self.users = graph.users()
        self.nodes = graph.values
        self.roots = graph.roots
        self.members = {n for n in self.nodes if _is_permute(n) or _is_movable(n)}
        self.relative: dict[Value, Order] = {}

    def orders(self) -> dict[Value, Order]:
        """Return the order of each member of the regions that change."""
        orders: dict[Value, Order] = {}
        for node in self.nodes:
            if node in self.members and node not in self.relative:
                region = self._region(node)
                chosen = self._chosen(region)
                if chosen is not None:
                    orders.update((n, _after(self.relative[n], chosen)) for n in region)
        return orders

    def _region(self, start: Value) -> list[Value]:
        """Collect ``start`` and all members connected with it; set their relative orders."""
        self.relative[start] = tuple(range(start.aval.ndim))
        region = [start]
        for node in region:
            mine = self.relative[node]
            of_inputs = self._of_inputs(node)
            for x in node.inputs:
                if x in self.members and x not in self.relative:
                    self.relative[x] = of_inputs
                    region.append(x)
            for reader in self.users[node]:
                if reader in self.members and reader not in self.relative:
                    undone = inverse_order(reader.attrs["axes"]) if _is_permute(reader) else None
                    self.relative[reader] = mine if undone is None else _after(undone, mine)
                    region.append(reader)
        return region

    def _of_inputs(self, node: Value) -> Order:
        """Return the relative order in which ``node`` reads its inputs."""
        mine = self.relative[node]
        return _after(node.attrs["axes"], mine) if _is_permute(node) else mine

    def _chosen(self, region: list[Value]) -> Order | None:
        """Return the best order of the region; None if that is the current one."""
        workers = [n for n in region if not _is_permute(n)]
        if len(workers) in (0, len(region)):
            return None
        current = inverse_order(self.relative[workers[0]])
        votes: dict[Order, int] = {current: 0}
        for node in region:
            preferred = inverse_order(self.relative[node])
            readers = sum(reader not in self.members for reader in self.users[node])
            weight = (readers + self.roots.count(node)) * node.aval.nbytes
            votes[preferred] = votes.get(preferred, 0) + weight
            preferred = inverse_order(self._of_inputs(node))
            weight = sum(x.aval.nbytes for x in node.inputs if x not in self.members and x.aval.size > 1)
            votes[preferred] = votes.get(preferred, 0) + weight
        best = max(votes, key=lambda order: votes[order])
        chosen = current if votes[current] == votes[best] else best
        unchanged = all(_is_in_order(_after(self.relative[n], chosen)) for n in workers)
        return None if unchanged else chosen


class _Rewriting:
    """Rewrites the graph with members in their orders."""

    def __init__(self, graph: Graph, orders: dict[Value, Order]) -> None:
        self.old = graph
        self.orders = orders
        self.rewriter = Rewriter()  # maps values to replacements with the original order of axes
        self.new: dict[Value, Value] = {}
        self.permuted: dict[tuple[Value, Order], Value] = {}

    def graph(self) -> Graph:
        for node in self.old.values:
            self.new[node] = self._rewritten(node)
        return Graph(
            self.old.inputs,
            [self._plain(o) for o in self.old.outputs],
            {v: self._plain(n) for v, n in self.old.updates.items()},
            self.old.name,
            [self._plain(x) for x in self.old.effects],
        )

    def _rewritten(self, node: Value) -> Value:
        order = self.orders.get(node)
        if order is None:
            self.rewriter.known.update((x, self._plain(x)) for x in node.inputs)
            return self.rewriter.keep(node)
        if _is_permute(node):
            return self._in_order(node.inputs[0], _after(node.attrs["axes"], order))
        moved = in_order(node, order)
        attrs = node.attrs if moved is None else moved
        result = aval(tuple(node.aval.shape[a] for a in order), node.aval.dtype)
        return reapplied(node, tuple(self._in_order(x, order) for x in node.inputs), attrs, result)

    def _plain(self, x: Value) -> Value:
        order = self.orders.get(x)
        return self.new[x] if order is None else self._in_order(x, tuple(range(len(order))))

    def _in_order(self, x: Value, target: Order) -> Value:
        """Return the replacement of ``x``, with its axes in the order ``target``."""
        node, order = self.new[x], self.orders.get(x)
        axes = target if order is None else tuple(order.index(a) for a in target)
        if _is_permute(node):
            axes, node = _after(node.attrs["axes"], axes), node.inputs[0]
        if _is_in_order(axes) or node.aval.size == 1 == max(node.aval.shape):
            return node
        key = (node, axes)
        if key not in self.permuted:
            self.permuted[key] = _permuted(node, axes)
        return self.permuted[key]


def _permuted(node: Value, axes: Order) -> Value:
    shape = aval(tuple(node.aval.shape[a] for a in axes), node.aval.dtype)
    if node.is_constant and node.aval.nbytes <= SMALL:
        value = np.ascontiguousarray(np.transpose(node.value, axes))
        value.flags.writeable = False
        return Constant(shape, value, node.where)
    return applied(permute_p, (node,), {"axes": axes}, shape, node.where)


def _is_permute(node: Value) -> bool:
    return node.op is permute_p and node.aval.ndim >= LEAST_AXES


def _is_in_order(order: Order) -> bool:
    return order == tuple(range(len(order)))


def flip_transposed_products(graph: Graph) -> Graph:
    """Rewrite every contraction of matrices whose only readers swap its last two axes."""
    users = graph.users()
    roots = set(graph.roots)
    replace: dict[Value, Value] = {}
    for node in graph.values:
        if node.op is not matmul_p or node in roots or not users[node]:
            continue
        source = users[node][0] if len(users[node]) == 1 and users[node][0].op is cast_p else node
        readers = users[source]
        if readers and source not in roots and all(_swaps_last_two(user) for user in readers):
            a, b = node.inputs
            batch, (m, n) = node.aval.shape[:-2], node.aval.shape[-2:]
            shape = aval((*batch, n, m), node.aval.dtype)
            flipped = reapplied(node, (_swapped(b), _swapped(a)), aval=shape)
            if source is not node:
                flipped = applied(cast_p, (flipped,), source.attrs, readers[0].aval, source.where)
            for user in readers:
                replace[user] = flipped
    return substituted(graph, replace) if replace else graph


def _last_two_swapped(ndim: int) -> tuple[int, ...]:
    return (*range(ndim - 2), ndim - 1, ndim - 2)


def _swaps_last_two(node: Value) -> bool:
    return node.op is permute_p and node.attrs["axes"] == _last_two_swapped(node.aval.ndim)


def _swapped(node: Value) -> Value:
    """Return the transpose of an operand: a view, or the base of one."""
    if _swaps_last_two(node):
        return node.inputs[0]
    axes = _last_two_swapped(node.aval.ndim)
    return applied(
        permute_p, (node,), {"axes": axes}, tables.abstract_eval[permute_p](node.aval, axes=axes), node.where
    )


def in_any_order(graph: Graph) -> tuple[Graph, tuple[Shape, ...]]:
    """Return ``graph`` without the permutes at its end, and the strides of each result in memory."""
    reordered = [_in_its_own(x) for x in graph.outputs]
    outputs = [x for x, _ in reordered]
    if outputs != list(graph.outputs):
        graph = Graph(graph.inputs, outputs, graph.updates, graph.name, graph.effects)
    return graph, tuple([strides for _, strides in reordered])


def _in_its_own(result: Value) -> tuple[Value, Shape]:
    if result.op is not permute_p:
        return result, row_major(result.aval.shape)
    (inner,) = result.inputs
    steps = row_major(inner.aval.shape)
    return inner, tuple([steps[a] for a in result.attrs["axes"]])
