"""Building blocks of kernels: declarations, expressions, constants of one element, and names.

Common values of constants are part of a kernel's code; other values are params. So one kernel serves all batch sizes,
epsilons and probabilities: a mean divides by a count that is a param. A kernel's name is a digest of its content, so
that equal kernels are one kernel.
"""

from __future__ import annotations

import functools
import hashlib
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.backends import context
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call, MemorySpace, constant
from runnel.core.dtypes import DType, bool_, int16, int32, int64
from runnel.core.records import fields, is_record
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import Apply, Buffer, Const, Expr, Kernel, Param, Ref, Stmt


def named(
    prefix: str, buffers: tuple[Buffer, ...], params: tuple[Param, ...], body: tuple[Stmt, ...], doc: str = ""
) -> Kernel:
    """Return a kernel called ``prefix_<digest of its contents>``."""
    return Kernel(f"{prefix}_{_digest((buffers, params, body))}", buffers, params, body, doc)


def _digest(contents: Any) -> str:
    """Return a digest of the contents, with each distinct part once: expressions share subexpressions."""
    numbers: dict[str, str] = {}
    number_of: dict[int, str] = {}

    assigned_to = number_of.get

    def number(part: Any) -> str:
        kind: Any = type(part)
        fields_of = _fields(kind)
        if fields_of is None:
            line = f"{kind.__name__} {part!r}"
        else:
            line = f"{kind.__name__} {' '.join([assigned_to(id(x)) or number(x) for x in fields_of(part)])}"
        assigned = number_of[id(part)] = numbers.setdefault(line, str(len(numbers)))
        return assigned

    number(contents)
    return hashlib.sha256("\n".join(numbers).encode()).hexdigest()[:16]


@functools.cache
def _fields(kind: type) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return a function that returns the items of a tuple or the fields of an object of the loop IR; None for other
    classes."""
    if kind is tuple:
        return tuple
    if kind.__module__ != ir.__name__ or not is_record(kind):
        return None
    names = [f.name for f in fields(kind)]
    return operator.attrgetter(*names) if len(names) > 1 else lambda part: (getattr(part, names[0]),)


_ALIGN = 64


def _table(dtype: DType, *values: Any) -> np.ndarray:
    return np.ascontiguousarray(values, dtype.numpy).reshape(-1)


class Parts:
    """Collects declarations; :meth:`call` builds the kernel."""

    def __init__(self) -> None:
        self.buffers: list[ir.Buffer] = []
        self.accesses: list[BufferAccess] = []
        self.params: list[Param] = []
        self.values: list[int] = []
        self._scratch = 0  # bytes, after the scratch of products

    @classmethod
    def of(cls, call: Call) -> Parts:
        """Return the parts of the kernel of ``call``, to which more may be added."""
        parts = cls()
        parts.buffers += call.kernel.buffers
        parts.accesses += call.accesses
        parts.params += call.kernel.params
        parts.values += call.params
        return parts

    def declare(self, access: BufferAccess, mode: str, dtype: DType | None = None, name: str | None = None) -> str:
        """Return a buffer with this ``access``; ``dtype`` where it differs from the dtype of its memory."""
        name = f"b{len(self.buffers)}" if name is None else name
        self.buffers.append(ir.Buffer(name, access.allocation.dtype if dtype is None else dtype, mode))
        self.accesses.append(access)
        return name

    def buffer(
        self, name: str, allocation: Allocation, offset: int, mode: str = "in", *, is_bounded: bool = False
    ) -> str:
        """Declare memory with an unknown access pattern: every thread may access all of it."""
        access = BufferAccess(allocation, mode != "in", offset, None, None, allocation.size, is_bounded=is_bounded)
        return self.declare(access, mode, name=name)

    def table(self, name: str, values: np.ndarray, dtype: DType = int64) -> str:
        """Declare constant integers of the plan."""
        parts = tuple(values.flat) if values.dtype == object else (values,)
        return self.buffer(name, constant(name, dtype, values.size, functools.partial(_table, dtype), parts), 0)

    def scratch(self, name: str, dtype: DType, size: int) -> str:
        """Declare memory of the thread, after earlier scratch buffers."""
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
        """Return the kernel as a call of ``shape`` rows and columns, of which ``split`` are partitioned among threads;
        ``doc`` is the source location, by default the location of ``node``."""
        kernel = named(prefix, tuple(self.buffers), tuple(self.params), body, node.where if doc is None else doc)
        return Call(kernel, self.accesses, self.values, *shape, split, flops, [node])


def binary(op: scalar.ScalarOp, x: Expr, y: Expr) -> Expr:
    """Apply ``op`` to two values of one dtype, in that dtype."""
    return Apply(op, (x, y), x.dtype)


def compared(op: scalar.ScalarOp, x: Expr, y: Expr) -> Expr:
    """Return a comparison of two values of one dtype, as a bool."""
    return Apply(op, (x, y), bool_)


def count(name: str) -> Ref:
    """Return an int64 bound by a Let."""
    return Ref(name, int64)


def step_of(parts: Parts, step: int) -> ir.Stride:
    """Return a stride: 0 and 1 are part of the code, others are params."""
    return step if step in (0, 1) else parts.param(step)


def clipped(value: Expr, least: int, most: Expr) -> Expr:
    """Clamp ``value`` to [least, most], both int64."""
    return binary(scalar.minimum, binary(scalar.maximum, value, Const(least, int64)), most)


_COMMON = (0, 1, -1, 2, -2, 0.5, -0.5)
_SIGNED = {2: int16, 4: int32, 8: int64}


def is_common(node: Value) -> bool:
    """Return whether the value of a constant of one element is part of the code."""
    value = node.value.reshape(-1)[0].item()
    return node.aval.dtype is bool_ or value in _COMMON or not math.isfinite(value)


def literal(node: Value) -> Const:
    """Return the constant as part of the code."""
    return Const(node.value.reshape(-1)[0].item(), node.aval.dtype)


def bits_of(node: Value) -> int:
    """Return the constant as the value of a param."""
    value, dtype = np.ascontiguousarray(node.value).reshape(-1)[:1], node.aval.dtype
    if dtype.is_float:
        return int(value.view(_SIGNED[dtype.itemsize].numpy)[0])
    return int(value.astype(np.int64)[0])


def from_bits(param: Param, dtype: DType) -> Expr:
    """Return the constant that a param holds."""
    if not dtype.is_float:
        return param if dtype is int64 else Apply(scalar.cast, (param,), dtype)
    signed = _SIGNED[dtype.itemsize]
    narrow: Expr = param if signed is int64 else Apply(scalar.cast, (param,), signed)
    return Apply(scalar.bitcast, (narrow,), dtype)
