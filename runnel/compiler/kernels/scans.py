"""Scans as loops of a plan, and the bodies of loops and branches as parts of a plan."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from runnel.compiler.lowering.nodes import resolve_views
from runnel.compiler.lowering.operands import Operands, dense_copy
from runnel.compiler.lowering.protocol import lowering_of
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call, MemorySpace
from runnel.compiler.plan_ir.regions import AnyRegion, BodyPlan, PlanBody, Repeat, Section
from runnel.compiler.plan_ir.strides import Strided
from runnel.core.avals import Shape, row_major
from runnel.core.records import replace
from runnel.graph.graph import Graph, topological
from runnel.graph.node import Input, InputKind, Value
from runnel.graph.rewriting import placeholder, substituted


class Binding(NamedTuple):
    """The memory bound to a body's place: from element ``offset`` on, ``step`` further at each iteration."""

    allocation: Allocation
    offset: int = 0
    step: int = 0


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
    for x, allocation in zip(ordinary, plan.inputs, strict=True):
        if x in inputs:  # all but unused carries
            bindings[allocation] = inputs[x]
    for x, allocation in plan.variables.items():
        bindings[allocation] = inputs[x]
    section = Section(list(plan.section.calls))
    for node, index, binding in zip(graph.outputs, plan.output_of, outputs, strict=True):
        allocation = plan.outputs[index]
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
    )


def _region(region: AnyRegion, bindings: Bindings, in_loop: bool) -> AnyRegion:
    inner = [_region(s, bindings, in_loop) for s in region.inner]
    if isinstance(region, Repeat):
        return replace(region, inner=inner)
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
        replaced: dict[Value, Value] = {self.carries[i]: v for i, v in variables.items()}
        copies: list[Value] = []
        for factor, view in _transposed_factors(needed, strides, self.constants).items():
            base, allocation = (
                bound[view.base],
                Allocation(MemorySpace.ARENA, factor.aval.dtype, factor.aval.size, "factor"),
            )
            x = placeholder(factor.aval, "factor")
            source = base.allocation, base.offset + view.offset, view.strides
            section.add([dense_copy(x.aval.shape, source, allocation, factor)])
            replaced[factor] = x
            bound[x] = Binding(allocation)
            copies.append(x)
        graph = substituted(needed, replaced)
        values = [replaced.get(x, x) for x in self.graph.inputs]
        inputs = [*(x for x in values if x not in copies), *copies]  # a factor may be an input itself
        ys, new = graph.outputs[: len(self.ys)], graph.outputs[len(self.ys) :]
        return Graph(inputs, ys, dict(zip(variables.values(), new, strict=True)), graph.name), variables


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
