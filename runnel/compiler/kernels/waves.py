"""``waves`` as a loop over waves: every kernel of the body computes the rows of one wave at each iteration.

The body is planned once, for all rows. Its calls get a *window* (``plan_ir.calls``): at run time they compute only the
rows of the wave, which the loop's flag names. So a structure of other waves needs no other plan, and rows beside the
wave are neither computed nor read, except through pulls.
"""

from __future__ import annotations

from runnel.compiler.kernels.control_flow import (
    Binding,
    BodiesLowering,
    Results,
    bound_body,
    dense_factors,
    value_copy,
    variable_for,
)
from runnel.compiler.lowering.operands import Operands, filled
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call, MemorySpace
from runnel.compiler.plan_ir.plan import PlanBody, Section, Waves
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import int64
from runnel.core.errors import VerifierError
from runnel.core.lengths import expected
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.graph.rewriting import placeholder, substituted
from runnel.loops import ir
from runnel.ops.waves import Parts, parts_of, pulled


class WavesLowering(BodiesLowering):
    """A recurrence over rows in an order that is data."""

    def section(self, node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
        return _Waves(node, operands, results).build(plan_body)


class _Waves:
    """The lowering of one node."""

    def __init__(self, node: Value, operands: Operands, results: Results) -> None:
        self.node, self.operands, self.results = node, operands, results
        attrs = node.attrs
        self.parts: Parts = parts_of(node.inputs, attrs["constants"], attrs["sources"])
        self.graph: Graph = attrs["body"].graph
        self.rows = self.graph.outputs[0].aval.shape[0]
        self.section = Section()
        self.bound: dict[Value, Binding] = {}
        self.strides: dict[Value, Shape] = {}

    def build(self, plan_body: PlanBody) -> Section:
        pulls = self.node.attrs["pulls"]
        places = [self._place(i, x) for i, x in enumerate(self.graph.outputs)]
        for i in sorted({pull.state for pull in pulls}):
            zero = ir.Const(0.0 if places[i].dtype.is_float else 0, places[i].dtype)
            self.section.add([filled(self.graph.outputs[i].aval.shape, places[i], zero, self.node)])
        graph = self._bind(places)
        body = plan_body(graph, {x: s for x, s in self.strides.items() if s != row_major(x.aval.shape)})
        if body.section.regions or any(call.host is not None for call in body.section.calls):
            raise VerifierError("[recur] the function must not contain loops, branches or calls of the host.")
        loop = self._test(plan_body)
        test = len(loop.calls)
        inner = bound_body(body, graph, self.bound, [Binding(p) for p in places])
        for call in inner.calls if self.rows != 1 else ():  # the only wave of one row has all of it
            call.window = window_of(call, self.rows)
        loop.join(inner)
        loop.regions = [
            Waves(
                0, len(loop.calls), [], middle=test, flag=self.flag, rows=self.rows,
                waves=expected(self.parts.starts.aval.size) - 1,
            )
        ]  # fmt: skip
        self.section.add(self.operands.before)
        self.section.join(loop)
        for i, allocations in self.results.items():
            like = self.graph.outputs[i]
            self.section.add([value_copy(like, more, Binding(allocations[0])) for more in allocations[1:]])
        return self.section

    def _place(self, i: int, x: Value) -> Allocation:
        """Return the memory of result ``i``."""
        known = self.results.get(i)
        return known[0] if known else Allocation(MemorySpace.ARENA, x.aval.dtype, x.aval.size, "state")

    def _view(self, x: Value, value: Value) -> None:
        allocation, offset, self.strides[x] = self.operands.view(value)
        self.bound[x] = Binding(allocation, offset)

    def _bind(self, places: list[Allocation]) -> Graph:
        """Return the body with pulls as nodes, with all inputs bound to memory."""
        pulls, n = self.node.attrs["pulls"], self.node.attrs["constants"]
        states = {pull.state: placeholder(self.graph.outputs[pull.state].aval, f"state{pull.state}") for pull in pulls}
        sources = tuple(placeholder(x.aval, "links") for x in self.parts.sources)
        constants, xs = self.graph.inputs[:n], self.graph.inputs[n + len(pulls) :]
        pairs = ((constants, self.parts.constants), (sources, self.parts.sources), (xs, self.parts.xs))
        for inputs, values in pairs:
            for x, value in zip(inputs, values, strict=True):
                self._view(x, value)
        for i, state in states.items():
            self.bound[state] = Binding(places[i], past=True)
        replaced = {
            x: pulled(pull, states[pull.state], sources)
            for x, pull in zip(self.graph.inputs[n : n + len(pulls)], pulls, strict=True)
        }
        graph = substituted(self.graph, replaced)
        bound = [*constants, *states.values(), *sources, *xs]
        whole = Graph(bound, graph.outputs, {}, graph.name)
        factors = dense_factors(whole, self.strides, constants, self.bound, self.section)
        graph = substituted(whole, factors)
        return Graph([*bound, *factors.values()], graph.outputs, {}, graph.name)

    def _test(self, plan_body: PlanBody) -> Section:
        """Return the calls that choose the next wave."""
        advance: Graph = self.node.attrs["advance"].graph
        starts, wave = advance.inputs
        window, following = advance.outputs
        variable = variable_for(wave, 0)
        changed = substituted(advance, {wave: variable})
        graph = Graph([starts, variable], changed.outputs[:1], {variable: changed.outputs[1]}, advance.name)
        counter = Allocation(MemorySpace.ARENA, following.aval.dtype, 1, "wave")
        self.section.add([filled((), counter, ir.Const(0, int64), self.node)])
        allocation, offset, strides = self.operands.view(self.parts.starts)
        flag = Allocation(MemorySpace.ARENA, int64, 3, "window")
        bound = {starts: Binding(allocation, offset), variable: Binding(counter)}
        plan = plan_body(graph, {} if strides == row_major(starts.aval.shape) else {starts: strides})
        self.flag = BufferAccess(flag, False, 0, 0, 0, window.aval.size)
        return bound_body(plan, graph, bound, [Binding(flag)])


def window_of(call: Call, rows: int) -> int:
    """Return the window of a call of the body: its rows, or minus its columns, for each of ``rows`` rows."""
    for extent, split, sign in ((call.rows, "rows", 1), (call.columns, "columns", -1)):
        k = expected(extent) // max(expected(rows), 1)
        if k and extent == rows * k and call.split in (split, "both") and _keeps_rows(call, rows, k, sign):
            return sign * k
    raise VerifierError(f"[recur] the kernel {call.kernel.name} of the function must compute its rows one by one.")


def _keeps_rows(call: Call, rows: int, k: int, sign: int) -> bool:
    """Return whether the call writes only elements of a row for that row."""
    if sign < 0 and call.rows != 1:
        return False
    for access in call.accesses:
        if access.writes and access.allocation.space is not MemorySpace.SCRATCH:
            step = access.row_step if sign > 0 else access.column_step
            if step is None or step * k * rows != access.allocation.size:
                return False
    return True
