"""The parts of a kernel that is written by hand: its buffers and params, each with what a call gives for it."""

from __future__ import annotations

import numpy as np

from runnel.codegen.contract import SCRATCH
from runnel.compiler.kernels.naming import named
from runnel.compiler.kernels.places import Access, Call, Place, Space
from runnel.core.dtypes import DType, int64
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import Apply, Const, Expr, Param, Ref

_ALIGN = 64


class Parts:
    """Declares as it is asked; :meth:`call` puts the kernel together."""

    def __init__(self) -> None:
        self.buffers: list[ir.Buffer] = []
        self.accesses: list[Access] = []
        self.params: list[Param] = []
        self.values: list[int] = []
        self._scratch = SCRATCH

    def buffer(self, name: str, place: Place, offset: int, mode: str = "in") -> str:
        """Memory outside; which thread touches what of it is not told."""
        self.buffers.append(ir.Buffer(name, place.dtype, mode))
        self.accesses.append(Access(place, mode != "in", offset, None, None, place.size))
        return name

    def table(self, name: str, values: np.ndarray, dtype: DType = int64) -> str:
        """Constant integers that come with the plan."""
        flat = np.ascontiguousarray(values, dtype.numpy).reshape(-1)
        return self.buffer(name, Place(Space.CONSTANT, dtype, flat.size, name, value=flat), 0)

    def scratch(self, name: str, dtype: DType, size: int) -> str:
        """The thread's own memory, behind that of the scratch buffers before."""
        self.buffers.append(ir.Buffer(name, dtype, "scratch"))
        place = Place(Space.SCRATCH, dtype, size, name, slot=0, offset=self._scratch)
        self.accesses.append(Access(place, True, 0, None, None, size))
        self._scratch += -(-place.nbytes // _ALIGN) * _ALIGN
        return name

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
    ) -> Call:
        """The kernel as a call of so many rows and columns, of which ``split`` are shared out among threads."""
        kernel = named(prefix, tuple(self.buffers), tuple(self.params), body, node.where)
        return Call(kernel, self.accesses, self.values, *shape, split, flops, [node])


def binary(op: scalar.ScalarOp, x: Expr, y: Expr) -> Expr:
    """``op`` of two values of one dtype, in that dtype."""
    return Apply(op, (x, y), x.dtype)


def count(name: str) -> Ref:
    """An int64 bound by a Let."""
    return Ref(name, int64)


def clipped(value: Expr, least: int, most: Expr) -> Expr:
    """``value`` held within [least, most], both int64."""
    return binary(scalar.minimum, binary(scalar.maximum, value, Const(least, int64)), most)
