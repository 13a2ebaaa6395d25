"""Values with operators, in which formulas are written for every backend. Imported by every file of this folder.

A :class:`Value` has a dtype and some lanes. A Python number beside a Value is a constant of the Value's dtype. Every
operator is one instruction, rounded once. A backend derives a class that implements the instructions: the CPU emits
LLVM text (``backends.cpu.codegen.emitted``), the interpreter computes with NumPy (``loops.formulas.computed``).
Instructions have LLVM's names ("LLVM Language Reference Manual").
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

from runnel.core.dtypes import DType, bool_, by_name, float32, float64, int32, int64, uint32, uint64
from runnel.core.errors import VerifierError

Number = bool | int | float
State = Sequence[Any]  # Values that a loop changes
PREDICATES: Final = {"lt": ("olt", "lt"), "le": ("ole", "le"), "gt": ("ogt", "gt"), "ge": ("oge", "ge"),
                     "eq": ("oeq", "eq"), "ne": ("une", "ne"), "uno": ("uno", "")}  # fmt: skip


class Value(ABC):
    """A value of ``lanes`` lanes."""

    __slots__ = ("dtype", "lanes")

    def __init__(self, dtype: DType, lanes: int) -> None:
        self.dtype: Final = dtype
        self.lanes: Final = lanes

    # Implemented by a backend -----------------------------------------------------------------------------------------

    @abstractmethod
    def constant_of(self, number: Number, dtype: DType) -> Self:
        """Return a constant with this value's lanes."""

    @property
    @abstractmethod
    def is_number(self) -> bool:
        """Return whether this is known to be a constant other than NaN."""

    @abstractmethod
    def is_constant(self, number: Number) -> bool:
        """Return whether this is known to be the constant ``number``, to the sign of zero."""

    @abstractmethod
    def operation(self, instruction: str, other: Self, dtype: DType) -> Self:
        """Return ``instruction self, other`` with a result of ``dtype``, for any instruction of two operands of one
        type."""

    @abstractmethod
    def negated(self) -> Self:
        """Return a float with the other sign."""

    @abstractmethod
    def convert(self, instruction: str, dtype: DType) -> Self:
        """Return ``instruction self to dtype``, where the instruction is sitofp, fpext, zext, bitcast…"""

    @abstractmethod
    def reinterpret(self, dtype: DType) -> Self:
        """Return the same bits as another dtype of the same size."""

    @abstractmethod
    def function(self, name: str, others: Sequence[Self]) -> Self:
        """Return the function ``name`` (fma, sqrt, floor, ceil, trunc, rint, fabs, copysign) of this value
        and others."""

    @abstractmethod
    def selected(self, yes: Self, no: Self) -> Self:
        """Return ``yes`` where this bool holds, else ``no``."""

    @abstractmethod
    def while_any(self, state: State, condition: Callable[[State], Any], step: Callable[[State], State]) -> list[Any]:
        """Run ``while any lane of condition(state): state = step(state)``. A step leaves finished lanes unchanged."""

    @abstractmethod
    def rarely(self, usual: State, otherwise: Callable[[], State]) -> list[Any]:
        """Return ``otherwise()`` if this bool, which is rarely true, holds in any lane; else ``usual``."""

    @abstractmethod
    def lane_by_lane(self, name: str, formula: Callable[[Any], State], dtypes: Sequence[DType]) -> list[Any]:
        """Apply ``formula``, a function of one float64, to each lane of this float in a separate function: for long,
        rarely needed code. Its 64-bit results are converted to ``dtypes``."""

    @abstractmethod
    def element_of(self, name: str, table: Sequence[int]) -> Self:
        """Return the element at this position of a table of uint32."""

    # Defined by the above ---------------------------------------------------------------------------------------------

    def constant(self, number: Number) -> Self:
        """Return a constant with this value's dtype and lanes."""
        return self.constant_of(number, self.dtype)

    def lift(self, other: Self | Number) -> Self:
        """Return ``other`` as a value of this one's type."""
        if not isinstance(other, Value):
            return self.constant(other)
        if other.dtype is not self.dtype or other.lanes != self.lanes:
            raise VerifierError(
                f"[formulas] operands of {self.lanes} {self.dtype.name} and {other.lanes} {other.dtype.name} cannot "
                "meet in one instruction."
            )
        return other

    def binary(self, instruction: str, other: Self | Number) -> Self:
        """Return ``instruction self, other``, of this value's type."""
        return self.operation(instruction, self.lift(other), self.dtype)

    def _arithmetic(self, name: str, other: Self | Number) -> Self:
        return self.binary(f"f{name}" if self.dtype.is_float else name, other)

    def __add__(self, other: Self | Number) -> Self:
        return self._arithmetic("add", other)

    def __radd__(self, other: Number) -> Self:
        return self.constant(other) + self

    def __sub__(self, other: Self | Number) -> Self:
        return self._arithmetic("sub", other)

    def __rsub__(self, other: Number) -> Self:
        return self.constant(other) - self

    def __mul__(self, other: Self | Number) -> Self:
        return self._arithmetic("mul", other)

    def __rmul__(self, other: Number) -> Self:
        return self.constant(other) * self

    def __truediv__(self, other: Self | Number) -> Self:
        return self.binary("fdiv", other)

    def __rtruediv__(self, other: Number) -> Self:
        return self.constant(other) / self

    def __neg__(self) -> Self:
        return self.negated() if self.dtype.is_float else 0 - self

    def __and__(self, other: Self | Number) -> Self:
        return self.binary("and", other)

    def __or__(self, other: Self | Number) -> Self:
        return self.binary("or", other)

    def __xor__(self, other: Self | Number) -> Self:
        return self.binary("xor", other)

    def __invert__(self) -> Self:
        return self.binary("xor", True if self.dtype is bool_ else -1)

    def __lshift__(self, other: Self | Number) -> Self:
        return self.binary("shl", other)

    def __rshift__(self, other: Self | Number) -> Self:
        return self.binary("ashr" if self.dtype.kind == "int" else "lshr", other)

    def compare(self, how: str, other: Self | Number) -> Self:
        """Compare by ``how``: lt, le, gt, ge, eq or ne (on NaN only ne is true), or uno, which is true if either is
        NaN."""
        ordered, integer = PREDICATES[how]
        if self.dtype.is_float:
            predicate = f"fcmp {ordered}"
        elif how in ("eq", "ne"):
            predicate = f"icmp {integer}"
        else:
            predicate = f"icmp {'s' if self.dtype.kind == 'int' else 'u'}{integer}"
        return self.operation(predicate, self.lift(other), bool_)

    def __lt__(self, other: Self | Number) -> Self:
        return self.compare("lt", other)

    def __le__(self, other: Self | Number) -> Self:
        return self.compare("le", other)

    def __gt__(self, other: Self | Number) -> Self:
        return self.compare("gt", other)

    def __ge__(self, other: Self | Number) -> Self:
        return self.compare("ge", other)

    def eq(self, other: Self | Number) -> Self:
        return self.compare("eq", other)

    def ne(self, other: Self | Number) -> Self:
        return self.compare("ne", other)

    def is_nan(self) -> Self:
        return self.compare("uno", self)

    def bits(self) -> Self:
        """Return the bits as an unsigned integer."""
        return self.reinterpret(by_name(f"uint{self.dtype.itemsize * 8}"))

    def intrinsic(self, name: str, *others: Self | Number) -> Self:
        """Return the function ``name`` of this value and others of its type."""
        return self.function(name, [self.lift(x) for x in others])

    def fma(self, factor: Self | Number, addend: Self | Number) -> Self:
        """self·factor + addend, rounded once."""
        return self.intrinsic("fma", factor, addend)

    def __abs__(self) -> Self:
        return self.intrinsic("fabs")

    def with_sign_of(self, other: Self) -> Self:
        return self.intrinsic("copysign", other)

    def at_most(self, bound: Self | Number) -> Self:
        """min(self, bound) for a bound that is not NaN; NaN stays NaN. One vminps."""
        limit = self.lift(bound)
        return choose(limit < self, limit, self)

    def at_least(self, bound: Self | Number) -> Self:
        """max(self, bound) for a bound that is not NaN; NaN stays NaN. One vmaxps."""
        limit = self.lift(bound)
        return choose(limit > self, limit, self)

    def polynomial(self, coefficients: Sequence[float]) -> Self:
        """Σ c[k]·self^k by Horner's rule in fused steps; needs two coefficients at least."""
        *rest, last = coefficients
        result = self.constant(last)
        for c in reversed(rest):
            result = result.fma(self, c)
        return result

    def split_polynomial(self, coefficients: Sequence[float]) -> Self:
        """Return the same as two chains, of even and odd powers, that a processor runs side by side: for many
        coefficients."""
        square = self * self
        return square.polynomial(coefficients[1::2]).fma(self, square.polynomial(coefficients[::2]))


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """yes where condition, else no; one of the two is a Value."""
    pattern = yes if isinstance(yes, Value) else no
    if not isinstance(pattern, Value):
        raise VerifierError("[formulas] choose needs a value on one side at least.")
    return condition.selected(pattern.lift(yes), pattern.lift(no))


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
