"""Values in registers (scalars, and vectors with a lane for each position of a vec loop) and scalar operations on
them.

Each instruction of an operation's formula (``loops.formulas``) becomes a line of LLVM text. A bfloat16 is represented
by its bits between instructions: x86 processors without bfloat16 arithmetic have no registers for vectors of it, and
LLVM would scalarize such a vector at every branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Self, cast

import numpy as np

from runnel.backends.cpu.codegen.text import Emitter, element, literal, vector
from runnel.core.conversion import rounded
from runnel.core.dtypes import DType, bfloat16, float64, uint16, uint32, uint64
from runnel.core.errors import VerifierError
from runnel.core.records import record
from runnel.loops.formulas import table
from runnel.loops.formulas.value import Number, State, Value
from runnel.loops.scalar import ScalarOp

_STRUCT: Final = "{ i64, double, double }"
_WIDE: Final = (uint64, float64, float64)  # of a formula that is evaluated lane by lane


class Emitted(Value):
    """An operand of an :class:`Emitter`; ``name`` is an SSA name or a constant as LLVM spells it."""

    __slots__ = ("em", "name")

    def __init__(self, em: Emitter, name: str, dtype: DType, lanes: int) -> None:
        super().__init__(dtype, lanes)
        self.em: Final = em
        self.name: Final = name

    @property
    def type(self) -> str:
        return vector(self.dtype, self.lanes)

    @property
    def is_number(self) -> bool:
        if self.name.startswith("%"):
            return False
        nan = self.constant(math.nan).name if self.dtype.is_float else ""
        return self.name != nan

    def is_constant(self, number: Number) -> bool:
        return self.name == self.constant(number).name

    def constant_of(self, number: Number, dtype: DType) -> Self:
        return self._new(self.em.constant(number, dtype, self.lanes), dtype)

    def _new(self, name: str, dtype: DType) -> Self:
        return type(self)(self.em, name, dtype, self.lanes)

    def operation(self, instruction: str, other: Self, dtype: DType) -> Self:
        return self._new(self.em.value(f"{instruction} {self.type} {self.name}, {other.name}"), dtype)

    def negated(self) -> Self:
        return self._new(self.em.value(f"fneg {self.type} {self.name}"), self.dtype)

    def convert(self, instruction: str, dtype: DType) -> Self:
        to = vector(dtype, self.lanes)
        return self._new(self.em.value(f"{instruction} {self.type} {self.name} to {to}"), dtype)

    def reinterpret(self, dtype: DType) -> Self:
        if element(dtype) == element(self.dtype):
            return self._new(self.name, dtype)
        return self.convert("bitcast", dtype)

    def function(self, name: str, others: Sequence[Self]) -> Self:
        overload = f"llvm.{name}.{overload_suffix(self.dtype, self.lanes)}"
        values = (self, *others)
        return self._new(self.em.intrinsic(overload, self.type, *((self.type, v.name) for v in values)), self.dtype)

    def selected(self, yes: Self, no: Self) -> Self:
        name = self.em.value(f"select {self.type} {self.name}, {yes.type} {yes.name}, {no.type} {no.name}")
        return yes._new(name, yes.dtype)

    def _any(self) -> str:
        """Return an i1: whether any lane of this bool is set."""
        if self.lanes == 1:
            return self.name
        integer = f"i{self.lanes}"
        packed = self.em.value(f"bitcast {self.type} {self.name} to {integer}")
        return self.em.value(f"icmp ne {integer} {packed}, 0")

    def while_any(self, state: State, condition: Callable[[State], Any], step: Callable[[State], State]) -> list[Any]:
        em = self.em
        before = em.block
        head, body, done = em.new_label("while"), em.new_label("step"), em.new_label("done")
        em.jump(head)
        em.start(head)
        phis = [v._new(em.phi(v.type, (v.name, before)), v.dtype) for v in state]
        em.branch(condition(phis)._any(), body, done)
        em.start(body)
        for phi, new in zip(phis, step(phis), strict=True):
            em.add_edge(phi.name, new.name, em.block)
        em.jump(head)
        em.start(done)
        return phis

    def rarely(self, usual: State, otherwise: Callable[[], State]) -> list[Any]:
        em = self.em
        before = em.block
        slow, join = em.new_label("rare"), em.new_label("usual")
        em.branch(self._any(), slow, join)
        em.start(slow)
        rare = otherwise()
        after = em.block
        em.jump(join)
        em.start(join)
        return [
            u._new(em.phi(u.type, (u.name, before), (r.name, after)), u.dtype) for u, r in zip(usual, rare, strict=True)
        ]

    def element_of(self, name: str, table: Sequence[int]) -> Self:
        em = self.em
        address = em.value(f"getelementptr i32, ptr {em.table(name, 'i32', table)}, i64 {self.name}")
        return type(self)(em, em.value(f"load i32, ptr {address}"), uint32, 1)

    def lane_by_lane(self, name: str, formula: Callable[[Any], State], dtypes: Sequence[DType]) -> list[Any]:
        struct = _struct(dtypes, self.lanes)
        results = self.em.value(
            f"call {struct} @{self._lanes_function(name, formula, dtypes)}({self.type} {self.name})"
        )
        parts = [self.em.value(f"extractvalue {struct} {results}, {k}") for k in range(len(dtypes))]
        return [self._new(part, dtype) for part, dtype in zip(parts, dtypes, strict=True)]

    def _lanes_function(self, name: str, formula: Callable[[Any], State], dtypes: Sequence[DType]) -> str:
        """Return the name of the module's function that evaluates ``formula`` for each lane."""
        em, lanes = self.em, self.lanes
        own = f"{name}_{element(self.dtype)}_{lanes}"
        if own in em.definitions:
            return own
        self._define(name, formula)
        inner = Emitter(em.target)
        x = Emitted(inner, "%x", self.dtype, lanes)
        kinds = [vector(dtype, lanes) for dtype in dtypes]
        wide = x if self.dtype is float64 else x.convert("fpext", float64)
        columns = ["poison"] * len(kinds)
        for lane in range(lanes):
            one = wide.name if lanes == 1 else inner.value(f"extractelement {wide.type} {wide.name}, i32 {lane}")
            results = inner.value(f"call {_STRUCT} @{name}(double {one})")
            for k, (part, kind) in enumerate(zip(dtypes, kinds, strict=True)):
                value = Emitted(inner, inner.value(f"extractvalue {_STRUCT} {results}, {k}"), _WIDE[k], 1)
                if part is not value.dtype:
                    value = value.convert("fptrunc" if part.is_float else "trunc", part)
                if lanes == 1:
                    columns[k] = value.name
                else:
                    placed = f"insertelement {kind} {columns[k]}, {element(part)} {value.name}, i32 {lane}"
                    columns[k] = inner.value(placed)
        struct, result = _struct(dtypes, lanes), "poison"
        for k, (column, kind) in enumerate(zip(columns, kinds, strict=True)):
            result = inner.value(f"insertvalue {struct} {result}, {kind} {column}, {k}")
        inner.effect(f"ret {struct} {result}")
        em.declarations |= inner.declarations
        head = f"define internal {struct} @{own}({x.type} %x) noinline cold nounwind {{"
        em.definitions[own] = "\n".join([head, "entry:", *inner.lines, "}"])
        return own

    def _define(self, name: str, formula: Callable[[Any], State]) -> None:
        """Define the module's function that evaluates ``formula`` for one float64."""
        em = self.em
        if name in em.definitions:
            return
        inner = Emitter(em.target)
        result = "poison"
        for k, part in enumerate(formula(Emitted(inner, "%x", float64, 1))):
            result = inner.value(f"insertvalue {_STRUCT} {result}, {part.type} {part.name}, {k}")
        inner.effect(f"ret {_STRUCT} {result}")
        body = "\n".join(inner.lines)
        em.declarations |= inner.declarations
        em.definitions[name] = f"define internal {_STRUCT} @{name}(double %x) noinline nounwind {{\nentry:\n{body}\n}}"


def _struct(dtypes: Sequence[DType], lanes: int) -> str:
    return "{ " + ", ".join(vector(dtype, lanes) for dtype in dtypes) + " }"


def overload_suffix(dtype: DType, lanes: int) -> str:
    """Return the suffix of a type in the name of an intrinsic."""
    scalar = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}.get(element(dtype), element(dtype))
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def emit(em: Emitter, op: ScalarOp, args: list[str], arg_dtypes: list[DType], dtype: DType, lanes: int) -> str:
    """Emit ``op`` on operands of ``lanes`` lanes; returns the operand that holds the result, of dtype ``dtype``."""
    values = [Emitted(em, name, d, lanes) for name, d in zip(args, arg_dtypes, strict=True)]
    return cast(Emitted, table.result(op, values, dtype)).name


@record
class Lanes:
    """An operand without its type, of ``lanes`` lanes (1: a scalar)."""

    operand: str
    lanes: int
    is_literal: bool = False


def register_dtype(dtype: DType) -> DType:
    """Return the dtype that represents ``dtype`` in registers: for bfloat16 that of its bits."""
    return uint16 if dtype is bfloat16 else dtype


def constant(value: bool | int | float, dtype: DType) -> Lanes:
    if dtype is bfloat16:
        value = int(rounded(value, bfloat16).view(np.uint16))
    return Lanes(literal(value, register_dtype(dtype)), 1, is_literal=True)


def widen(em: Emitter, value: Lanes, dtype: DType, lanes: int) -> str:
    """Return the value as an operand of ``lanes`` lanes."""
    if value.lanes == lanes:
        return value.operand
    if value.lanes != 1:
        raise VerifierError(f"A value of {value.lanes} lanes is used where {lanes} lanes are.")
    if value.is_literal:
        return f"splat ({element(register_dtype(dtype))} {value.operand})"
    return em.broadcast(value.operand, register_dtype(dtype), lanes)


def apply(em: Emitter, op: ScalarOp, operands: Sequence[str], dtypes: Sequence[DType], dtype: DType, lanes: int) -> str:
    """Return a scalar operation in every lane."""
    own = [
        _bitcast(em, x, uint16, bfloat16, lanes) if d is bfloat16 else x for x, d in zip(operands, dtypes, strict=True)
    ]
    result: str = emit(em, op, own, list(dtypes), dtype, lanes)
    return _bitcast(em, result, bfloat16, uint16, lanes) if dtype is bfloat16 else result


def _bitcast(em: Emitter, operand: str, source: DType, destination: DType, lanes: int) -> str:
    return em.value(f"bitcast {vector(source, lanes)} {operand} to {vector(destination, lanes)}")
