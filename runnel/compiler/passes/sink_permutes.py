"""Layouts: the order of axes in which values are computed, chosen for whole regions of a graph so that few are copied.

Ops that treat elements alike in any order of axes (as table ``axes`` says: pointwise ops, slices, padding, …) and the
permutes between them form *regions*. A region can be computed in any order of axes; what it reads and what reads it
want a certain one: the order that most bytes at its border want is taken. Permutes inside disappear, those at the
border that disagree become views that the readers read through. Float reductions are borders, since their order of
summation is part of their value.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from runnel.core import tables
from runnel.core.avals import aval
from runnel.graph.graph import Graph
from runnel.graph.node import Constant, Value, applied, reapplied
from runnel.graph.rewriting import Rewriter
from runnel.ops.views import inverse_order, permute_p

Order = tuple[int, ...]  # a value in this order has the value's axis order[i] as its axis i

LEAST_AXES: Final = 3  # matrices are read as they lie
SMALL: Final = 1 << 16  # bytes of a constant that is transposed here and now


def in_order(node: Value, order: Order) -> dict[str, Any] | None:
    """The attributes of ``node`` when its operands and its result have another order of axes; None if it cannot."""
    rule = None if node.op is None or node.aval.ndim < LEAST_AXES else tables.axes.get(node.op)
    found: dict[str, Any] | None = None if rule is None else rule.in_order(node.attrs, order, node.aval)
    return found


def _is_movable(node: Value) -> bool:
    return in_order(node, tuple(range(node.aval.ndim))) is not None


def sink_permutes(graph: Graph) -> Graph:
    """``graph`` with each region in the order of axes that its border wants."""
    if not any(n.op is permute_p and n.aval.ndim >= LEAST_AXES for n in graph.values):
        return graph
    orders = _Regions(graph).orders()
    return _Rewriting(graph, orders).graph() if orders else graph


def _after(first: Order, second: Order) -> Order:
    """Two changes of order as one: axis i of the result is axis first[second[i]] of what ``first`` is applied to."""
    return tuple(first[a] for a in second)


class _Regions:
    """The regions of a graph and what they want. Inside one, the order of a member is ``relative`` after the one order
    that the whole region is free to choose."""

    def __init__(self, graph: Graph) -> None:
        self.users = graph.users()
        self.nodes = graph.values
        self.roots = graph.roots
        self.members = {n for n in self.nodes if _is_permute(n) or _is_movable(n)}
        self.relative: dict[Value, Order] = {}

    def orders(self) -> dict[Value, Order]:
        """The order of each member of the regions that change."""
        found: dict[Value, Order] = {}
        for node in self.nodes:
            if node in self.members and node not in self.relative:
                region = self._region(node)
                chosen = self._chosen(region)
                if chosen is not None:
                    found.update((n, _after(self.relative[n], chosen)) for n in region)
        return found

    def _region(self, start: Value) -> list[Value]:
        """``start`` and all members connected with it; sets their relative orders."""
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
        """The relative order in which ``node`` reads its inputs."""
        mine = self.relative[node]
        return _after(node.attrs["axes"], mine) if _is_permute(node) else mine

    def _chosen(self, region: list[Value]) -> Order | None:
        """The order that the region should have; None where it is best as it is."""
        workers = [n for n in region if not _is_permute(n)]
        if len(workers) in (0, len(region)):
            return None
        current = inverse_order(self.relative[workers[0]])
        votes: dict[Order, int] = {current: 0}
        for node in region:
            wanted = inverse_order(self.relative[node])
            readers = sum(reader not in self.members for reader in self.users[node])
            weight = (readers + self.roots.count(node)) * node.aval.nbytes
            votes[wanted] = votes.get(wanted, 0) + weight
            wanted = inverse_order(self._of_inputs(node))
            weight = sum(x.aval.nbytes for x in node.inputs if x not in self.members and x.aval.size > 1)
            votes[wanted] = votes.get(wanted, 0) + weight
        best = max(votes, key=lambda order: votes[order])
        chosen = current if votes[current] == votes[best] else best
        unchanged = all(_is_in_order(_after(self.relative[n], chosen)) for n in workers)
        return None if unchanged else chosen


class _Rewriting:
    """The graph anew, members in their orders."""

    def __init__(self, graph: Graph, orders: dict[Value, Order]) -> None:
        self.old = graph
        self.orders = orders
        self.rewriter = Rewriter()  # what stands for each value, with its axes as they were
        self.new: dict[Value, Value] = {}
        self.permuted: dict[tuple[Value, Order], Value] = {}

    def graph(self) -> Graph:
        for node in self.old.values:
            self.new[node] = self._made(node)
        return Graph(
            self.old.inputs,
            [self._plain(o) for o in self.old.outputs],
            {v: self._plain(n) for v, n in self.old.updates.items()},
            self.old.name,
            [self._plain(x) for x in self.old.effects],
        )

    def _made(self, node: Value) -> Value:
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

    def _in_order(self, x: Value, wanted: Order) -> Value:
        """What stands for ``x``, its axes in the order ``wanted``."""
        node, order = self.new[x], self.orders.get(x)
        axes = wanted if order is None else tuple(order.index(a) for a in wanted)
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
