"""Plans of every record and of composed functions, made without running anything, and a NumPy run of a plan."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

import runnel as rn
from runnel import ops
from runnel.backends.interpreter import kernels as interpreter
from runnel.compiler.passes.decompose import decompose
from runnel.compiler.plan import plan_graph
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, MemorySpace
from runnel.compiler.plan_ir.plan import Plan
from runnel.core.avals import aval
from runnel.core.dispatch import apply
from runnel.core.tables import Op
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind
from runnel.graph.rewriting import placeholder
from runnel.loops.ir import Kernel
from runnel.tensor import tensor as tensors, tracing
from tests.ops.records import RECORDS, sample
from tests.suites.functions import FUNCTIONS
from tests.suites.inputs import NAMES, dtype_of, main_dtype

Array = np.ndarray[Any, Any]


def traced(function: Any, arrays: list[Array], threads: int = 1) -> Plan:
    """The plan of ``function`` of inputs like ``arrays``."""
    trace = tracing.Trace(tensors.serial_now())
    with tracing.activate(trace):
        nodes = [trace.input(aval(a.shape, dtype_of(a)), InputKind.ARGUMENT, f"x{i}") for i, a in enumerate(arrays)]
        actual = function(*[tensors.symbolic(n) for n in nodes])
        outputs = [tensors.node_of(y, trace) for y in (actual if isinstance(actual, tuple) else (actual,))]
    return plan_graph(decompose(trace.graph(outputs, {}, "suite")), threads)


def with_gradients(function: Any) -> Any:
    """The function and the gradients of the sum of its squares by its inputs."""

    def program(*xs: rn.Tensor) -> tuple[rn.Tensor, ...]:
        for x in xs:
            x.requires_grad_()
        out = function(*xs)
        (out * out).sum().backward()
        return (out, *(x.grad for x in xs if x.grad is not None))

    return program


Sample = tuple[str, Plan, list[Array]]


def record_plans() -> Iterator[Sample]:
    """Each op alone, in each of its cases and in two dtypes."""
    for name in NAMES:
        record = RECORDS[name]
        for dtype in dict.fromkeys((record.dtypes[0], main_dtype(record))):
            for case in record.cases:
                arrays = sample(record, case, dtype, seed=41)
                nodes = [placeholder(aval(a.shape, dtype_of(a)), "x") for a in arrays]
                op = Op.registry[name]
                with tracing.activate(tracing.Trace(tensors.serial_now())):
                    result = apply(op, *map(tensors.symbolic, nodes), **case[1])
                    outs = [x._node for x in (result if op.multiple_results else (result,))]
                    plan = plan_graph(decompose(Graph(nodes, outs, {}, name)), 1)
                yield f"{name} {dtype.name} {case}", plan, arrays


def function_plans() -> Iterator[Sample]:
    """Each composed function with its gradients, fused; without functions of which NumPy computes a part."""
    for name, (function, arrays) in FUNCTIONS.items():
        narrow = [a.astype(np.float32) for a in arrays]
        plan = traced(with_gradients(function), narrow)
        if all(call.host is None for call in plan.calls):
            yield name, plan, narrow
    x = np.random.default_rng(6).standard_normal((33, 20)).astype(np.float32)
    half = x.astype(np.float16)
    yield "network", traced(with_gradients(lambda x: ops.softmax(ops.relu(x @ x.T + x.sum(1)))), [x]), [x]
    yield "half", traced(with_gradients(lambda x: ops.softmax(x * 2.0) + x.mean(0)), [half]), [half]


@functools.cache
def samples() -> tuple[Sample, ...]:
    """All of them, made once."""
    return (*record_plans(), *function_plans())


@functools.cache
def kernels() -> dict[str, tuple[Kernel, str]]:
    """Every kernel by its name, with a plan that uses it."""
    return {call.kernel.name: (call.kernel, name) for name, plan, _ in samples() for call in plan.calls}


class Memory:
    """The memory of a plan in NumPy: a flat array for each place, the arena's sharing their bytes as planned."""

    def __init__(self, plan: Plan, arrays: list[Array]) -> None:
        self.plan = plan
        self.arena = np.zeros(plan.arena.peak, np.uint8)
        self.own: dict[Allocation, Array] = {}
        for allocation, array in zip(plan.inputs, arrays, strict=True):
            self.own[allocation] = array.reshape(-1).copy()
        for allocation in plan.outputs:
            self.own[allocation] = np.zeros(allocation.size, allocation.dtype.numpy)
        for allocation in plan.constants:
            self.own[allocation] = np.asarray(allocation.value).reshape(-1).copy()

    def of(self, access: BufferAccess) -> Array:
        """Return the range that a buffer sees, from the access's first element on."""
        allocation = access.allocation
        if allocation.space is MemorySpace.SCRATCH:
            undefined = np.nan if allocation.dtype.is_float else 85
            return np.full(allocation.size, undefined, allocation.dtype.numpy)  # the call's own
        if allocation.space is MemorySpace.ARENA:
            whole = self.arena[allocation.offset : allocation.offset + allocation.nbytes].view(allocation.dtype.numpy)
        else:
            whole = self.own[allocation]
        return whole[access.offset :]


def interpret(plan: Plan, arrays: list[Array]) -> list[Array]:
    """The outputs of a plan, by the interpreter of the loop IR."""
    memory = Memory(plan, arrays)
    for call, blocks in zip(plan.calls, plan.blocks, strict=True):
        buffers = {b.name: memory.of(a) for b, a in zip(call.kernel.buffers, call.accesses, strict=True)}
        params = {p.name: v for p, v in zip(call.kernel.params, call.params, strict=True)}
        for block in blocks:
            if block is not None:
                interpreter.run(call.kernel, buffers, params, *block)
    return [memory.own[allocation] for allocation in plan.outputs]
