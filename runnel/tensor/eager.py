"""Run single ops eagerly.

An eager op is a program of one node, made by the same lowering and code generation as compiled programs. Plans are kept
by op, attributes, avals, layouts and context; kernels only by structure, so a new shape compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from runnel.backends import context as contexts
from runnel.backends.context import CompileContext
from runnel.backends.host.memory import Storage
from runnel.compiler.entry import compile_graph
from runnel.compiler.kernels.bounds import outside
from runnel.compiler.lowering.protocol import lowering_for
from runnel.compiler.options import Bindings, Options
from runnel.compiler.passes.permutes import in_order
from runnel.compiler.passes.pipeline import EXPANSION, NO_PASSES
from runnel.compiler.program import Program
from runnel.core import switches, tables
from runnel.core.avals import Shape, ShapedArray, aval, common_device, row_major
from runnel.core.caching import Recent
from runnel.core.dtypes import from_numpy
from runnel.core.errors import AxisError, NonFiniteError
from runnel.core.namespaces import imported
from runnel.core.recall import Recalled
from runnel.core.rules import ComplexOperands, is_by_numpy
from runnel.core.switches import RESOLVED
from runnel.core.tables import Op
from runnel.core.tracebacks import user_line
from runnel.graph.graph import Graph
from runnel.graph.node import Node, Value, applied, results_of
from runnel.graph.rewriting import placeholder
from runnel.tensor.bound import Bound, laid_out
from runnel.tensor.handle import Handle
from runnel.tensor.traced_values import left_over

Operand: TypeAlias = Handle[Any]

PLANS_PER_GENERATION = 4096  # plans of single ops, 11 KB each, in each of two generations; DenseNet needs 2500
OWN_ARENA = 16 << 10  # bytes: up to this size a plan keeps its memory for intermediate values

_ALONE = Options(passes=NO_PASSES, keeps_plan=False, own_arena=OWN_ARENA)  # an op with loops
_EXPANDED = Options(passes=EXPANSION, any_order=True, keeps_plan=False, own_arena=OWN_ARENA)  # an op made of other ops
_MULTI = Options(keeps_plan=False, own_arena=OWN_ARENA)  # an op of several results


class Viewing:
    """The plan of an op that is a view of its operand."""

    __slots__ = ("offset", "result", "strides")

    def __init__(self, result: ShapedArray, offset: int, strides: Shape) -> None:
        self.result = result
        self.offset = offset
        self.strides = strides

    def run(self, tensors: tuple[Operand, ...]) -> Operand:
        source = tensors[0]
        storage = source._storage
        if storage is None:
            raise AttributeError("an operand without memory")
        return source._over(self.result, storage, source._layout[0] + self.offset, self.strides)


class Running:
    """The plan of an op that runs a program of one node. ``run`` is generated code."""

    __slots__ = ("program", "results", "run", "strides")

    def __init__(
        self,
        op: Op,
        tensors: tuple[Operand, ...],
        program: Program,
        results: Sequence[ShapedArray],
        strides: Sequence[Shape],
    ) -> None:
        self.program, self.results, self.strides = program, results, strides
        operands = [f"x{i}" for i in range(len(tensors))]
        feeds = [laid_out(name, x._aval.dtype.itemsize) for name, x in zip(operands, tensors, strict=True)]
        bound = Bound(program, tensors[0].__class__, feeds, results, strides=strides)
        bound.namespace |= {"fault": _fault, "program": program}
        made = [line for i in range(len(results)) for line in bound.tensor(f"r{i}", i)]
        returned = ", ".join([f"r{i}" for i in range(len(results))])
        self.run: Callable[[tuple[Operand, ...]], Any] = bound.function(
            "run(tensors)",
            "call of an op",
            checks=[f"{', '.join(operands)}, = tensors"],
            then=[*made, f"return [{returned}]" if op.multiple_results else f"return {returned}"],
            failure="fault(program, status, tensors)",
        )


class OnHost:
    """The plan of an op that NumPy computes; ``results`` are the avals of its results."""

    __slots__ = ("attrs", "op", "results")

    def __init__(self, op: Op, attrs: dict[str, Any], results: tuple[ShapedArray, ...]) -> None:
        self.op = op
        self.attrs = attrs
        self.results = results

    def run(self, tensors: tuple[Operand, ...]) -> Any:
        arrays = tables.reference[self.op](*[t.numpy() for t in tensors], **self.attrs)
        results = [
            self._tensor(tensors[0], result, array)
            for result, array in zip(self.results, arrays if self.op.multiple_results else (arrays,), strict=True)
        ]
        return results if self.op.multiple_results else results[0]

    @staticmethod
    def _tensor(operand: Operand, result: ShapedArray, array_like: Any) -> Operand:
        array = np.ascontiguousarray(array_like)
        value = aval(result.shape, from_numpy(array.dtype), result.device)
        return operand._over(value, Storage.wrap(array.reshape(value.shape)), 0, row_major(value.shape))


Plan = Viewing | Running | OnHost

_PLANS: Recent[Any, Plan] = Recent(PLANS_PER_GENERATION)


def require_memory(op: Op, tensors: tuple[Operand, ...]) -> None:
    """Raise TracedValueError if an operand was left over from a trace, and so has no memory."""
    for x in tensors:
        if x._storage is None and x.is_traced:
            raise left_over(f"[{op.name}] an operand", x._aval)


def key_of(op: Op, tensors: tuple[Operand, ...], attrs: dict[str, Any]) -> Any:
    """Return the key of a plan: everything that it depends on."""
    context = RESOLVED.state.context or contexts.switched()
    if len(tensors) == 2:  # the most frequent cases by themselves, without a list
        x, y = tensors
        if not attrs:
            return op, context, x._aval, x._layout[1], y._aval, y._layout[1]
        return (op, context, x._aval, x._layout[1], y._aval, y._layout[1], *attrs.values())
    if len(tensors) == 1:
        x = tensors[0]
        return (op, context, x._aval, x._layout[1], *attrs.values())
    return (op, context, *attrs.values(), *[(x._aval, x._layout[1]) for x in tensors])


def execute(op: Op, tensors: tuple[Operand, ...], attrs: dict[str, Any]) -> Any:
    """Run ``op`` on the device of its operands. Return the result without a tape, or a list of several."""
    key = key_of(op, tensors, attrs)
    plan = _PLANS.get(key)
    if plan is None:
        require_memory(op, tensors)
        there = contexts.on(common_device(op.name, [x._aval for x in tensors]))
        plan = _PLANS[key] = prepare(op, tensors, attrs, there)
    result: Any = plan.run(tensors)
    if Recalled.equip is None:
        imported("runnel.tensor.recall:begin")(tensors[0])
    if switches.check_nans.value:
        for each in result if op.multiple_results else (result,):
            _check_finite(op, tensors, each)
    return result


def plan_of(op: Op, tensors: tuple[Operand, ...], attrs: dict[str, Any]) -> Plan | None:
    """Return the plan of an op that was just executed."""
    return _PLANS.get(key_of(op, tensors, attrs))


def prepare(op: Op, tensors: tuple[Operand, ...], attrs: dict[str, Any], context: CompileContext) -> Plan:
    """Return the plan for these avals and layouts; raise ComplexOperands if NumPy computes the op."""
    device = context.device
    avals = [t._aval.unplaced for t in tensors]
    if is_by_numpy(op, avals, attrs):
        raise ComplexOperands
    inferred = tables.abstract_eval[op](*avals, **attrs)
    results: tuple[ShapedArray, ...] = inferred if op.multiple_results else (inferred,)
    lowering = lowering_for(op)
    if lowering.runs_on_host or (op not in tables.lower and op not in tables.decompose):
        return OnHost(op, attrs, tuple([x.on(device) for x in results]))
    if op.multiple_results:
        return _prepare_several(op, tensors, attrs, results, context)
    (result,) = results
    viewed = lowering.layout(avals[0], tensors[0]._layout[1], result, attrs) if lowering.is_view else None
    if viewed is not None:
        return Viewing(result.on(device), *viewed)
    order = memory_order(tensors, result)
    moved = None if order is None else in_order(applied(op, (), attrs, result), order)
    if order is not None and moved is not None:
        nodes, strides = _inputs(tensors, order)
        out = applied(op, tuple(nodes), moved, _in_order(result, order))
    else:
        order = tuple(range(result.ndim))
        nodes, strides = _inputs(tensors)
        out = applied(op, tuple(nodes), attrs, result)
    graph = Graph(nodes, [out], {}, op.name)
    options = _EXPANDED if op in tables.decompose else _ALONE
    compiled = compile_graph(graph, Bindings(strides), context, options)
    (steps,) = compiled.strides
    result_strides = tuple(steps[order.index(a)] for a in range(result.ndim))
    return Running(op, tensors, compiled.program, [result.on(device)], [result_strides])


def _prepare_several(
    op: Op,
    tensors: tuple[Operand, ...],
    attrs: dict[str, Any],
    results: tuple[ShapedArray, ...],
    context: CompileContext,
) -> Running:
    inputs, strides = _inputs(tensors)
    outs = results_of(Node(op, tuple(inputs), attrs, results))
    program = compile_graph(Graph(inputs, outs, {}, op.name), Bindings(strides), context, _MULTI).program
    dense = [row_major(x.shape) for x in results]
    return Running(op, tensors, program, [x.on(context.device) for x in results], dense)


def clear() -> None:
    """Drop all plans. The next ops are planned again; their machine code is kept."""
    _PLANS.clear()


def _inputs(tensors: tuple[Operand, ...], order: Shape | None = None) -> tuple[list[Value], dict[Value, Shape]]:
    """Return nodes for the operands, with their axes in ``order``, and the strides of those that are not dense."""
    nodes: list[Value] = []
    strides: dict[Value, Shape] = {}
    for i, t in enumerate(tensors):
        value, steps = t._aval.unplaced, t._layout[1]
        if order is not None:
            value, steps = _in_order(value, order), tuple(steps[a] for a in order)
        nodes.append(placeholder(value, f"x{i}"))
        if steps != row_major(value.shape):
            strides[nodes[-1]] = steps
    return nodes, strides


def _in_order(value: ShapedArray, order: Shape) -> ShapedArray:
    return aval(tuple(value.shape[a] for a in order), value.dtype, value.device)


def memory_order(tensors: tuple[Operand, ...], result: ShapedArray) -> Shape | None:
    """Return the order of axes in which the largest operand is dense; None if it is dense already, or in no order."""
    largest = max(tensors, key=lambda t: t._aval.size)
    shape, strides = largest._aval.shape, largest._layout[1]
    if len(shape) != result.ndim or strides == row_major(shape) or min(strides) <= 0:
        return None
    order = tuple(sorted(range(len(shape)), key=lambda a: (-strides[a], a)))
    return order if dense_in(order, shape, strides) and order != tuple(range(len(shape))) else None


def dense_in(order: Shape, shape: Shape, strides: Shape) -> bool:
    """Return whether memory is dense if its axes are taken in this order."""
    dense = row_major(tuple(shape[a] for a in order))
    return all(shape[a] == 1 or strides[a] == step for a, step in zip(order, dense, strict=True))


def _fault(program: Program, status: int, tensors: tuple[Operand, ...]) -> BaseException:
    """Return the error of an op that ended with ``status``, with the wrong indices if there are any."""
    for bounded in program.plan.bounded:
        if bounded.code == status:
            indices = tensors[bounded.node.inputs.index(bounded.indices)].numpy()
            wrong = indices[outside(indices, bounded.extent, bounded.allowed)]
            listed = ", ".join(map(str, wrong[:5].tolist())) + (", …" if wrong.size > 5 else "")
            return AxisError(
                f"[{bounded.node.op.name if bounded.node.op else '?'}] {wrong.size} of {indices.size} indices lie "
                f"outside [0, {bounded.extent}): {listed}."
            )
    return program.error(status)


def _check_finite(op: Op, tensors: tuple[Operand, ...], result: Operand) -> None:
    if not result.dtype.is_inexact or _is_finite(result.numpy()):
        return
    if all(not t.dtype.is_inexact or _is_finite(t.numpy()) for t in tensors):
        raise NonFiniteError(
            f"[{op.name}] made a NaN or infinity from finite inputs of shapes "
            f"{', '.join(str(t.shape) for t in tensors)} at {user_line()}."
        )


def _is_finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array if array.dtype.kind == "c" else array.astype(np.float64)).all())
