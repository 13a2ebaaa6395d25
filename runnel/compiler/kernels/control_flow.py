"""While loops and branches as regions of a plan, and the lowerings of control flow."""

from __future__ import annotations

import abc
from typing import ClassVar

from runnel.compiler.kernels import bounds, scans
from runnel.compiler.kernels.scans import Binding, Results, bound_body, value_copy, variable_for
from runnel.compiler.lowering.operands import Operands, dense_copy
from runnel.compiler.lowering.protocol import Lowering, Request, lowering_of
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, MemorySpace
from runnel.compiler.plan_ir.regions import GUESSED, Branch, PlanBody, Section, While
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import bool_
from runnel.graph.graph import Graph
from runnel.graph.node import Result, Value
from runnel.graph.rewriting import substituted


def while_loop(node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
    """Return the calls and the loop of a node whose rule is While."""
    count = node.attrs["constants"]
    body, cond = node.attrs["body"].graph, node.attrs["cond"].graph
    variables = [variable_for(x, i) for i, x in enumerate(body.inputs[count:])]
    changed = substituted(body, dict(zip(body.inputs[count:], variables, strict=True)))
    graph = Graph([*body.inputs[:count], *variables], (), dict(zip(variables, changed.outputs, strict=True)), body.name)
    section = Section()
    bound: dict[Value, Binding] = {}
    strides: dict[Value, Shape] = {}
    for own, tested, value in zip(body.inputs[:count], cond.inputs[:count], node.inputs[:count], strict=True):
        allocation, offset, steps = operands.view(value)
        bound[own] = bound[tested] = Binding(allocation, offset)
        if steps != row_major(value.aval.shape):
            strides[own] = strides[tested] = steps
    for i, (variable, tested, initial) in enumerate(
        zip(variables, cond.inputs[count:], node.inputs[count:], strict=True)
    ):
        allocation = (
            results[i][0]
            if i in results
            else Allocation(MemorySpace.ARENA, initial.aval.dtype, initial.aval.size, "carry")
        )
        section.add([operands.copy(initial, allocation)])
        bound[variable] = bound[tested] = Binding(allocation)
    flag = Allocation(MemorySpace.ARENA, bool_, 1, "goes on")
    loop = bound_body(plan_body(cond, _of(cond, strides)), cond, bound, [Binding(flag)])
    test = len(loop.calls)
    loop.join(bound_body(plan_body(graph, _of(graph, strides)), graph, bound, []))
    for call in loop.calls:
        call.times *= GUESSED
    read = BufferAccess(flag, False, 0, 0, 0, 1)
    loop.regions = [While(0, len(loop.calls), loop.regions, test=test, flag=read)]
    section.join(loop)
    for i, initial in enumerate(node.inputs[count:]):
        allocations = results.get(i, [])
        section.add([value_copy(initial, allocation, Binding(allocations[0])) for allocation in allocations[1:]])
    return section


def choice(node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
    """Return the calls and the branches of a node whose rule is Cond."""
    section = Section()
    parts: list[Section] = []
    for name in ("then", "otherwise"):
        whole = node.attrs[name].graph
        graph = Graph(whole.inputs, [whole.outputs[k] for k in results], {}, whole.name)
        bound: dict[Value, Binding] = {}
        strides: dict[Value, Shape] = {}
        for x, value in zip(graph.inputs, node.inputs[1:], strict=True):
            allocation, offset, steps = operands.view(value)
            bound[x] = Binding(allocation, offset)
            if steps != row_major(value.aval.shape):
                strides[x] = steps
        plan = plan_body(graph, strides)
        parts.append(bound_body(plan, graph, bound, [Binding(allocations[0]) for allocations in results.values()]))
    then, otherwise = parts
    middle = len(then.calls)
    then.join(otherwise)
    if then.calls:
        allocation, offset, _ = operands.view(node.inputs[0])
        flag = BufferAccess(allocation, False, offset, 0, 0, 1)
        then.regions = [Branch(0, len(then.calls), then.regions, middle=middle, flag=flag)]
        section.join(then)
    for k, (first, *more) in results.items():
        shape = node.attrs["then"].graph.outputs[k].aval.shape
        section.add([dense_copy(shape, (first, 0, row_major(shape)), allocation, node) for allocation in more])
    return section


def _of(graph: Graph, strides: dict[Value, Shape]) -> dict[Value, Shape]:
    return {x: strides[x] for x in graph.inputs if x in strides}


class BodiesLowering(Lowering, abc.ABC):
    """The base of ops that run other graphs in loops or conditionally."""

    stores_unread: ClassVar[bool] = False

    def may_fail(self, node: Value) -> bool:
        """Return whether a body calls the host or checks indices."""
        return any(
            bounds.find(graph) or any(lowering_of(x).may_fail(x) for x in graph.values) for graph in _bodies(node)
        )

    def build(self, request: Request) -> Section:
        results: Results = {
            x.index: request.targets[x]
            for x in request.cluster.members
            if isinstance(x, Result) and x in request.targets
        }
        return self.section(request.node, request.operands, results, request.plan_body)

    @abc.abstractmethod
    def section(self, node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
        """Return the calls and the loops or branches among them."""


class ScanLowering(BodiesLowering):
    """A loop of known length."""

    def section(self, node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
        return scans.scan(node, operands, results, plan_body)


class WhileLowering(BodiesLowering):
    """A loop that continues while a graph returns true."""

    def section(self, node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
        return while_loop(node, operands, results, plan_body)


class CondLowering(BodiesLowering):
    """One of two graphs."""

    def section(self, node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
        return choice(node, operands, results, plan_body)


def _bodies(node: Value) -> list[Graph]:
    """Return the graphs that a node runs."""
    return [] if node.op is None else [node.attrs[name].graph for name in node.op.regions]
