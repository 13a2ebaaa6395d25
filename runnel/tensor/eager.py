"""Eager execution of single ops. The kernel comes from the same lowering and code generation as in compiled programs,
as a program of one node; programs are kept by op, attributes, avals, layouts and context, kernels by structure alone,
so a new shape compiles nothing.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from runnel.backends import context as contexts
from runnel.backends.context import CompileContext
from runnel.backends.host.layout import LATER
from runnel.backends.host.memory import Storage
from runnel.compiler.entry import compile_graph
from runnel.compiler.executable.program import Program
from runnel.compiler.kernels.bounds import outside
from runnel.compiler.kernels.lowering import lowering_for
from runnel.compiler.options import Bindings, Options
from runnel.compiler.passes.sink_permutes import in_order
from runnel.compiler.passes.usual import EXPANSION, NO_PASSES
from runnel.core import switches, tables
from runnel.core.avals import Shape, ShapedArray, aval, common_device, row_major
from runnel.core.complexes import ComplexOperands, is_by_numpy
from runnel.core.dtypes import from_numpy
from runnel.core.errors import AxisError, NonFiniteError
from runnel.core.recent import Recent
from runnel.core.switches import RESOLVED
from runnel.core.tables import Op
from runnel.core.tracebacks import user_line
from runnel.graph.extract import placeholder
from runnel.graph.graph import Graph
from runnel.graph.node import Node, Value, applied, results_of
from runnel.tensor.handle import Handle

Operand: TypeAlias = Handle[Any]

PLANS_PER_GENERATION = 1024  # plans of single ops held ready, a few KB each: those used last, and as many before them
CELL: Final = 64  # bytes: results up to this size share slabs
CELLS: Final = 16  # in a slab
OWN_ARENA = 16 << 10  # bytes, up to which a plan has memory of its own for what lies between its kernels

_ALONE = Options(passes=NO_PASSES, keeps_plan=False, own_arena=OWN_ARENA)  # an op that has loops
_EXPANDED = Options(passes=EXPANSION, any_order=True, keeps_plan=False, own_arena=OWN_ARENA)  # one made of others
_MULTI = Options(keeps_plan=False, own_arena=OWN_ARENA)  # one of several results


class Viewing:
    """The plan of an op that only looks at memory differently."""

    __slots__ = ("offset", "result", "strides")

    def __init__(self, result: ShapedArray, offset: int, strides: Shape) -> None:
        self.result = result
        self.offset = offset
        self.strides = strides

    def run(self, tensors: tuple[Operand, ...]) -> Placed:
        source = tensors[0]
        return self.result, source._storage, source._layout[0] + self.offset, self.strides


class Running:
    """The plan of an op that runs a program of one node. Small results of one plan share slabs, since an allocation for
    each would cost a third of the call; one that is kept keeps its slab."""

    __slots__ = (
        "_allocate", "_allocate_slab", "_elements", "_frames", "_free", "_is_small", "_lent", "_nbytes", "_sizes",
        "_slab", "program", "result", "strides",
    )  # fmt: skip

    def __init__(self, result: ShapedArray, strides: Shape, program: Program, sizes: tuple[int, ...]) -> None:
        """``sizes`` are those of the operands' elements, in bytes."""
        self.result = result
        self.strides = strides
        self.program = program
        self._sizes = sizes
        self._allocate, self._allocate_slab = program.backend.allocate, program.backend.allocate_slab
        self._frames = program.pool.frames
        self._lent = not program.has_own_arena
        self._nbytes = result.nbytes
        self._is_small = result.nbytes <= CELL
        self._elements = CELL // result.dtype.itemsize  # in a cell
        self._slab: Any = None
        self._free = 0  # cells of the slab

    def run(self, tensors: tuple[Operand, ...]) -> Placed:
        if self._is_small:
            if not self._free:
                slab = self._allocate_slab(CELL * CELLS)
                slab, self._slab = self._slab, slab  # the former slab does not end here: that would run other code
                self._free = CELLS
            self._free = cell = self._free - 1  # nothing is called up to the next line, so no other thread has it
            storage = self._slab
            offset = cell * self._elements
            target = storage.address + cell * CELL
        else:
            storage = self._allocate(self._nbytes)
            offset = 0
            target = storage.address
        frames = self._frames
        try:
            frame = frames.pop()
        except IndexError:
            frame = self.program.pool.make()
        if self._lent:
            arena: Any = self.program.lent_arena()
            frame.bases[0] = arena.address
        if len(tensors) == 2:  # the most frequent cases by themselves, without a list
            x, y = tensors
            i, k = self._sizes
            status = frame.start(x._storage.address + x._layout[0] * i, y._storage.address + y._layout[0] * k, target)  # type: ignore[union-attr]
        elif len(tensors) == 1:
            (x,) = tensors
            status = frame.start(x._storage.address + x._layout[0] * self._sizes[0], target)  # type: ignore[union-attr]
        else:
            status = frame.start(*[x.address for x in tensors], target)
        if status == LATER:
            status = frame.run()
        if frames:
            self.program.pool.give(frame)
        else:
            frames.append(frame)
        if status:
            raise _fault(self.program, status, tensors)
        return self.result, storage, offset, self.strides


class OnHost:
    """The plan of an op that NumPy carries out; ``results`` are the avals of its results."""

    __slots__ = ("attrs", "op", "results")

    def __init__(self, op: Op, attrs: dict[str, Any], results: tuple[ShapedArray, ...]) -> None:
        self.op = op
        self.attrs = attrs
        self.results = results

    def run(self, tensors: tuple[Operand, ...]) -> Any:
        arrays = tables.reference[self.op](*[t.numpy() for t in tensors], **self.attrs)
        placed = [
            self._placed(result, array)
            for result, array in zip(self.results, arrays if self.op.multiple_results else (arrays,), strict=True)
        ]
        return placed if self.op.multiple_results else placed[0]

    @staticmethod
    def _placed(result: ShapedArray, array_like: Any) -> Placed:
        array = np.ascontiguousarray(array_like)
        value = aval(result.shape, from_numpy(array.dtype), result.device)
        return value, Storage.wrap(array.reshape(value.shape)), 0, row_major(value.shape)


class RunningMulti:
    """The plan of an op of several results: a program of one node."""

    __slots__ = ("program", "results")

    def __init__(self, program: Program, results: tuple[ShapedArray, ...]) -> None:
        self.program = program
        self.results = results

    def run(self, tensors: tuple[Operand, ...]) -> list[Placed]:
        program = self.program
        storages = [program.backend.allocate(result.nbytes) for result in self.results]
        program.run([x.address for x in tensors], [storage.address for storage in storages])
        pairs = zip(self.results, storages, strict=True)
        return [(result, storage, 0, row_major(result.shape)) for result, storage in pairs]


Placed = tuple[ShapedArray, Storage | None, int, Shape]
Plan = Viewing | Running | RunningMulti | OnHost

_PLANS: Recent[Any, Plan] = Recent(PLANS_PER_GENERATION)


def execute(op: Op, tensors: tuple[Operand, ...], attrs: dict[str, Any]) -> Any:
    """Carry out ``op`` now, on the device of its operands; gives the result's aval, storage, offset and strides, or a
    list of those of several."""
    now = RESOLVED.state.context or contexts.switched()
    if len(tensors) == 2:  # the most frequent cases by themselves, without a list
        x, y = tensors
        key: Any = (op, now, x._aval, x._layout[1], y._aval, y._layout[1], *attrs.values())
    elif len(tensors) == 1:
        x = tensors[0]
        key = (op, now, x._aval, x._layout[1], *attrs.values())
    else:
        key = (op, now, *attrs.values(), *[(x._aval, x._layout[1]) for x in tensors])
    plan = _PLANS.young.get(key) or _PLANS.get(key)
    if plan is None:
        there = contexts.on(common_device(op.name, [x._aval for x in tensors]))
        plan = _PLANS[key] = prepare(op, tensors, attrs, there)
    result: Any = plan.run(tensors)
    if switches.check_nans.value:
        for placed in result if op.multiple_results else (result,):
            _check_finite(op, tensors, placed)
    return result


def prepare(op: Op, tensors: tuple[Operand, ...], attrs: dict[str, Any], context: CompileContext) -> Plan:
    """The plan for these avals and layouts. ComplexOperands where NumPy carries the op out."""
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
    sizes = tuple([x.dtype.itemsize for x in avals])
    return Running(result.on(device), result_strides, compiled.program, sizes)


def _prepare_several(
    op: Op,
    tensors: tuple[Operand, ...],
    attrs: dict[str, Any],
    results: tuple[ShapedArray, ...],
    context: CompileContext,
) -> RunningMulti:
    inputs, strides = _inputs(tensors)
    outs = results_of(Node(op, tuple(inputs), attrs, results))
    program = compile_graph(Graph(inputs, outs, {}, op.name), Bindings(strides), context, _MULTI).program
    return RunningMulti(program, tuple([x.on(context.device) for x in results]))


def clear() -> None:
    """Forget all plans. The next ops are planned anew; their machine code is still there."""
    _PLANS.clear()


def _inputs(tensors: tuple[Operand, ...], order: Shape | None = None) -> tuple[list[Value], dict[Value, Shape]]:
    """Nodes for the operands, their axes in ``order``, and the strides of those that are not dense."""
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
    """The order of axes in which the largest operand is dense; None if it is as it is, or in none."""
    largest = max(tensors, key=lambda t: t._aval.size)
    shape, strides = largest._aval.shape, largest._layout[1]
    if len(shape) != result.ndim or strides == row_major(shape) or min(strides) <= 0:
        return None
    order = tuple(sorted(range(len(shape)), key=lambda a: (-strides[a], a)))
    dense = row_major(tuple(shape[a] for a in order))
    fits = all(shape[a] == 1 or strides[a] == step for a, step in zip(order, dense, strict=True))
    return order if fits and order != tuple(range(len(shape))) else None


def _fault(program: Program, status: int, tensors: tuple[Operand, ...]) -> BaseException:
    """The error of an op that ended with ``status``; the values of indices can be told here."""
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


def _check_finite(op: Op, tensors: tuple[Operand, ...], placed: Placed) -> None:
    result, storage, offset, strides = placed
    if not result.dtype.is_inexact or storage is None or not result.size:
        return
    item = result.dtype.itemsize
    array = storage.ndarray(result.shape, result.dtype.numpy, offset * item, tuple(s * item for s in strides))
    if _is_finite(array):
        return
    if all(not t.dtype.is_inexact or _is_finite(t.numpy()) for t in tensors):
        raise NonFiniteError(
            f"[{op.name}] made a NaN or infinity from finite inputs of shapes "
            f"{', '.join(str(t.shape) for t in tensors)} at {user_line()}."
        )


def _is_finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array if array.dtype.kind == "c" else array.astype(np.float64)).all())
