"""Every rule of a graph, broken once."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.core.avals import aval
from runnel.core.dtypes import float32, float64, int32
from runnel.core.errors import VerifierError
from runnel.core.tables import Op
from runnel.graph.graph import Graph
from runnel.graph.node import Constant, Node, Result, Value, applied, results_of
from runnel.graph.verifier import verify
from runnel.ops.elementwise.arithmetic import add_p, neg_p
from runnel.ops.shapes.views import reshape_p

from .build import argument, constant, graph, op, variable

X, W = argument(2, 3, name="x"), variable(2, 3, name="w")


FULL = aval((2, 3), float32)


def unregistered() -> Op:
    """An op that is not the one registered under its name."""
    stranger = object.__new__(Op)
    stranger.name, stranger.signature, stranger.doc = "add", "", ""
    return stranger


def cyclic() -> Graph:
    first = op(neg_p, X)
    second = op(neg_p, first)
    first.inputs = first.node.inputs = (second,)
    return graph([X], second)


def twice() -> list[Result]:
    node = Node(neg_p, (X,), {}, (FULL,))
    return [*results_of(node), *results_of(node)]


def writable() -> Value:
    node = constant([1.0])
    node.value = np.ones(1, np.float32)
    return node


BAD = {
    "input listed twice": (graph([X, X]), "an input is listed twice"),
    "input not listed": (graph([], op(neg_p, X)), "`%0 = argument x : float32[2,3]` is not among the graph's inputs"),
    "no input": (graph([constant(1.0)]), "is listed as an input"),
    "cycle": (cyclic(), "comes before its input"),
    "a result twice": (graph([X], *twice()), "has one of its 1 results twice"),
    "constant without a value": (graph([], Constant(FULL, None)), "must hold an array, and holds NoneType"),
    "constant of another dtype": (
        graph([], Constant(FULL, np.zeros((2, 3)))),
        "holds an array of shape (2, 3) and dtype float64",
    ),
    "writable constant": (graph([], writable()), "holds an array that is writable"),
    "unregistered op": (graph([X], applied(unregistered(), (X, X), {}, FULL)), "an op that is not registered as 'add'"),
    "wrong aval": (
        graph([X], applied(add_p, (X, X), {}, aval((2, 3), float64))),
        "`%1 = add(%0, %0) : float64[2,3]` reading %0: float32[2,3], %0: float32[2,3] should be float32[2,3]",
    ),
    "refused by its op": (
        graph([X], applied(reshape_p, (X,), {"shape": (7,)}, aval((7,), float32))),
        "does not fit its op: [reshape]",
    ),
    "missing attribute": (graph([X], applied(reshape_p, (X,), {}, FULL)), "does not fit its op"),
    "update of an argument": (graph([X], updates={X: op(neg_p, X)}), "needs a variable among the graph's inputs"),
    "update of a stranger": (graph([X], updates={W: op(neg_p, X)}), "needs a variable among the graph's inputs"),
    "update of another aval": (graph([W], updates={W: constant(1, int32)}), "changes its aval to int32[]"),
}


@pytest.mark.parametrize("name", BAD)
def test_ill_formed(name: str) -> None:
    wrong, sentence = BAD[name]
    with pytest.raises(VerifierError) as caught:
        verify(wrong, after="fold")
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("Graph 'program' after pass 'fold': ")


def test_op_without_abstract_eval_rule() -> None:
    bare = Op("bare_in_verifier_test", "x", "No rules.")
    try:
        with pytest.raises(VerifierError, match=r"bare_in_verifier_test. no rule in table .abstract_eval."):
            verify(graph([X], applied(bare, (X,), {}, FULL)))
    finally:
        del Op.registry[bare.name]


def test_well_formed() -> None:
    verify(graph([X, W], op(add_p, X, W), constant([1.0]), updates={W: op(neg_p, X)}))
