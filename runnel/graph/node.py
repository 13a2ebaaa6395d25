"""Nodes, which apply an op, and the values that they read and compute.

A value is a result of a node, an input of the graph or a constant. Values refer to nodes, and nodes to the values that
they read. There are no references back, so reference counting frees a graph that is no longer used.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final

from runnel.core.avals import ShapedArray
from runnel.core.errors import VerifierError
from runnel.core.tables import Op, abstract_eval

Attrs = dict[str, Any]

_NO_ATTRS: Final[Any] = MappingProxyType({})


class InputKind(enum.Enum):
    """Where an input's value comes from when the program runs."""

    ARGUMENT = "argument"  # a tensor passed to the function or captured by it: read at each call
    SCALAR = "scalar"  # a Python float passed as run-time data
    VARIABLE = "variable"  # the state of a Variable: read, possibly updated


class Node:
    """``op`` applied to ``inputs`` with ``attrs``. ``avals`` are those of its results; ``where`` is the user's line."""

    __slots__ = ("attrs", "avals", "inputs", "op", "where")

    def __init__(
        self, op: Op, inputs: tuple[Value, ...], attrs: Attrs, avals: tuple[ShapedArray, ...], where: str = ""
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.avals = avals
        self.where = where

    def __repr__(self) -> str:
        return f"Node({self.op.name}: {', '.join(map(repr, self.avals))})"


class Value:
    """The base class of a :class:`Result`, an :class:`Input` and a :class:`Constant`, which are compared by identity.

    ``op``, ``inputs``, ``attrs`` and ``where`` are copied from its node for speed. ``op`` is None for values without a
    node.
    """

    __slots__ = ("attrs", "aval", "inputs", "op", "where")

    kind: InputKind | None = None  # of an input
    name = ""  # of an input: its name in reports
    value: Any = None  # of a constant: a read-only ndarray

    op: Op | None
    inputs: tuple[Value, ...]

    def __init__(self, aval: ShapedArray, where: str) -> None:
        self.aval = aval
        self.op = None
        self.inputs = ()
        self.attrs: Attrs = _NO_ATTRS
        self.where = where

    @property
    def is_input(self) -> bool:
        return self.kind is not None

    @property
    def is_constant(self) -> bool:
        return isinstance(self, Constant)

    def __repr__(self) -> str:
        what = self.op.name if self.op else (self.kind.value if self.kind else "constant")
        return f"Value({what}: {self.aval})"


class Result(Value):
    """Result number ``index`` of ``node``. It is created once, with the node: see :func:`results_of`."""

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index
        self.aval = node.avals[index]
        self.op = node.op
        self.inputs = node.inputs
        self.attrs = node.attrs
        self.where = node.where


class Input(Value):
    """A value that is bound when the program runs."""

    __slots__ = ("kind", "name")

    def __init__(self, aval: ShapedArray, kind: InputKind, name: str, where: str = "") -> None:
        super().__init__(aval.unplaced, where)
        self.kind = kind
        self.name = name


class Constant(Value):
    """A constant: a read-only ndarray."""

    __slots__ = ("value",)

    def __init__(self, aval: ShapedArray, value: Any, where: str = "") -> None:
        super().__init__(aval, where)
        self.value = value


def results_of(node: Node) -> tuple[Result, ...]:
    """Return the results of a new node. Call this once for each node, where it is created."""
    return tuple([Result(node, i) for i in range(len(node.avals))])


def applied(op: Op, inputs: tuple[Value, ...], attrs: Attrs, aval: ShapedArray, where: str = "") -> Result:
    """Return the only result of a new node."""
    return Result(Node(op, inputs, attrs, (aval,), where), 0)


def abstract_results(op: Op, inputs: Sequence[Value], attrs: Attrs) -> tuple[ShapedArray, ...]:
    """Return the avals of the results of ``op`` by its rule in table ``abstract_eval``."""
    avals = abstract_eval[op](*[x.aval for x in inputs], **attrs)
    return avals if op.multiple_results else (avals,)


def reapplied(
    value: Value, inputs: tuple[Value, ...], attrs: Attrs | None = None, aval: ShapedArray | None = None
) -> Result:
    """Return the only result of the op of ``value`` on ``inputs``, by default with its attributes and aval."""
    if value.op is None:
        raise VerifierError(f"{value!r} must be the result of an op.")
    return applied(value.op, inputs, value.attrs if attrs is None else attrs, aval or value.aval, value.where)
