"""Bodies of loops: the calls of a graph that is planned once and bound to memory of the enclosing program, which may
advance at each iteration. ``scans`` and ``control`` define the bindings.
"""

from __future__ import annotations

from typing import NamedTuple

from runnel.compiler.kernels.allocations import Allocation, BufferAccess, Call, MemorySpace
from runnel.compiler.kernels.elementwise.strided_copy import dense_copy
from runnel.compiler.kernels.section import BodyPlan, Section
from runnel.compiler.schedule.loop_regions import AnyRegion, Repeat
from runnel.core.avals import row_major
from runnel.core.records import replace
from runnel.graph.graph import Graph
from runnel.graph.node import Input, InputKind, Value


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
    """A dense value of the aval of ``like`` copied to ``place``."""
    shape = like.aval.shape
    return dense_copy(shape, (source.allocation, source.offset, row_major(shape)), allocation, like)


def bound_body(
    plan: BodyPlan, graph: Graph, inputs: dict[Value, Binding], outputs: list[Binding], count: int | None = None
) -> Section:
    """A copy of a body's calls bound to memory of the program; in a loop of ``count`` iterations."""
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
