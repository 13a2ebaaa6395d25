"""The lowering of ops that NumPy computes during a program: a kernel that calls back into Python."""

from __future__ import annotations

from typing import Any, ClassVar

from runnel.backends.host.calls import HostFunction, Operand
from runnel.compiler.lowering.operands import Operands
from runnel.compiler.lowering.parts import named
from runnel.compiler.lowering.protocol import Lowering, Request
from runnel.compiler.plan_ir import rates
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call
from runnel.core import tables
from runnel.core.avals import ShapedArray
from runnel.core.errors import VerifierError
from runnel.graph.node import Result, Value
from runnel.loops import ir


class HostCallLowering(Lowering):
    """A host call in program order."""

    stays_in_step: ClassVar[bool] = True
    runs_on_host: ClassVar[bool] = True
    rate: ClassVar[float] = rates.HOST_RATE

    def may_fail(self, node: Value) -> bool:
        return True

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [_call(request.node, request.operands, results)]


def _call(node: Value, operands: Operands, results: list[Allocation]) -> Call:
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
    rule, attrs, several = tables.reference[node.node.op], node.attrs, node.node.op.multiple_results

    def function(*arrays: Any) -> Any:
        results = rule(*arrays, **attrs)
        return results if several else (results,)

    inputs = [_operand(x.aval) for x in node.inputs]
    return HostFunction(function, inputs, [_operand(a) for a in node.node.avals], node.where)


def _operand(aval: ShapedArray) -> Operand:
    return Operand(aval.shape, aval.dtype.numpy)
