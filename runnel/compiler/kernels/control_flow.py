"""Scans, while loops and branches as regions of a plan, and calls of the host.

A body is planned once. Its calls are bound to memory of the program, which advances at each iteration of a scan. An op
that NumPy computes during a program becomes a kernel that calls back into Python.
"""

from __future__ import annotations

import abc
from collections.abc import Container
from typing import Any, ClassVar, NamedTuple

from runnel.backends.host.calls import HostFunction, Operand
from runnel.compiler.kernels.bounds import find_bounds
from runnel.compiler.lowering.operands import Operands, dense_copy
from runnel.compiler.lowering.parts import named
from runnel.compiler.lowering.protocol import Lowering, Request, lowering_of, resolve_views
from runnel.compiler.plan_ir import cost
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call, MemorySpace
from runnel.compiler.plan_ir.plan import GUESSED, AnyRegion, BodyPlan, Branch, PlanBody, Repeat, Section, While
from runnel.compiler.plan_ir.strides import Strided
from runnel.core import tables
from runnel.core.avals import Shape, ShapedArray, row_major
from runnel.core.dtypes import bool_
from runnel.core.errors import VerifierError
from runnel.core.lengths import fixed
from runnel.core.records import replace
from runnel.graph.graph import Graph, topological
from runnel.graph.node import Input, InputKind, Result, Value
from runnel.graph.rewriting import placeholder, substituted
from runnel.loops import ir


class Binding(NamedTuple):
    """The memory bound to a body's place: from element ``offset`` on, ``step`` further at each iteration. ``past``: the
    body reads only what earlier iterations wrote there."""

    allocation: Allocation
    offset: int = 0
    step: int = 0
    past: bool = False


Bindings = dict[Allocation, Binding]
Results = dict[int, list[Allocation]]  # the memory of the results that are used, by index


def variable_for(x: Value, index: int) -> Value:
    return Input(x.aval, InputKind.VARIABLE, x.name or f"carry{index}")


def value_copy(like: Value, allocation: Allocation, source: Binding) -> Call:
    """Return a dense value of the aval of ``like`` copied to ``place``."""
    shape = like.aval.shape
    return dense_copy(shape, (source.allocation, source.offset, row_major(shape)), allocation, like)


def bound_body(
    plan: BodyPlan, graph: Graph, inputs: dict[Value, Binding], outputs: list[Binding], count: int | None = None
) -> Section:
    """Return a copy of a body's calls bound to memory of the program; in a loop of ``count`` iterations."""
    bindings: Bindings = {}
    ordinary = [x for x in graph.inputs if x.kind is not InputKind.VARIABLE]
    for x, allocation in zip(ordinary, plan.interface.inputs, strict=True):
        if x in inputs:  # all but unused carries
            bindings[allocation] = inputs[x]
    for x, allocation in plan.interface.variables.items():
        bindings[allocation] = inputs[x]
    section = Section(list(plan.section.calls))
    for node, index, binding in zip(graph.outputs, plan.interface.output_of, outputs, strict=True):
        allocation = plan.interface.outputs[index]
        if allocation in bindings:  # the same value is an output twice
            another = Allocation(MemorySpace.OUTPUT, allocation.dtype, allocation.size, allocation.label)
            section.add([value_copy(node, another, Binding(allocation))])
            allocation = another
        bindings[allocation] = binding
    in_loop = count is not None
    section.calls = [_call(call, bindings, count or 1, in_loop) for call in section.calls]
    section.regions = [_region(region, bindings, in_loop) for region in plan.section.regions]
    return section


def _call(call: Call, bindings: Bindings, count: int, in_loop: bool) -> Call:
    accesses = [_access(a, bindings, in_loop) for a in call.accesses]
    return replace(call, accesses=accesses, params=list(call.params), times=call.times * count)


def _access(access: BufferAccess, bindings: Bindings, in_loop: bool) -> BufferAccess:
    binding = bindings.get(access.allocation)
    own = (0 if binding is None else binding.step,) if in_loop else ()
    if binding is None:
        return replace(access, steps=(*own, *access.steps))
    extent = access.allocation.size if access.extent is None else access.extent
    return replace(
        access,
        allocation=binding.allocation,
        offset=access.offset + binding.offset,
        steps=(*own, *access.steps),
        extent=None if extent == binding.allocation.size else extent,
        past=binding.past,
    )


def _region(region: AnyRegion, bindings: Bindings, in_loop: bool) -> AnyRegion:
    inner = [_region(s, bindings, in_loop) for s in region.inner]
    flag = None if region.flag is None else _access(region.flag, bindings, in_loop)
    return replace(region, inner=inner, flag=flag)


def scan(node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
    """Return the calls and the loop of a node whose rule is Scan."""
    return _Scan(node, operands, results).build(plan_body)


class _Scan:
    """The lowering of one scan."""

    def __init__(self, node: Value, operands: Operands, results: Results) -> None:
        self.node = node
        self.operands = operands
        self.results = results
        self.length: int = node.attrs["length"]
        self.graph: Graph = node.attrs["body"].graph
        count, carries = node.attrs["constants"], node.attrs["carries"]
        inputs, outputs = self.graph.inputs, self.graph.outputs
        self.constants = dict(zip(inputs[:count], node.inputs[:count], strict=True))
        self.carries = inputs[count : count + carries]
        self.initial = node.inputs[count : count + carries]
        self.xs = dict(zip(inputs[count + carries :], node.inputs[count + carries :], strict=True))
        self.new = outputs[:carries]
        self.ys = {k: y for k, y in enumerate(outputs[carries:], carries) if k in results}  # the used ones
        self.stacked = {
            i: k for i, new in enumerate(self.new) for k in reversed(self.ys) if self.ys[k] is new
        }  # carries that are stored in a result
        self.fixed = [i for i in self._needed() if i not in self.stacked]

    def _needed(self) -> list[int]:
        """Return the carries that are results, or that results depend on."""
        needed = {i for i in range(len(self.new)) if i in self.results}
        before = -1
        while len(needed) > before:
            before = len(needed)
            read = set(topological([*self.ys.values(), *(self.new[i] for i in needed)]))
            needed |= {i for i, carry in enumerate(self.carries) if carry in read}
        return sorted(needed)

    def build(self, plan_body: PlanBody) -> Section:
        section = Section()
        if self.length:
            loop = self._loop(plan_body)
            section.add(self.operands.before)
            section.join(loop)
        for i, initial in enumerate(self.initial):
            if not self.length:
                section.add([self.operands.copy(initial, allocation) for allocation in self.results.get(i, ())])
            elif i in self.stacked:
                last = self._slice(self.stacked[i], self.length - 1)
                section.add([value_copy(initial, allocation, last) for allocation in self.results.get(i, ())])
        for k in self.ys:
            first, *more = self.results[k]
            shape = (self.length, *self.ys[k].aval.shape)
            steps = row_major(shape)
            section.add([dense_copy(shape, (first, 0, steps), allocation, self.node) for allocation in more])
        return section

    def _slice(self, k: int, t: int) -> Binding:
        """Return the slice of result ``k`` that iteration ``t`` writes."""
        size = self.ys[k].aval.size
        if self.node.attrs["reverse"]:
            return Binding(self.results[k][0], (self.length - 1 - t) * size, -size)
        return Binding(self.results[k][0], t * size, size)

    def _loop(self, plan_body: PlanBody) -> Section:
        """Return the first iteration, where it differs from the rest, and the loop."""
        section = Section()
        strides: dict[Value, Shape] = {}
        bound: dict[Value, Binding] = {}
        for x, value in self.constants.items():
            allocation, offset, strides[x] = self.operands.view(value)
            bound[x] = Binding(allocation, offset)
        for x, value in self.xs.items():
            allocation, offset, (step, *rest) = self.operands.view(value)
            strides[x] = tuple(rest)
            reverse = self.node.attrs["reverse"]
            bound[x] = (
                Binding(allocation, offset + (self.length - 1) * step, -step)
                if reverse
                else Binding(allocation, offset, step)
            )
        graph, variables = self._body(bound, strides, section)
        plan = plan_body(graph, {x: s for x, s in strides.items() if s != row_major(x.aval.shape)})
        for i in self.fixed:
            allocation = self._carry_place(i)
            section.add([self.operands.copy(self.initial[i], allocation)])
            bound[variables[i]] = Binding(allocation)
        initial = dict(bound)
        for i, k in self.stacked.items():
            initial[self.carries[i]] = Binding(*self.operands.dense(self.initial[i]))
            bound[self.carries[i]] = self._slice(k, -1)
        slices = [self._slice(k, 0) for k in self.ys]
        begin = 0
        if self.stacked:
            section.join(bound_body(plan, graph, initial, slices))
            begin = 1
        if self.length > begin:
            ready = {x: b._replace(offset=b.offset + begin * b.step) for x, b in bound.items()}
            slices = [b._replace(offset=b.offset + begin * b.step) for b in slices]
            loop = bound_body(plan, graph, ready, slices, self.length - begin)
            if loop.calls:
                inner, loop.regions = loop.regions, []
                loop.regions = [Repeat(0, len(loop.calls), inner, count=self.length - begin)]
                section.join(loop)
        for i in self.fixed:
            allocations = self.results.get(i, [])
            section.add(
                [value_copy(self.initial[i], allocation, Binding(allocations[0])) for allocation in allocations[1:]]
            )
        return section

    def _carry_place(self, i: int) -> Allocation:
        aval = self.initial[i].aval
        allocations = self.results.get(i)
        return allocations[0] if allocations else Allocation(MemorySpace.ARENA, aval.dtype, aval.size, "carry")

    def _body(
        self, bound: dict[Value, Binding], strides: dict[Value, Shape], section: Section
    ) -> tuple[Graph, dict[int, Value]]:
        """Return the body without unused values, with carries as Variables, and with the right operands of products
        that would be read transposed at each iteration copied once."""
        needed = Graph(self.graph.inputs, [*self.ys.values(), *(self.new[i] for i in self.fixed)], {}, self.graph.name)
        variables = {i: variable_for(self.carries[i], i) for i in self.fixed}
        factors = dense_factors(needed, strides, self.constants, bound, section)
        copies = list(factors.values())
        replaced: dict[Value, Value] = {**{self.carries[i]: v for i, v in variables.items()}, **factors}
        graph = substituted(needed, replaced)
        values = [replaced.get(x, x) for x in self.graph.inputs]
        inputs = [*(x for x in values if x not in copies), *copies]  # a factor may be an input itself
        ys, new = graph.outputs[: len(self.ys)], graph.outputs[len(self.ys) :]
        return Graph(inputs, ys, dict(zip(variables.values(), new, strict=True)), graph.name), variables


def dense_factors(
    graph: Graph,
    strides: dict[Value, Shape],
    constants: Container[Value],
    bound: dict[Value, Binding],
    section: Section,
) -> dict[Value, Value]:
    """Copy the right operands of products that a body would read transposed at each iteration, once before it. Returns
    the input for each of them, which is bound to its copy."""
    inputs: dict[Value, Value] = {}
    for factor, view in _transposed_factors(graph, strides, constants).items():
        base = bound[view.base]
        allocation = Allocation(MemorySpace.ARENA, factor.aval.dtype, factor.aval.size, "factor")
        x = inputs[factor] = placeholder(factor.aval, "factor")
        source = base.allocation, base.offset + view.offset, view.strides
        section.add([dense_copy(x.aval.shape, source, allocation, factor)])
        bound[x] = Binding(allocation)
    return inputs


def _transposed_factors(graph: Graph, strides: dict[Value, Shape], constants: Container[Value]) -> dict[Value, Strided]:
    """Return the right operands of products that are views of constants whose columns are not adjacent."""
    views = resolve_views(graph, strides)
    products = [n for n in graph.values if lowering_of(n).is_product]
    factors = {n.inputs[1]: views[n.inputs[1]] for n in products}
    return {
        x: view
        for x, view in factors.items()
        if view.base in constants and x.aval.shape[-1] > 1 and view.strides[-1] != 1
    }


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
    loop.regions = [While(0, len(loop.calls), loop.regions, middle=test, flag=read)]
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

    def may_fail(self, node: Value) -> bool:
        """Return whether a body calls the host or checks indices."""
        return any(
            find_bounds(graph) or any(lowering_of(x).may_fail(x) for x in graph.values) for graph in _bodies(node)
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
        return scan(node, operands, results, plan_body)


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


class HostCallLowering(Lowering):
    """A host call in program order."""

    stays_in_step: ClassVar[bool] = True
    runs_on_host: ClassVar[bool] = True
    rate: ClassVar[float] = cost.HOST_RATE

    def may_fail(self, node: Value) -> bool:
        return True

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [_host_call(request.node, request.operands, results)]


def _host_call(node: Value, operands: Operands, results: list[Allocation]) -> Call:
    """Return the call of the rule of table ``reference`` on dense memory, by the thread that runs the program."""
    if not isinstance(node, Result):
        raise VerifierError(f"{node!r} is made by no op.")
    function = host_function(node)
    buffers: list[ir.Buffer] = []
    accesses: list[BufferAccess] = []
    for i, x in enumerate(node.inputs):
        allocation, offset = operands.dense(x)
        buffers.append(ir.Buffer(f"x{i}", allocation.dtype, "in"))
        accesses.append(BufferAccess(allocation, False, offset, None, None, x.aval.size))
    for i, allocation in enumerate(results):
        buffers.append(ir.Buffer(f"y{i}", allocation.dtype, "out"))
        accesses.append(BufferAccess(allocation, True, 0, None, None, allocation.size))
    param = ir.Param("function")
    kernel = named("host", tuple(buffers), (param,), (ir.Host(param),), node.where)
    return Call(kernel, accesses, [function.address], 1, 1, "", 0.0, [node], checks=True, host=function)


def host_function(node: Result) -> HostFunction:
    """Return the function that the program calls for ``node``."""
    rule, attrs, several = tables.reference[node.node.op], fixed(node.attrs), node.node.op.multiple_results

    def function(*arrays: Any) -> Any:
        results = rule(*arrays, **attrs)
        return results if several else (results,)

    inputs = [_operand(x.aval) for x in node.inputs]
    return HostFunction(function, inputs, [_operand(a) for a in node.node.avals], node.where)


def _operand(aval: ShapedArray) -> Operand:
    return Operand(fixed(aval.shape), aval.dtype.numpy)
