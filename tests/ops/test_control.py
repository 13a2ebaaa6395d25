"""The ops with graphs as attributes: what they accept, what their references mean, what they cost; bodies as values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runnel.compiler.passes.decompose import in_bodies, without_unused_results
from runnel.core.avals import ShapedArray, aval
from runnel.core.dtypes import bool_, float32, int64
from runnel.core.errors import DTypeError, ShapeError, VerifierError
from runnel.core.tables import abstract_eval, cost, reference
from runnel.graph import interpreter
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.graph.node import Node, Value, applied, results_of
from runnel.graph.rewriting import copied, extract, placeholder, zeros
from runnel.graph.verifier import verify
from runnel.ops.control import cond_p, scan_p, while_p
from runnel.ops.elementwise.arithmetic import add_p, mul_p
from runnel.ops.elementwise.comparison import lt_p

SCALAR, ROW = aval((), float32), aval((2,), float32)


def node(op: Any, *inputs: Value, result: ShapedArray | None = None) -> Value:
    return applied(op, inputs, {}, inputs[0].aval if result is None else result)


def horner() -> Body:
    """(a, carry, x) to (a·carry + x, a·carry)."""
    a, carry, x = (placeholder(SCALAR, name) for name in ("a", "carry", "x"))
    product = node(mul_p, a, carry)
    return Body(Graph([a, carry, x], [node(add_p, product, x), product], {}, "horner"))


def scan_attrs(**changed: Any) -> dict[str, Any]:
    return {
        "body": horner(), "constants": 1, "carries": 1, "length": 3, "reverse": False,
    } | changed  # fmt: skip


def f32(*values: float) -> Any:
    return np.array(values if len(values) > 1 else values[0], np.float32)


def test_scan() -> None:
    avals = (SCALAR, SCALAR, aval((3,), float32))
    assert abstract_eval[scan_p](*avals, **scan_attrs()) == (SCALAR, aval((3,), float32))
    last, ys = reference[scan_p](f32(2), f32(1), f32(5, 6, 7), **scan_attrs())
    assert last == 8 + 4 * 5 + 2 * 6 + 7 and ys.tolist() == [2.0, 14.0, 40.0]
    last, ys = reference[scan_p](f32(2), f32(1), f32(5, 6, 7), **scan_attrs(reverse=True))
    assert last == 53 and ys.tolist() == [48.0, 18.0, 2.0]
    assert cost[scan_p](*avals, **scan_attrs()) == 6
    for wrong in (avals[:2], (*avals[:2], aval((4,), float32)), (SCALAR, ROW, avals[2])):
        with pytest.raises(ShapeError):
            abstract_eval[scan_p](*wrong, **scan_attrs())


def test_while_loop() -> None:
    limit, x = placeholder(SCALAR, "limit"), placeholder(SCALAR, "x")
    cond = Body(Graph([limit, x], [node(lt_p, x, limit, result=aval((), bool_))], {}, "cond"))
    body = Body(Graph([limit, x], [node(add_p, x, x)], {}, "body"))
    attrs = {"cond": cond, "body": body, "constants": 1, "carries": 1}
    assert abstract_eval[while_p](SCALAR, SCALAR, **attrs) == (SCALAR,)
    assert reference[while_p](f32(100), f32(3), **attrs)[0] == 192
    assert cost[while_p](SCALAR, SCALAR, **attrs) == 2
    with pytest.raises(DTypeError, match="one bool"):
        abstract_eval[while_p](SCALAR, SCALAR, **attrs | {"cond": body})
    with pytest.raises(ShapeError):
        abstract_eval[while_p](SCALAR, ROW, **attrs)


def test_cond() -> None:
    x = placeholder(SCALAR, "x")
    then, otherwise = (Body(Graph([x], [node(op, x, x)], {}, "branch")) for op in (add_p, mul_p))
    attrs = {"then": then, "otherwise": otherwise}
    flag = aval((), bool_)
    assert abstract_eval[cond_p](flag, SCALAR, **attrs) == (SCALAR,)
    assert reference[cond_p](np.bool_(True), f32(5), **attrs)[0] == 10
    assert reference[cond_p](np.bool_(False), f32(5), **attrs)[0] == 25
    assert cost[cond_p](flag, SCALAR, **attrs) == 1
    with pytest.raises(DTypeError, match="predicate"):
        abstract_eval[cond_p](SCALAR, SCALAR, **attrs)
    wide = Body(Graph([x], [zeros(ROW)], {}, "wide"))
    with pytest.raises(ShapeError, match="one branch"):
        abstract_eval[cond_p](flag, SCALAR, **attrs | {"otherwise": wide})


def loop_graph(use: tuple[int, ...]) -> Graph:
    """A scan of two carries, the second of which nobody reads inside, with the results numbered ``use``."""
    a, carry, count, x = (placeholder(SCALAR, name) for name in ("a", "carry", "count", "x"))
    one = zeros(SCALAR)
    result = [node(add_p, node(mul_p, a, carry), x), node(add_p, count, one), node(mul_p, x, x)]
    body = Body(Graph([a, carry, count, x], result, {}, "two"))
    inputs = [placeholder(v, "in") for v in (SCALAR, SCALAR, SCALAR, aval((3,), float32))]
    results = (SCALAR, SCALAR, aval((3,), float32))
    result = results_of(Node(scan_p, tuple(inputs), scan_attrs(body=body, carries=2), results))
    return Graph(inputs, [result[i] for i in use], {}, "loop")


@pytest.mark.parametrize("use", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_what_is_not_used_is_left_out(use: tuple[int, ...]) -> None:
    graph = loop_graph(use)
    smaller = without_unused_results(graph)
    verify(smaller)
    values = [f32(2), f32(1), f32(0), f32(5, 6, 7)]
    for before, after in zip(interpreter.run(graph, values)[0], interpreter.run(smaller, values)[0], strict=True):
        np.testing.assert_array_equal(before, after)
    (loop,) = smaller.nodes
    assert len(loop.avals) == len(use)
    assert (smaller is graph) == (use == (0, 1, 2))


def test_passes_run_on_bodies() -> None:
    graph = loop_graph((0, 1))
    names: list[str] = []

    def note(body: Graph) -> Graph:
        names.append(body.name)
        return body

    assert in_bodies(graph, note) is graph and names == ["two"]


def test_bodies_are_equal_when_they_compute_the_same() -> None:
    assert horner() == horner() and hash(horner()) == hash(horner())
    graph = horner().graph
    turned = Body(Graph(graph.inputs, graph.outputs[::-1], {}, graph.name))
    assert turned != horner() and Body(graph, recompute=True) != Body(graph)
    assert "horner" in repr(horner())


def test_parts_of_graphs() -> None:
    graph = horner().graph
    product = graph.outputs[1]
    part, known = extract([product, graph.inputs[2]], [graph.outputs[0]], "part")
    verify(part)
    assert interpreter.run(part, [f32(3), f32(4)])[0][0] == 7 and known[product] is part.inputs[0]
    with pytest.raises(VerifierError, match="the map must have the input"):
        copied([product], {graph.inputs[0]: placeholder(SCALAR, "a")})
    assert zeros(aval((2,), int64)).value.tolist() == [0, 0]
