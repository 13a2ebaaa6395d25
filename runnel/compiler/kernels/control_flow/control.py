"""Ops that run graphs of their own as calls and spans: while loops and choices, beside ``scans``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from runnel.compiler.kernels.control_flow.bodies import (
    Binding,
    Piece,
    PlanBody,
    Results,
    bound_body,
    dense_copy,
    value_copy,
    variable_for,
)
from runnel.compiler.kernels.control_flow.scans import scan
from runnel.compiler.kernels.operands import Operands
from runnel.compiler.kernels.places import Access, Place, Space
from runnel.compiler.schedule.repeat import GUESSED, Branch, While
from runnel.core import tables
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import bool_
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.graph.rewriting import substituted
from runnel.loops import rules


def lower(node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Piece:
    """The calls of a node whose rule is Scan, While or Cond."""
    return _FORMS[type(tables.lower[node.op])](node, operands, results, plan_body)  # type: ignore[index]


def has_bodies(node: Value) -> bool:
    """Whether a node runs graphs of its own."""
    return node.op is not None and bool(node.op.regions)


def bodies(node: Value) -> list[Graph]:
    """The graphs that a node runs."""
    return [] if node.op is None else [node.attrs[name].graph for name in node.op.regions]


def _while(node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Piece:
    count = node.attrs["constants"]
    body, cond = node.attrs["body"].graph, node.attrs["cond"].graph
    variables = [variable_for(x, i) for i, x in enumerate(body.inputs[count:])]
    changed = substituted(body, dict(zip(body.inputs[count:], variables, strict=True)))
    graph = Graph([*body.inputs[:count], *variables], (), dict(zip(variables, changed.outputs, strict=True)), body.name)
    piece = Piece()
    bound: dict[Value, Binding] = {}
    strides: dict[Value, Shape] = {}
    for own, tested, value in zip(body.inputs[:count], cond.inputs[:count], node.inputs[:count], strict=True):
        place, offset, lie = operands.lie(value)
        bound[own] = bound[tested] = Binding(place, offset)
        if lie != row_major(value.aval.shape):
            strides[own] = strides[tested] = lie
    for i, (variable, tested, initial) in enumerate(
        zip(variables, cond.inputs[count:], node.inputs[count:], strict=True)
    ):
        place = results[i][0] if i in results else Place(Space.ARENA, initial.aval.dtype, initial.aval.size, "carry")
        piece.add([operands.copy(initial, place)])
        bound[variable] = bound[tested] = Binding(place)
    flag = Place(Space.ARENA, bool_, 1, "goes on")
    loop = bound_body(plan_body(cond, _of(cond, strides)), cond, bound, [Binding(flag)])
    test = len(loop.calls)
    loop.join(bound_body(plan_body(graph, _of(graph, strides)), graph, bound, []))
    for call in loop.calls:
        call.times *= GUESSED
    read = Access(flag, False, 0, 0, 0, 1)
    loop.spans = [While(0, len(loop.calls), loop.spans, test=test, flag=read)]
    piece.join(loop)
    for i, initial in enumerate(node.inputs[count:]):
        places = results.get(i, [])
        piece.add([value_copy(initial, place, Binding(places[0])) for place in places[1:]])
    return piece


def _cond(node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Piece:
    piece = Piece()
    parts: list[Piece] = []
    for name in ("then", "otherwise"):
        whole = node.attrs[name].graph
        graph = Graph(whole.inputs, [whole.outputs[k] for k in results], {}, whole.name)
        bound: dict[Value, Binding] = {}
        strides: dict[Value, Shape] = {}
        for x, value in zip(graph.inputs, node.inputs[1:], strict=True):
            place, offset, lie = operands.lie(value)
            bound[x] = Binding(place, offset)
            if lie != row_major(value.aval.shape):
                strides[x] = lie
        plan = plan_body(graph, strides)
        parts.append(bound_body(plan, graph, bound, [Binding(places[0]) for places in results.values()]))
    then, otherwise = parts
    middle = len(then.calls)
    then.join(otherwise)
    if then.calls:
        place, offset, _ = operands.lie(node.inputs[0])
        flag = Access(place, False, offset, 0, 0, 1)
        then.spans = [Branch(0, len(then.calls), then.spans, middle=middle, flag=flag)]
        piece.join(then)
    for k, (first, *more) in results.items():
        shape = node.attrs["then"].graph.outputs[k].aval.shape
        piece.add([dense_copy(shape, (first, 0, row_major(shape)), place, node) for place in more])
    return piece


def _of(graph: Graph, strides: dict[Value, Shape]) -> dict[Value, Shape]:
    return {x: strides[x] for x in graph.inputs if x in strides}


_FORMS: Final[dict[type, Callable[[Value, Operands, Results, PlanBody], Piece]]] = {
    rules.Scan: scan,
    rules.While: _while,
    rules.Cond: _cond,
}
