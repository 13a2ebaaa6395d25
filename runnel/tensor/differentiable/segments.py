"""Divide the tape of a traced function into parts, and name the ends of each part.

A part begins at a result that can be differentiated, or at a value that several parts read. It ends at tensors from
outside, at Variables, and at other parts. Each part is one record on the tape around the function. A walk over that
tape meets parts in the order in which it would meet what is in them, so gradients are summed in the same order.
"""

from __future__ import annotations

import enum
import weakref
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from runnel.graph.node import InputKind
from runnel.tensor import tape, tensor as tensors
from runnel.tensor.cotangents import Pending, accumulate, like
from runnel.tensor.handle import version
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracing import Trace
from runnel.tensor.variable import TracedVariables, Variable


class Stretch(NamedTuple):
    """A part of the tape that is differentiated separately, with the same order of summation as a walk of the whole
    tape.

    ``order`` is the order of ``tape.needed_order``: each tensor after everything it was made of, the ends included.
    Cotangents are handed on for each reading of an end, so that sums of gradients are rounded alike however the tape
    is divided.
    """

    order: list[Tensor]
    ends: Collection[int]  # by id

    def readings(self) -> list[Tensor]:
        """Return the end of each place where the tape reads one, the latest first."""
        inner = [x for x in reversed(self.order) if id(x) not in self.ends]
        return [x for t in inner for x in t._record.inputs if id(x) in self.ends]  # type: ignore[union-attr]

    def cotangents(self, seeds: Sequence[tuple[Tensor, Any]], create_graph: bool = False) -> list[Any]:
        """Return the cotangent of each reading, for cotangents of some of the results."""
        pending: Pending = {}
        for tensor, g in seeds:
            accumulate(pending, version(tensor), g)
        reached: list[Any] = []
        records = [tensor._record for tensor in self.order]  # a walk inside this one may replace them
        for tensor, record in zip(reversed(self.order), reversed(records), strict=True):
            if record is None or id(tensor) in self.ends:
                continue
            if record.freed:
                raise tape.freed(tensor)
            g_sum = pending.pop(id(tensor), None)
            if g_sum is None:
                reached += [None for x in record.inputs if id(x) in self.ends]
                continue
            for x, dx in zip(record.inputs, tape.apply_rule(record, tensor, g_sum, create_graph), strict=True):
                if id(x) in self.ends:
                    dx = dx() if callable(dx) else dx
                    reached.append(like(x, dx) if isinstance(dx, Tensor) else dx)
                elif dx is not None and x.requires_grad:
                    accumulate(pending, x, dx() if callable(dx) else dx)
        return reached


class NotDivisible(Exception):
    """A tape that backward programs do not support; the function runs eagerly instead."""


class Kind(enum.IntEnum):
    """The kinds of ends of a tape. They are numbers, which hash quickly: each call looks ends up."""

    OUTSIDE = 0  # a tensor from outside, by its number
    VARIABLE = 1  # the value that the call leaves, by the number of the Variable in the graph
    FORMER = 2  # a value that the call replaces, by its number
    PART = 3  # by the number of the part
    LEAF = 4  # made by the function, by its number


OF_VARIABLES = (Kind.VARIABLE, Kind.FORMER)


class End(NamedTuple):
    kind: Kind
    number: int


class Ends:
    """Names the tensors where parts end. ``outside`` are the numbers of the leaves for tensors from outside, by id;
    ``roots`` are the beginnings of the parts."""

    def __init__(self, trace: Trace, outside: dict[int, int], roots: Sequence[Tensor]) -> None:
        numbers = {node: i for i, node in enumerate(x for x in trace.inputs if x.kind is InputKind.VARIABLE)}
        traced = trace.facet(TracedVariables)
        self._variables = {v: numbers[node] for v, node in traced.nodes.items()}
        self._values = traced.values
        self._former: dict[int, int] = {}  # by id of the leaf
        self._parts = {id(root): i for i, root in enumerate(roots)}
        self._outside = outside
        self._born = trace.born
        self._leaves: dict[int, int] = {}

    def of(self, x: Tensor) -> End:
        """Return the end that ``x`` is."""
        if id(x) in self._parts:
            return End(Kind.PART, self._parts[id(x)])
        if id(x) in self._outside:
            return End(Kind.OUTSIDE, self._outside[id(x)])
        owner = None if x._leaf is None else x._leaf()
        if not isinstance(owner, Variable):
            if not x.is_traced and x._serial <= self._born:
                raise NotDivisible("its tape continues outside in a way that cannot be followed")
            return End(Kind.LEAF, self._leaves.setdefault(id(x), len(self._leaves)))
        number = self._variables[owner]
        if x._node is self._values[owner]._node:
            return End(Kind.VARIABLE, number)
        self._former.setdefault(id(x), number)
        return End(Kind.FORMER, list(self._former).index(id(x)))

    @property
    def former(self) -> tuple[int, ...]:
        """The number of the Variable of each former value."""
        return tuple(self._former.values())


class StandIns:
    """The leaves on the tape of a trace for tensors from outside that require gradients, by their handles."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.by_handle: dict[int, tuple[Tensor, Tensor]] = {}  # by id of the handle: the handle and its leaf

    def of(self, tensor: Tensor) -> Tensor | None:
        """Return the leaf for ``tensor``; None if it belongs to the trace."""
        known = self.by_handle.get(id(tensor))
        if known is None:
            if tensor._node is not None or tensor._serial > self._trace.born:
                return None
            node = tensors.symbolic(tensors.node_of(tensor, self._trace))
            node.requires_grad = True
            if tensor._record is None:  # backward() inside sets its gradient
                node._leaf = weakref.ref(tensor) if tensor._leaf is None else tensor._leaf
            known = self.by_handle[id(tensor)] = (tensor, node)
        return known[1]


class Segment(NamedTuple):
    """The tape between ``root`` and the ends of ``stretch``."""

    root: Tensor
    stretch: Stretch


def segments(roots: Sequence[Tensor], ends: Collection[int]) -> list[Segment]:
    """Return the parts that begin at ``roots`` and stop at ``ends`` (by id) or at leaves.

    Each part comes after those that it leads to."""
    order = tape.needed_order(roots, frozenset(ends))
    begin = {id(version(root)) for root in roots}
    stops = {id(x) for x in order if x._record is None or id(x) in ends}
    entered: dict[int, set[int]] = {}  # by id: the beginnings of the parts that read a tensor
    beginnings: list[Tensor] = []
    for tensor in reversed(order):
        record = tensor._record
        if record is None or id(tensor) in stops:
            continue
        readers = entered.pop(id(tensor), set())
        if id(tensor) in begin or len(readers) != 1:
            beginnings.append(tensor)
            readers = {id(tensor)}
        for x in record.inputs:
            entered.setdefault(id(x), set()).update(readers)
    stops.update(map(id, beginnings))
    return [
        Segment(root, Stretch(tape.needed_order([root], frozenset(stops - {id(root)})), stops - {id(root)}))
        for root in reversed(beginnings)
    ]
