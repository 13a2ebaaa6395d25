"""The identity of a graph as bytes, and graphs nested in graphs.

The identity is equal for graphs that compute the same thing in the same way, wherever they were traced. It covers ops,
attributes, avals, wiring, the content of constants, and kinds and order of inputs, outputs and updates. It does not
cover the Python objects of the nodes, source lines and names. A :class:`Body` is a graph as an attribute of a node,
such as the body of a loop, and is compared by this identity.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from runnel.core.avals import ShapedArray
from runnel.core.dtypes import DType
from runnel.core.errors import VerifierError
from runnel.core.lengths import Length
from runnel.graph.graph import Graph
from runnel.graph.node import Node, Result, Value

_DIGEST_BYTES = 20


class Identified:
    """An attribute with an ``identity``: bytes that are equal for equal content in every process."""

    __slots__ = ()

    @property
    def identity(self) -> bytes:
        raise NotImplementedError


def structural_hash(graph: Graph) -> bytes:
    """Return 20 bytes that identify the structure of a graph in every process."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    number: dict[Value, int] = {}
    first: dict[Node, int] = {}  # for each node with several results, the number of the first
    for place, value in enumerate(graph.values):
        number[value] = place
        digest.update(_value_key(value, number, first))
    roots = (
        tuple(number[n] for n in graph.inputs),
        tuple(number[n] for n in graph.outputs),
        tuple((number[v], number[n]) for v, n in graph.updates.items()),
        tuple(number[n] for n in graph.effects),
    )
    digest.update(encode(roots))
    return digest.digest()


def _value_key(value: Value, number: dict[Value, int], first: dict[Node, int]) -> bytes:
    if isinstance(value, Result):
        node = value.node
        if len(node.avals) > 1:
            known = first.setdefault(node, number[value])
            if known != number[value]:
                return b"r" + encode((known, value.index))
        inputs = tuple([number[x] for x in node.inputs])
        op = node.op.name if node.op.version is None else f"{node.op.name} {node.op.version}"
        key = f"o{len(op)}:{op}{inputs}".encode() + _aval_key(value.aval) + attrs_key(node.attrs)
        return key if len(node.avals) == 1 else key + encode((value.index, node.avals))
    if value.kind is not None:
        return b"x" + encode(value.kind.value) + _aval_key(value.aval)
    return b"c" + constant_key(value)


def constant_key(node: Value) -> bytes:
    """Return a constant by dtype, shape and bits."""
    return encode((node.aval, np.ascontiguousarray(node.value).tobytes()))


def attrs_key(attrs: dict[str, Any]) -> bytes:
    """Return attributes as bytes, sorted by name. Floats are encoded by their bits; 1, 1.0 and True differ."""
    return encode(tuple(sorted(attrs.items()))) if attrs else b"-"


@functools.lru_cache(maxsize=4096)
def _aval_key(aval: ShapedArray) -> bytes:
    return b"a" + encode(aval.shape) + encode(aval.dtype)


def encode(value: Any) -> bytes:
    """Return a prefix-free encoding of a value.

    It must be None, a bool, int, float, str, bytes, DType, ShapedArray, NumPy array or Identified object, or a nested
    tuple of them.
    """
    quick = _QUICK.get(type(value))
    return quick(value) if quick is not None else _encode(value)


def _tuple(value: tuple[Any, ...]) -> bytes:
    parts = [quick(x) if (quick := _QUICK.get(type(x))) is not None else _encode(x) for x in value]
    return b"(%d:" % len(value) + b"".join(parts)


@functools.lru_cache(maxsize=4096)
def _string(value: str) -> bytes:
    return _sized(b"s", value.encode())


_QUICK: Final[dict[type, Callable[[Any], bytes]]] = {
    tuple: _tuple,
    str: _string,
    int: lambda value: b"i%d;" % value,
    bool: lambda value: b"b1" if value else b"b0",
    ShapedArray: lambda value: _aval_key(value),
    Length: lambda value: _sized(b"L", value.code.encode()),
}


def _encode(value: Any) -> bytes:
    """Encode values of less common types, and of types derived from common ones."""
    if isinstance(value, tuple):
        return _tuple(value)
    if value is None:
        return b"N"
    if isinstance(value, bool | np.bool_):
        return b"b1" if value else b"b0"
    if isinstance(value, int | np.integer):
        return b"i%d;" % int(value)
    if isinstance(value, float | np.floating):
        return b"f" + struct.pack("<d", float(value))
    if isinstance(value, str):
        return _sized(b"s", value.encode())
    if isinstance(value, bytes):
        return _sized(b"y", value)
    if isinstance(value, DType):
        return _sized(b"d", value.name.encode())
    if isinstance(value, ShapedArray):
        return _aval_key(value)
    if isinstance(value, np.ndarray):
        return _sized(b"r", encode((value.shape, str(value.dtype), np.ascontiguousarray(value).tobytes())))
    if isinstance(value, Identified):
        return _sized(b"g", value.identity)
    raise VerifierError(
        f"An attribute must be a number, string, dtype, array or a tuple of them; got {type(value).__name__}."
    )


def _sized(tag: bytes, content: bytes) -> bytes:
    return tag + b"%d:" % len(content) + content


class Body(Identified):
    """A graph as an attribute. Two bodies are equal when their graphs compute the same thing in the same way.

    With ``recompute`` a loop saves only its carries for the backward pass, which recomputes the rest.
    """

    __slots__ = ("_identity", "graph", "recompute")

    def __init__(self, graph: Graph, recompute: bool = False) -> None:
        self.graph = graph
        self.recompute = recompute
        self._identity: bytes | None = None

    @property
    def identity(self) -> bytes:
        if self._identity is None:
            self._identity = structural_hash(self.graph) + bytes([self.recompute])
        return self._identity

    @property
    def avals(self) -> tuple[ShapedArray, ...]:
        """The avals of its inputs: for tables that keep values of the graph, since the lengths in the shapes of equal
        bodies may belong to different programs."""
        return tuple([x.aval for x in self.graph.inputs])

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Body) and self.identity == other.identity)

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return f"Body({self.graph.name}, {self.identity.hex()[:8]})"
