"""The structural hash: blind to identity, names and lines; sharp for everything that changes a result."""

from __future__ import annotations

import math
import struct
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from runnel.core.dtypes import float32, float64, int32
from runnel.core.errors import VerifierError
from runnel.graph.graph import Graph
from runnel.graph.hashing import attrs_key, encode, structural_hash
from runnel.graph.node import InputKind, applied
from runnel.ops.conversion import cast_p
from runnel.ops.elementwise.arithmetic import add_p, mul_p, neg_p, sub_p
from runnel.ops.shapes.views import reshape_p

from .build import argument, constant, graph, op, variable


def sample(where: str = "", name: str = "x") -> Graph:
    x, w = argument(2, 3, name=name), variable(2, 3)
    y = op(sub_p, op(mul_p, x, w, where=where), constant([[1.5]]))
    return graph([x, w], op(reshape_p, y, shape=(6,)), updates={w: y}, name=name)


def test_equal_up_to_identity_names_and_lines() -> None:
    assert structural_hash(sample()) == structural_hash(sample("a.py:1", "y"))
    assert len(structural_hash(sample())) == 20


def variants() -> dict[str, Graph]:
    x, y, w = argument(2, 3), argument(2, 3), variable(2, 3)
    product = op(mul_p, x, w)
    return {
        "sample": sample(),
        "product": graph([x, w], product),
        "op": graph([x, w], op(add_p, x, w)),
        "order of inputs": graph([w, x], product),
        "kind": graph([x, y], op(mul_p, x, y)),
        "scalar": graph([s := argument(2, 3, kind=InputKind.SCALAR), w], op(mul_p, s, w)),
        "order of operands": graph([x, w], op(mul_p, w, x)),
        "one operand twice": graph([x, w], op(mul_p, x, x)),
        "shape": graph([a := argument(3, 2), b := variable(3, 2)], op(mul_p, a, b)),
        "dtype": graph([c := argument(2, 3, dtype=float64), d := variable(2, 3, dtype=float64)], op(mul_p, c, d)),
        "update": graph([x, w], product, updates={w: product}),
        "update only": graph([x, w], updates={w: product}),
        "two outputs": graph([x, w], product, product),
        "swapped outputs": graph([x, w], x, product),
        "other order": graph([x, w], product, x),
        "unread input": graph([x, w, y], product),
        "shared": graph([x], op(add_p, n := op(neg_p, x), n)),
        "not shared": graph([x], op(add_p, op(neg_p, x), op(neg_p, x))),
        "zero": graph([], constant([0.0])),
        "minus zero": graph([], constant([-0.0])),
        "integer zero": graph([], constant([0], int32)),
        "double zero": graph([], constant([0.0], float64)),
        "shape of zero": graph([], constant([[0.0]])),
        "attribute": graph([x], op(reshape_p, x, shape=(6,))),
        "another attribute": graph([x], op(reshape_p, x, shape=(6, 1))),
        "cast": graph([x], op(cast_p, x, dtype=float64)),
        "another cast": graph([x], op(cast_p, x, dtype=int32)),
    }


def test_every_difference_counts() -> None:
    hashes = {name: structural_hash(g) for name, g in variants().items()}
    assert len(set(hashes.values())) == len(hashes)
    assert hashes == {name: structural_hash(g) for name, g in variants().items()}


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.sampled_from([float32, int32])
)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


def same(a: Any, b: Any) -> bool:
    """Equal in type and value, floats by their bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    return bool(a == b)


@settings(deadline=None, max_examples=300)
@given(values, values)
def test_encoding_is_injective(a: Any, b: Any) -> None:
    assert (encode(a) == encode(b)) == same(a, b)


def test_attributes() -> None:
    assert attrs_key({"a": 1, "b": (2.0, None)}) == attrs_key({"b": (2.0, None), "a": 1})
    keys = [attrs_key({"a": v}) for v in (1, 1.0, True, "1", (1,), ((1,),), math.nan, 0.0, -0.0, b"1", float32)]
    assert len(set(keys)) == len(keys)
    arrays = [attrs_key({"a": np.array(v, t)}) for v, t in (([1], int), ([[1]], int), ([1], float), ([2], int))]
    assert len(set(arrays)) == len(arrays)
    with pytest.raises(VerifierError, match=r"An attribute must be .* got object"):
        attrs_key({"f": object()})


def test_deep_chain() -> None:
    x = node = argument(2)
    for _ in range(10 * sys.getrecursionlimit()):
        node = applied(neg_p, (node,), {}, x.aval)
    longer = applied(neg_p, (node,), {}, x.aval)
    assert structural_hash(graph([x], node)) != structural_hash(graph([x], longer))
