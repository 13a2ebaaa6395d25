"""The parts of a kernel under construction: its buffers and params, each with the argument of a call."""

from __future__ import annotations

import numpy as np

from runnel.backends import context
from runnel.compiler.kernels.allocations import Allocation, BufferAccess, Call, MemorySpace
from runnel.compiler.kernels.naming import named
from runnel.core.dtypes import DType, bool_, int64
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import Apply, Const, Expr, Param, Ref

_ALIGN = 64


class Parts:
    """Collects declarations; :meth:`call` builds the kernel."""

    def __init__(self) -> None:
        self.buffers: list[ir.Buffer] = []
        self.accesses: list[BufferAccess] = []
        self.params: list[Param] = []
        self.values: list[int] = []
        self._scratch = 0  # bytes, after those of products

    @classmethod
    def of(cls, call: Call) -> Parts:
        """The parts of the kernel of ``call``, to which more may be added."""
        parts = cls()
        parts.buffers += call.kernel.buffers
        parts.accesses += call.accesses
        parts.params += call.kernel.params
        parts.values += call.params
        return parts

    def declare(self, access: BufferAccess, mode: str, dtype: DType | None = None, name: str | None = None) -> str:
        """A buffer with this ``access``; ``dtype`` where it differs from that of its memory."""
        name = f"b{len(self.buffers)}" if name is None else name
        self.buffers.append(ir.Buffer(name, access.allocation.dtype if dtype is None else dtype, mode))
        self.accesses.append(access)
        return name

    def buffer(
        self, name: str, allocation: Allocation, offset: int, mode: str = "in", *, is_bounded: bool = False
    ) -> str:
        """Memory with an unknown access pattern: every thread may access all of it."""
        access = BufferAccess(allocation, mode != "in", offset, None, None, allocation.size, is_bounded=is_bounded)
        return self.declare(access, mode, name=name)

    def table(self, name: str, values: np.ndarray, dtype: DType = int64) -> str:
        """Constant integers of the plan."""
        flat = np.ascontiguousarray(values, dtype.numpy).reshape(-1)
        return self.buffer(name, Allocation(MemorySpace.CONSTANT, dtype, flat.size, name, value=flat), 0)

    def scratch(self, name: str, dtype: DType, size: int) -> str:
        """The thread's own memory, after that of earlier scratch buffers."""
        start = context.current().backend.product_scratch
        allocation = Allocation(MemorySpace.SCRATCH, dtype, size, name, slot=0, offset=start + self._scratch)
        self._scratch += -(-allocation.nbytes // _ALIGN) * _ALIGN
        return self.declare(BufferAccess(allocation, True, 0, None, None, size), "scratch", name=name)

    def param(self, value: int) -> Param:
        self.params.append(Param(f"p{len(self.params)}"))
        self.values.append(value)
        return self.params[-1]

    def call(
        self,
        prefix: str,
        body: tuple[ir.Stmt, ...],
        shape: tuple[int, int],
        flops: float,
        node: Value,
        split: str = "rows",
        doc: str | None = None,
    ) -> Call:
        """The kernel as a call of ``shape`` rows and columns, of which ``split`` are partitioned among threads; ``doc``
        is the source location, by default that of ``node``."""
        kernel = named(prefix, tuple(self.buffers), tuple(self.params), body, node.where if doc is None else doc)
        return Call(kernel, self.accesses, self.values, *shape, split, flops, [node])


def binary(op: scalar.ScalarOp, x: Expr, y: Expr) -> Expr:
    """``op`` of two values of one dtype, in that dtype."""
    return Apply(op, (x, y), x.dtype)


def compared(op: scalar.ScalarOp, x: Expr, y: Expr) -> Expr:
    """A comparison of two values of one dtype, as a bool."""
    return Apply(op, (x, y), bool_)


def count(name: str) -> Ref:
    """An int64 bound by a Let."""
    return Ref(name, int64)


def step_of(parts: Parts, step: int) -> ir.Stride:
    """A stride: 0 and 1 are part of the code, others are params."""
    return step if step in (0, 1) else parts.param(step)


def clipped(value: Expr, least: int, most: Expr) -> Expr:
    """``value`` clamped to [least, most], both int64."""
    return binary(scalar.minimum, binary(scalar.maximum, value, Const(least, int64)), most)
