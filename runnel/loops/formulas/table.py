"""The table from scalar operations to their formulas: one row for each row of ``loops.scalar``.

A row says for which kinds of dtype the operation exists and how it is written with :class:`Value`. float16 and bfloat16
are computed in float32 and rounded once at the end; operations that only move bits work on their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from runnel.core.dtypes import DType, bool_, float32, float64, uint32, uint64
from runnel.core.errors import DTypeError
from runnel.core.records import record
from runnel.loops import scalar
from runnel.loops.formulas import casts, division, exp, log, power, trig
from runnel.loops.formulas.value import Value, choose
from runnel.loops.scalar import ScalarOp

_NUMBERS: Final = ("int", "uint", "float")
_ALL: Final = ("bool", *_NUMBERS)
_FLOATS: Final = ("float",)
_INTEGERS: Final = ("int", "uint")


@record
class Row:
    """How an operation is computed: ``rule(*args)`` for arguments whose dtypes have a kind in ``kinds``.

    ``on_bits``: the rule treats float16 and bfloat16 itself, instead of getting them as float32.
    """

    rule: Callable[..., Value]
    kinds: tuple[str, ...]
    on_bits: bool = False


def result(op: ScalarOp, args: Sequence[Value], dtype: DType) -> Value:
    """Return ``op`` applied to ``args``, as ``dtype``."""
    row = TABLE[op]
    if not supports(op, args[-1].dtype):
        raise DTypeError(f"[{op.name}] has no formula for arguments of {', '.join(x.dtype.name for x in args)}.")
    if op is scalar.cast or op is scalar.bitcast:
        return (casts.cast if op is scalar.cast else casts.bitcast)(args[0], dtype)
    if row.on_bits:
        return row.rule(*args)
    value = row.rule(*(casts.widen(v) if v.dtype in casts.HALVES else v for v in args))
    return casts.narrow(value, dtype) if dtype in casts.HALVES else value


def supports(op: ScalarOp, dtype: DType) -> bool:
    """Return whether ``op`` takes arguments of ``dtype`` (of a select: values to choose from)."""
    return dtype.kind in TABLE[op].kinds and (op is not scalar.mul_high or dtype is uint32)


def _add(a: Value, b: Value) -> Value:
    return a | b if a.dtype is bool_ else a + b


def _mul(a: Value, b: Value) -> Value:
    return a & b if a.dtype is bool_ else a * b


def _neg(a: Value) -> Value:
    if a.dtype in casts.HALVES:
        return (a.bits() ^ 0x8000).reinterpret(a.dtype)
    return -a


def _absolute(a: Value) -> Value:
    if a.dtype in casts.HALVES:
        return (a.bits() & 0x7FFF).reinterpret(a.dtype)
    if a.dtype.is_float:
        return abs(a)
    return choose(a < 0, 0 - a, a) if a.dtype.kind == "int" else a


def _maximum(a: Value, b: Value) -> Value:
    """NaN propagates, and -0 is less than +0 (IEEE 754-2019): a tie is evaluated in both orders of operands, and the
    sign is negative if it is in both. With a constant operand one comparison is enough: a NaN fails it and is
    returned, and so is a zero, which must lose its sign if the constant is +0."""
    if a.dtype is bool_:
        return a | b
    if not a.dtype.is_float:
        return choose(a > b, a, b)
    if a.is_number or b.is_number:
        number, other = (a, b) if a.is_number else (b, a)
        larger = other.at_least(number)
        return larger + 0.0 if number.is_constant(0.0) else larger
    ties = choose(a > b, a, b).bits() & choose(b > a, b, a).bits()
    return choose(a.compare("uno", b), a + b, ties.reinterpret(a.dtype))


def _minimum(a: Value, b: Value) -> Value:
    """Return the smaller number, like maximum. The sign of a tie is negative if either is negative."""
    if a.dtype is bool_:
        return a & b
    if not a.dtype.is_float:
        return choose(a < b, a, b)
    if (a.is_number or b.is_number) and not (a.is_constant(-0.0) or b.is_constant(-0.0)):
        return b.at_most(a) if a.is_number else a.at_most(b)
    ties = choose(a < b, a, b).bits() | choose(b < a, b, a).bits()
    return choose(a.compare("uno", b), a + b, ties.reinterpret(a.dtype))


def _sign(a: Value) -> Value:
    positive = a > 0
    if a.dtype.kind == "uint":
        return choose(positive, a.constant(1), 0)
    below = choose(a < 0, a.constant(-1), 0)
    result = choose(positive, 1, below)
    return choose(a.is_nan(), a, result) if a.dtype.is_float else result


def _fma(a: Value, b: Value, c: Value) -> Value:
    return a.fma(b, c) if a.dtype.is_float else a * b + c


def _rounding(name: str) -> Callable[[Value], Value]:
    return lambda a: a.intrinsic(name) if a.dtype.is_float else a


def _comparison(how: str) -> Callable[[Value, Value], Value]:
    return lambda a, b: a.compare(how, b)


def _never(a: Value) -> Value:
    return a.constant_of(False, bool_)


def _isnan(a: Value) -> Value:
    return a.is_nan() if a.dtype.is_float else _never(a)


def _isinf(a: Value) -> Value:
    return abs(a).eq(float("inf")) if a.dtype.is_float else _never(a)


def _in_range(a: Value, shift: Value) -> Value:
    unsigned = shift.bits() if shift.dtype.kind == "int" else shift
    bits: int = a.dtype.itemsize * 8
    return unsigned < bits


def _shift_left(a: Value, b: Value) -> Value:
    inside = _in_range(a, b)
    return choose(inside, a << choose(inside, b, 0), 0)


def _shift_right(a: Value, b: Value) -> Value:
    return a >> choose(_in_range(a, b), b, a.dtype.itemsize * 8 - 1)


def _mul_high(a: Value, b: Value) -> Value:
    return ((a.convert("zext", uint64) * b.convert("zext", uint64)) >> 32).convert("trunc", uint32)


def _select(condition: Value, a: Value, b: Value) -> Value:
    if a.dtype in casts.HALVES:
        return choose(condition, a.bits(), b.bits()).reinterpret(a.dtype)
    return choose(condition, a, b)


TABLE: Final[dict[ScalarOp, Row]] = {
    scalar.add: Row(_add, _ALL),
    scalar.sub: Row(lambda a, b: a - b, _NUMBERS),
    scalar.mul: Row(_mul, _ALL),
    scalar.div: Row(lambda a, b: a / b, _FLOATS),
    scalar.floor_divide: Row(division.floor_divide, _NUMBERS),
    scalar.remainder: Row(division.remainder, _NUMBERS),
    scalar.neg: Row(_neg, _NUMBERS, on_bits=True),
    scalar.abs_: Row(_absolute, _ALL, on_bits=True),
    scalar.maximum: Row(_maximum, _ALL),
    scalar.minimum: Row(_minimum, _ALL),
    scalar.sign: Row(_sign, _NUMBERS),
    scalar.sqrt: Row(lambda a: a.intrinsic("sqrt"), _FLOATS),
    scalar.fma: Row(_fma, _NUMBERS),
    scalar.floor: Row(_rounding("floor"), _NUMBERS),
    scalar.ceil: Row(_rounding("ceil"), _NUMBERS),
    scalar.trunc: Row(_rounding("trunc"), _NUMBERS),
    scalar.rint: Row(_rounding("rint"), _NUMBERS),
    scalar.exp: Row(exp.exp, _FLOATS),
    scalar.expm1: Row(exp.expm1, _FLOATS),
    scalar.log: Row(log.log, _FLOATS),
    scalar.log1p: Row(log.log1p, _FLOATS),
    scalar.log2: Row(log.log2, _FLOATS),
    scalar.tanh: Row(exp.tanh, _FLOATS),
    scalar.sigmoid: Row(exp.sigmoid, _FLOATS),
    scalar.erf: Row(exp.erf, _FLOATS),
    scalar.sin: Row(trig.sin, _FLOATS),
    scalar.cos: Row(trig.cos, _FLOATS),
    scalar.pow_: Row(power.power, _NUMBERS),
    scalar.lt: Row(_comparison("lt"), _ALL),
    scalar.le: Row(_comparison("le"), _ALL),
    scalar.gt: Row(_comparison("gt"), _ALL),
    scalar.ge: Row(_comparison("ge"), _ALL),
    scalar.eq: Row(_comparison("eq"), _ALL),
    scalar.ne: Row(_comparison("ne"), _ALL),
    scalar.isnan: Row(_isnan, _ALL),
    scalar.isinf: Row(_isinf, _ALL),
    scalar.and_: Row(lambda a, b: a & b, ("bool", *_INTEGERS)),
    scalar.or_: Row(lambda a, b: a | b, ("bool", *_INTEGERS)),
    scalar.xor: Row(lambda a, b: a ^ b, ("bool", *_INTEGERS)),
    scalar.not_: Row(lambda a: ~a, ("bool", *_INTEGERS)),
    scalar.shift_left: Row(_shift_left, _INTEGERS),
    scalar.shift_right: Row(_shift_right, _INTEGERS),
    scalar.mul_high: Row(_mul_high, ("uint",)),
    scalar.select: Row(_select, _ALL, on_bits=True),
    scalar.cast: Row(casts.cast, _ALL, on_bits=True),
    scalar.bitcast: Row(casts.bitcast, _ALL, on_bits=True),
}

# The largest error in units in the last place, slightly above the measured one; a test measures it
ULP_BOUNDS: Final[dict[ScalarOp, dict[DType, float]]] = {
    scalar.exp: {float32: 1.0, float64: 1.0},
    scalar.expm1: {float32: 1.75, float64: 1.75},
    scalar.log: {float32: 1.0, float64: 1.0},
    scalar.log1p: {float32: 1.5, float64: 1.5},
    scalar.log2: {float32: 2.0, float64: 2.0},
    scalar.tanh: {float32: 2.5, float64: 2.5},
    scalar.sigmoid: {float32: 2.5, float64: 2.5},
    scalar.erf: {float32: 1.5, float64: 1.5},
    scalar.sin: {float32: 1.5, float64: 1.0},
    scalar.cos: {float32: 1.5, float64: 1.0},
    scalar.pow_: {float32: 0.6, float64: 1.5},
    scalar.sqrt: {float32: 0.5, float64: 0.5},
}
