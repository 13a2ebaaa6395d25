"""Values computed in NumPy: each instruction of a formula (``loops.formulas``) is an operation on all lanes.

The fused multiply-add is rounded once like the hardware's; the interpreter's Contract uses it as well. Method: Boldo
and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd" (IEEE
Transactions on Computers, 2008), with the error-free sum of Knuth and the error-free product of Dekker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final, Self

import numpy as np

from runnel.core.dtypes import DType, by_name, float64, uint32
from runnel.loops.formulas.value import Number, State, Value

# Outside this range of exponents Dekker's product over- or underflows, and exact rationals are used.
_SAFE_LOW: Final = 2.0**-400
_SAFE_HIGH: Final = 2.0**400
_SPLITTER: Final = float(2**27 + 1)  # Veltkamp's constant for 53 bits


def fused_multiply_add(a: Any, b: Any, c: Any) -> Any:
    """a·b + c with one rounding, element by element; float32 or float64 arrays, broadcast together."""
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        return _in_float64(a, b, c) if a.dtype == np.float64 else _in_float32(a, b, c)


def _in_float32(a: Any, b: Any, c: Any) -> Any:
    """Return a·b + c in float32. The product is exact in float64, so a sum rounded to odd there rounds correctly."""
    product = a.astype(np.float64) * b.astype(np.float64)
    return sum_to_odd(product, c.astype(np.float64)).astype(np.float32)


def _in_float64(a: Any, b: Any, c: Any) -> Any:
    plain = a * b + c
    high, low = _exact_product(a, b)
    t_high, t_low = _exact_sum(c, low)
    v_high, v_low = _exact_sum(high, t_high)
    fused = v_high + sum_to_odd(t_low, v_low)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    zero_product = (a == 0) | (b == 0)
    result = np.where(finite & ~zero_product, fused, plain)
    for at in np.argwhere(finite & ~zero_product & ~(_safe(a) & _safe(b) & (_safe(c) | (c == 0)))):
        where = tuple(at)
        result[where] = _rational(float(a[where]), float(b[where]), float(c[where]))
    return result


def _safe(x: Any) -> Any:
    size = np.abs(x)
    return (size > _SAFE_LOW) & (size < _SAFE_HIGH)


def _rational(a: float, b: float, c: float) -> float:
    """Return a·b + c by exact rational arithmetic: int / int rounds correctly in Python."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


def _exact_sum(x: Any, y: Any) -> tuple[Any, Any]:
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _exact_product(x: Any, y: Any) -> tuple[Any, Any]:
    product = x * y
    x_high, x_low = _split(x)
    y_high, y_low = _split(y)
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, error


def _split(x: Any) -> tuple[Any, Any]:
    scaled = _SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def sum_to_odd(x: Any, y: Any) -> Any:
    """Return x + y in float64. If the sum is inexact, return the adjacent number whose last bit is odd."""
    total, error = _exact_sum(x, y)
    even = (np.asarray(total).view(np.uint64) & np.uint64(1)) == 0
    inexact = np.isfinite(total) & (error != 0)
    return np.where(even & inexact, np.nextafter(total, np.copysign(np.inf, error)), total)


Array = np.ndarray[Any, Any]


def _truncated(a: Array, b: Array) -> Array:
    """Return the quotient of signed integers, rounded toward 0."""
    down = a // b
    quotient: Array = down + ((a - down * b != 0) & ((a < 0) != (b < 0)))
    return quotient


def _logical_shift(a: Array, b: Array) -> Array:
    unsigned = by_name(f"uint{a.dtype.itemsize * 8}").numpy
    shifted: Array = (a.view(unsigned) >> b.view(unsigned)).view(a.dtype)
    return shifted


_OPERATIONS: Final[dict[str, Callable[[Array, Array], Any]]] = {
    "fadd": np.add,
    "fsub": np.subtract,
    "fmul": np.multiply,
    "fdiv": np.divide,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "sdiv": _truncated,
    "udiv": np.floor_divide,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "ashr": np.right_shift,
    "lshr": _logical_shift,
    "fcmp olt": np.less,
    "fcmp ole": np.less_equal,
    "fcmp ogt": np.greater,
    "fcmp oge": np.greater_equal,
    "fcmp oeq": np.equal,
    "fcmp une": np.not_equal,
    "fcmp uno": lambda a, b: np.isnan(a) | np.isnan(b),
    "icmp eq": np.equal,
    "icmp ne": np.not_equal,
    "icmp slt": np.less,
    "icmp sle": np.less_equal,
    "icmp sgt": np.greater,
    "icmp sge": np.greater_equal,
    "icmp ult": np.less,
    "icmp ule": np.less_equal,
    "icmp ugt": np.greater,
    "icmp uge": np.greater_equal,
}

_FUNCTIONS: Final[dict[str, Callable[..., Array]]] = {
    "fma": fused_multiply_add,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "fabs": np.abs,
    "copysign": np.copysign,
}


class Computed(Value):
    """The lanes in ``array``."""

    __slots__ = ("array",)

    def __init__(self, array: Array, dtype: DType) -> None:
        super().__init__(dtype, len(array))
        self.array: Final = array

    is_number = False

    def is_constant(self, number: Number) -> bool:
        return False

    def constant_of(self, number: Number, dtype: DType) -> Self:
        if dtype.is_integer:  # modulo 2ⁿ
            bits = dtype.itemsize * 8
            number = np.array(int(number) % (1 << bits), f"u{dtype.itemsize}").view(dtype.numpy)[()]
        return type(self)(np.full(self.lanes, number, dtype.numpy), dtype)

    def operation(self, instruction: str, other: Self, dtype: DType) -> Self:
        return type(self)(_OPERATIONS[instruction](self.array, other.array), dtype)

    def negated(self) -> Self:
        return type(self)(-self.array, self.dtype)

    def convert(self, instruction: str, dtype: DType) -> Self:
        """NumPy's conversion between the dtypes; values converted from floats to integers must be in range."""
        if instruction == "bitcast":
            return self.reinterpret(dtype)
        return type(self)(self.array.astype(dtype.numpy), dtype)

    def reinterpret(self, dtype: DType) -> Self:
        return type(self)(self.array.view(dtype.numpy), dtype)

    def function(self, name: str, others: Sequence[Self]) -> Self:
        return type(self)(_FUNCTIONS[name](self.array, *(x.array for x in others)), self.dtype)

    def selected(self, yes: Self, no: Self) -> Self:
        return type(self)(np.where(self.array, yes.array, no.array), yes.dtype)

    def while_any(self, state: State, condition: Callable[[State], Any], step: Callable[[State], State]) -> list[Any]:
        while condition(state).array.any():
            state = step(state)
        return list(state)

    def rarely(self, usual: State, otherwise: Callable[[], State]) -> list[Any]:
        return list(otherwise() if self.array.any() else usual)

    def lane_by_lane(self, name: str, formula: Callable[[Any], State], dtypes: Sequence[DType]) -> list[Any]:
        wide = type(self)(self.array.astype(np.float64), float64)
        parts = zip(formula(wide), dtypes, strict=False)  # a float32 needs fewer of them
        return [x.convert("", dtype) for x, dtype in parts]

    def element_of(self, name: str, table: Sequence[int]) -> Self:
        return type(self)(np.array(table, np.uint32)[self.array], uint32)
