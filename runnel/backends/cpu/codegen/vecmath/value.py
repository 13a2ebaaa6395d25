"""Values with operators: formulas written as formulas emit LLVM text. Below every file of ``vecmath`` and ``scalars``.

A :class:`Value` is an operand of an :class:`Emitter` together with its dtype and lanes. A Python
number beside a Value is a constant of the Value's dtype. Every operator is one LLVM instruction, rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from runnel.backends.cpu.codegen.text import Emitter, element, vector
from runnel.core.dtypes import DType, bool_, by_name, float32, float64, int32, int64, uint32, uint64
from runnel.core.errors import VerifierError

Number = bool | int | float
_PREDICATES: Final = {"lt": ("olt", "lt"), "le": ("ole", "le"), "gt": ("ogt", "gt"), "ge": ("oge", "ge"),
                      "eq": ("oeq", "eq"), "ne": ("une", "ne"), "uno": ("uno", "")}  # fmt: skip


class Value:
    """An operand of ``lanes`` lanes; ``name`` is an SSA name or a constant as LLVM spells it."""

    __slots__ = ("dtype", "em", "lanes", "name")

    def __init__(self, em: Emitter, name: str, dtype: DType, lanes: int) -> None:
        self.em: Final = em
        self.name: Final = name
        self.dtype: Final = dtype
        self.lanes: Final = lanes

    @property
    def type(self) -> str:
        return vector(self.dtype, self.lanes)

    @property
    def is_number(self) -> bool:
        """Whether this is a constant other than NaN."""
        if self.name.startswith("%"):
            return False
        nan = self.constant(math.nan).name if self.dtype.is_float else ""
        return self.name != nan

    def is_constant(self, number: Number) -> bool:
        """Whether this is the constant ``number``, to the sign of zero."""
        return self.name == self.constant(number).name

    def constant(self, number: Number) -> Value:
        """A constant with this value's dtype and lanes."""
        return Value(self.em, self.em.constant(number, self.dtype, self.lanes), self.dtype, self.lanes)

    def _lift(self, other: Value | Number) -> Value:
        if not isinstance(other, Value):
            return self.constant(other)
        if other.dtype is not self.dtype or other.lanes != self.lanes:
            raise VerifierError(f"[codegen] operands of {self.type} and {other.type} cannot meet in one instruction.")
        return other

    def _made(self, name: str, dtype: DType | None = None) -> Value:
        return Value(self.em, name, dtype or self.dtype, self.lanes)

    def binary(self, instruction: str, other: Value | Number) -> Value:
        """``instruction self, other``: any LLVM instruction of two equal operand types."""
        return self._made(self.em.value(f"{instruction} {self.type} {self.name}, {self._lift(other).name}"))

    def _arithmetic(self, name: str, other: Value | Number) -> Value:
        return self.binary(f"f{name}" if self.dtype.is_float else name, other)

    def __add__(self, other: Value | Number) -> Value:
        return self._arithmetic("add", other)

    def __radd__(self, other: Number) -> Value:
        return self.constant(other) + self

    def __sub__(self, other: Value | Number) -> Value:
        return self._arithmetic("sub", other)

    def __rsub__(self, other: Number) -> Value:
        return self.constant(other) - self

    def __mul__(self, other: Value | Number) -> Value:
        return self._arithmetic("mul", other)

    def __rmul__(self, other: Number) -> Value:
        return self.constant(other) * self

    def __truediv__(self, other: Value | Number) -> Value:
        return self.binary("fdiv", other)

    def __rtruediv__(self, other: Number) -> Value:
        return self.constant(other) / self

    def __neg__(self) -> Value:
        if self.dtype.is_float:
            return self._made(self.em.value(f"fneg {self.type} {self.name}"))
        return 0 - self

    def __and__(self, other: Value | Number) -> Value:
        return self.binary("and", other)

    def __or__(self, other: Value | Number) -> Value:
        return self.binary("or", other)

    def __xor__(self, other: Value | Number) -> Value:
        return self.binary("xor", other)

    def __invert__(self) -> Value:
        return self.binary("xor", True if self.dtype is bool_ else -1)

    def __lshift__(self, other: Value | Number) -> Value:
        return self.binary("shl", other)

    def __rshift__(self, other: Value | Number) -> Value:
        return self.binary("ashr" if self.dtype.kind == "int" else "lshr", other)

    def compare(self, how: str, other: Value | Number) -> Value:
        """``how``: lt le gt ge eq ne (false on NaN, but ne is true), or uno: either is NaN."""
        ordered, integer = _PREDICATES[how]
        if self.dtype.is_float:
            predicate = f"fcmp {ordered}"
        elif how in ("eq", "ne"):
            predicate = f"icmp {integer}"
        else:
            predicate = f"icmp {'s' if self.dtype.kind == 'int' else 'u'}{integer}"
        return self._made(self.binary(predicate, other).name, bool_)

    def __lt__(self, other: Value | Number) -> Value:
        return self.compare("lt", other)

    def __le__(self, other: Value | Number) -> Value:
        return self.compare("le", other)

    def __gt__(self, other: Value | Number) -> Value:
        return self.compare("gt", other)

    def __ge__(self, other: Value | Number) -> Value:
        return self.compare("ge", other)

    def eq(self, other: Value | Number) -> Value:
        return self.compare("eq", other)

    def ne(self, other: Value | Number) -> Value:
        return self.compare("ne", other)

    def is_nan(self) -> Value:
        return self.compare("uno", self)

    def convert(self, instruction: str, dtype: DType) -> Value:
        """``instruction self to dtype``: sitofp, fpext, zext, bitcast…"""
        to = vector(dtype, self.lanes)
        return self._made(self.em.value(f"{instruction} {self.type} {self.name} to {to}"), dtype)

    def reinterpret(self, dtype: DType) -> Value:
        """The same bits as another dtype of the same size."""
        if element(dtype) == element(self.dtype):
            return self._made(self.name, dtype)
        return self.convert("bitcast", dtype)

    def bits(self) -> Value:
        """The bits as an unsigned integer."""
        return self.reinterpret(by_name(f"uint{self.dtype.itemsize * 8}"))

    def intrinsic(self, name: str, *others: Value | Number) -> Value:
        """``llvm.name`` of this value and others of its type."""
        values = (self, *map(self._lift, others))
        overload = f"llvm.{name}.{overload_suffix(self.dtype, self.lanes)}"
        return self._made(self.em.intrinsic(overload, self.type, *((self.type, v.name) for v in values)))

    def fma(self, factor: Value | Number, addend: Value | Number) -> Value:
        """self·factor + addend, rounded once."""
        return self.intrinsic("fma", factor, addend)

    def __abs__(self) -> Value:
        return self.intrinsic("fabs")

    def with_sign_of(self, other: Value) -> Value:
        return self.intrinsic("copysign", other)

    def at_most(self, bound: Value | Number) -> Value:
        """min(self, bound) for a bound that is not NaN; NaN stays NaN. One vminps."""
        limit = self._lift(bound)
        return choose(limit < self, limit, self)

    def at_least(self, bound: Value | Number) -> Value:
        """max(self, bound) for a bound that is not NaN; NaN stays NaN. One vmaxps."""
        limit = self._lift(bound)
        return choose(limit > self, limit, self)

    def polynomial(self, coefficients: Sequence[float]) -> Value:
        """Σ c[k]·self^k by Horner's rule in fused steps; needs two coefficients at least."""
        *rest, last = coefficients
        result = self.constant(last)
        for c in reversed(rest):
            result = result.fma(self, c)
        return result

    def split_polynomial(self, coefficients: Sequence[float]) -> Value:
        """The same as two chains, of even and odd powers, that a processor runs side by side: for many coefficients."""
        square = self * self
        return square.polynomial(coefficients[1::2]).fma(self, square.polynomial(coefficients[::2]))

    def any(self) -> str:
        """An i1: whether any lane of this bool is set."""
        if self.lanes == 1:
            return self.name
        integer = f"i{self.lanes}"
        packed = self.em.value(f"bitcast {self.type} {self.name} to {integer}")
        return self.em.value(f"icmp ne {integer} {packed}, 0")


def overload_suffix(dtype: DType, lanes: int) -> str:
    """How LLVM spells a type inside the name of an intrinsic."""
    scalar = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}.get(element(dtype), element(dtype))
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def choose(condition: Value, yes: Value | Number, no: Value | Number) -> Value:
    """yes where condition, else no; one of the two is a Value."""
    if isinstance(yes, Value):
        pattern = yes
    elif isinstance(no, Value):
        pattern = no
    else:
        raise VerifierError("[codegen] choose needs a value on one side at least.")
    a, b = pattern._lift(yes), pattern._lift(no)
    em = condition.em
    name = em.value(f"select {condition.type} {condition.name}, {a.type} {a.name}, {b.type} {b.name}")
    return Value(em, name, a.dtype, a.lanes)


class Format:
    """The layout of an IEEE binary format: float32 or float64."""

    __slots__ = ("bias", "bits", "int", "mantissa", "sign", "uint")

    def __init__(self, mantissa: int, bias: int, signed: DType, unsigned: DType) -> None:
        self.mantissa: Final = mantissa
        self.bias: Final = bias
        self.int: Final = signed
        self.uint: Final = unsigned
        self.bits: Final = 32 if unsigned is uint32 else 64
        self.sign: Final = 1 << (self.bits - 1)

    @property
    def smallest_normal(self) -> float:
        return math.ldexp(1.0, 1 - self.bias)


FORMATS: Final = {float32: Format(23, 127, int32, uint32), float64: Format(52, 1023, int64, uint64)}
