"""Loops and branches as ops: ``scan``, ``while_loop`` and ``cond`` have graphs as attributes and several results.

Rules of table ``vjp`` are in ``runnel.transforms``, because they trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.dtypes import bool_
from runnel.core.errors import DTypeError, GradientError, ShapeError
from runnel.core.tables import Op, abstract_eval, cost, lower, reference, vjp
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.graph.interpreter import run
from runnel.loops.rules import Cond, Scan, While
from runnel.ops.arguments import Array

Avals = tuple[ShapedArray, ...]

# --- scan ---------------------------------------------------------------------------------------------------------

scan_p = Op(
    "scan",
    "*constants, *carries, *xs, *, body, constants, carries, length, reverse",
    "length times body: (constants, carries, xs[t]) to (carries, ys[t]); gives the last carries, and ys stacked.",
    regions=("body",),
)
lower.register(scan_p, Scan())


@abstract_eval.rule(scan_p)
def _scan_abstract_eval(
    *inputs: ShapedArray, body: Body, constants: int, carries: int, length: int, reverse: bool
) -> Avals:
    xs = inputs[constants + carries :]
    if any(x.ndim == 0 or x.shape[0] != length for x in xs):
        raise ShapeError(f"[scan] xs of shapes {', '.join(str(x.shape) for x in xs)} need a first axis of {length}.")
    _require_inputs("scan", body.graph, (*inputs[: constants + carries], *(unstacked(x) for x in xs)))
    results = tuple(node.aval for node in body.graph.outputs)
    _require_carries("scan", inputs[constants : constants + carries], results[:carries])
    return (*results[:carries], *(stacked(y, length) for y in results[carries:]))


def stacked(x: ShapedArray, length: int) -> ShapedArray:
    """Return the aval of ``length`` values like ``x``, along a new axis 0."""
    return aval((length, *x.shape), x.dtype, x.device)


def unstacked(x: ShapedArray) -> ShapedArray:
    """Return the aval of one of the values that are stacked along axis 0."""
    return aval(x.shape[1:], x.dtype, x.device)


@reference.rule(scan_p)
def _scan_reference(
    *inputs: Any, body: Body, constants: int, carries: int, length: int, reverse: bool
) -> tuple[Any, ...]:
    fixed, state, xs = inputs[:constants], list(inputs[constants : constants + carries]), inputs[constants + carries :]
    ys = [np.zeros((length, *y.aval.shape), y.aval.dtype.numpy) for y in body.graph.outputs[carries:]]
    for t in reversed(range(length)) if reverse else range(length):
        results, _ = run(body.graph, [*fixed, *state, *(x[t] for x in xs)])
        state = results[:carries]
        for y, value in zip(ys, results[carries:], strict=True):
            y[t] = value
    return (*state, *ys)


@cost.rule(scan_p)
def _scan_cost(*inputs: ShapedArray, body: Body, length: int, **attrs: Any) -> int:
    return length * graph_cost(body.graph)


# --- while_loop ---------------------------------------------------------------------------------------------------

while_p = Op(
    "while_loop",
    "*constants, *carries, *, cond, body, constants, carries",
    "carries = body(constants, carries) as long as cond(constants, carries); gives the last carries.",
    regions=("cond", "body"),
)
lower.register(while_p, While())


@abstract_eval.rule(while_p)
def _while_abstract_eval(*inputs: ShapedArray, cond: Body, body: Body, constants: int, carries: int) -> Avals:
    for graph in (cond.graph, body.graph):
        _require_inputs("while_loop", graph, inputs)
    decides = [node.aval for node in cond.graph.outputs]
    if decides != [aval((), bool_)]:
        raise DTypeError(f"[while_loop] the condition must be one bool; it is {decides}.")
    results = tuple(node.aval for node in body.graph.outputs)
    _require_carries("while_loop", inputs[constants:], results)
    return results


@reference.rule(while_p)
def _while_reference(*inputs: Any, cond: Body, body: Body, constants: int, carries: int) -> tuple[Any, ...]:
    fixed, state = inputs[:constants], list(inputs[constants:])
    while run(cond.graph, [*fixed, *state])[0][0]:
        state, _ = run(body.graph, [*fixed, *state])
    return tuple(state)


@cost.rule(while_p)
def _while_cost(*inputs: ShapedArray, cond: Body, body: Body, **attrs: Any) -> int:
    """Count one iteration, because the number of iterations is not known."""
    return graph_cost(cond.graph) + graph_cost(body.graph)


@vjp.rule(while_p)
def _while_vjp(gs: tuple[Array, ...], outs: tuple[Array, ...], *inputs: Array, **attrs: Any) -> tuple[Array, ...]:
    raise GradientError(
        "[while_loop] has no gradient: how many steps to keep is not known before it runs. Use runnel.scan with a "
        "fixed length."
    )


# --- cond ---------------------------------------------------------------------------------------------------------

cond_p = Op(
    "cond",
    "predicate, *operands, *, then, otherwise",
    "then(operands) where predicate holds, else otherwise(operands); the other one does not run.",
    regions=("then", "otherwise"),
)
lower.register(cond_p, Cond())


@abstract_eval.rule(cond_p)
def _cond_abstract_eval(predicate: ShapedArray, *operands: ShapedArray, then: Body, otherwise: Body) -> Avals:
    if predicate is not aval((), bool_):
        raise DTypeError(f"[cond] the predicate must be one bool; it is {predicate}.")
    for graph in (then.graph, otherwise.graph):
        _require_inputs("cond", graph, operands)
    results, other = (tuple(x.aval for x in graph.outputs) for graph in (then.graph, otherwise.graph))
    if results != other:
        raise ShapeError(f"[cond] one branch gives {results} and the other {other}.")
    return results


@reference.rule(cond_p)
def _cond_reference(predicate: Any, *operands: Any, then: Body, otherwise: Body) -> tuple[Any, ...]:
    results, _ = run(then.graph if predicate else otherwise.graph, operands)
    return tuple(results)


@cost.rule(cond_p)
def _cond_cost(predicate: ShapedArray, *operands: ShapedArray, then: Body, otherwise: Body) -> int:
    return max(graph_cost(then.graph), graph_cost(otherwise.graph))


# --- what they share ----------------------------------------------------------------------------------------------


def graph_cost(graph: Graph) -> int:
    """Count the floating-point operations of a graph, by table ``cost``."""
    total = 0
    for node in graph.nodes:
        rule = cost.get(node.op)
        total += 0 if rule is None else rule(*(x.aval for x in node.inputs), **node.attrs)
    return total


def _require_inputs(name: str, graph: Graph, operands: Sequence[ShapedArray]) -> None:
    expected = [node.aval for node in graph.inputs]
    if expected != list(operands):
        raise ShapeError(f"[{name}] the body takes {expected}; it was given {list(operands)}.")


def _require_carries(name: str, before: Sequence[ShapedArray], after: Sequence[ShapedArray]) -> None:
    if list(before) != list(after):
        raise ShapeError(f"[{name}] the carries must stay as they are; {list(before)} became {list(after)}.")
