"""The ends of a traced function's tape: Variables, and tensors from outside."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from runnel.graph.node import InputKind
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracing import Trace
from runnel.tensor.variable import TracedVariables, Variable


class NotDivisible(Exception):
    """A tape for which there are no backward programs; the function runs eagerly instead."""


class Kind(enum.IntEnum):
    """What the tape of a function leads to. (Numbers, because each call looks ends up, and they hash quickly.)"""

    OUTSIDE = 0  # a tensor from outside; its number among those
    VARIABLE = 1  # as the call leaves it; its number among the graph's Variables
    FORMER = 2  # a value that the call replaces; its number among those
    PART = 3  # number of the part
    LEAF = 4  # made by the function; its number among those


OF_VARIABLES = (Kind.VARIABLE, Kind.FORMER)


class End(NamedTuple):
    kind: Kind
    number: int


class Ends:
    """What each tensor where a part ends is. ``outside`` are the numbers of the nodes that stand for tensors from
    outside, by id, and ``roots`` the beginnings of the parts."""

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
        if id(x) in self._parts:
            return End(Kind.PART, self._parts[id(x)])
        if id(x) in self._outside:
            return End(Kind.OUTSIDE, self._outside[id(x)])
        owner = None if x._leaf is None else x._leaf()
        if not isinstance(owner, Variable):
            if not x.is_traced and x._serial <= self._born:
                raise NotDivisible("its tape goes on outside in a way that cannot be followed")
            return End(Kind.LEAF, self._leaves.setdefault(id(x), len(self._leaves)))
        number = self._variables[owner]
        if x._node is self._values[owner]._node:
            return End(Kind.VARIABLE, number)
        self._former.setdefault(id(x), number)
        return End(Kind.FORMER, list(self._former).index(id(x)))

    @property
    def former(self) -> tuple[int, ...]:
        """Of each former value the Variable's number."""
        return tuple(self._former.values())
