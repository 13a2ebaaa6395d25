"""Conversions between dtypes: each rounds once, to nearest even; floats saturate to integers, with NaN giving 0.

float16 and bfloat16 are converted through float32 with instructions and integer operations only. bfloat16 instructions
are not used, because machines differ there (some flush subnormals), and no conversion calls a library function.
"""

from __future__ import annotations

from runnel.core.dtypes import DType, bfloat16, bool_, by_name, float16, float32, float64, int32, uint16, uint32
from runnel.loops.formulas.value import FORMATS, Value, choose

HALVES = (float16, bfloat16)


def cast(x: Value, to: DType) -> Value:
    """Return the value of x in dtype ``to``."""
    if x.dtype is to:
        return x
    if to is bool_:
        return _truth(x)
    if x.dtype is bool_:
        return _from_bool(x, to)
    if x.dtype.is_integer:
        return _resize(x, to) if to.is_integer else _from_integer(x, to)
    return _to_integer(x, to) if to.is_integer else _between_floats(x, to)


def bitcast(x: Value, to: DType) -> Value:
    """Return the bits of x as ``to``, of the same size. A bool is the byte 0 or 1, and any byte but 0 is true."""
    if x.dtype is to:
        return x
    if x.dtype is bool_:
        return x.convert("zext", to)
    return x.ne(0) if to is bool_ else x.reinterpret(to)


def widen(x: Value) -> Value:
    """float16 or bfloat16 to float32, exactly."""
    if x.dtype is float16:
        return x.convert("fpext", float32)
    return (x.bits().convert("zext", uint32) << 16).reinterpret(float32)


def narrow(x: Value, to: DType) -> Value:
    """float32 to float16 or bfloat16, to nearest even."""
    if to is float16:
        return x.convert("fptrunc", float16)
    bits = x.bits()
    rounded = bits + ((bits >> 16) & 1) + 0x7FFF
    quiet = bits | 0x400000
    return (choose(x.is_nan(), quiet, rounded) >> 16).convert("trunc", uint16).reinterpret(bfloat16)


def bits_of(dtype: DType) -> DType:
    """Return the unsigned integer of the same size."""
    return by_name(f"uint{dtype.itemsize * 8}")


def _truth(x: Value) -> Value:
    if x.dtype in HALVES:
        return (x.bits() & 0x7FFF).ne(0)
    return x.ne(0)


def _from_bool(x: Value, to: DType) -> Value:
    if to.is_integer:
        return x.convert("zext", to)
    one = int(to.numpy.type(1.0).view(bits_of(to).numpy))
    return choose(x, x.constant_of(one, bits_of(to)), 0).reinterpret(to)


def _resize(x: Value, to: DType) -> Value:
    if to.itemsize < x.dtype.itemsize:
        return x.convert("trunc", to)
    if to.itemsize == x.dtype.itemsize:
        return x.reinterpret(to)
    return x.convert("sext" if x.dtype.kind == "int" else "zext", to)


def _from_integer(x: Value, to: DType) -> Value:
    instruction = "sitofp" if x.dtype.kind == "int" else "uitofp"
    if to not in HALVES:
        return x.convert(instruction, to)
    # an integer that float32 cannot hold exactly is infinite in float16
    if to is float16 or x.dtype.itemsize <= 2:
        return narrow(x.convert(instruction, float32), to)
    if x.dtype.itemsize == 8:
        # 64 bits do not fit a float64: fold the low 11 into one sticky bit
        folded = (x & ~0x7FF) | choose((x & 0x7FF).ne(0), x.constant(0x800), 0)
        small = (x < 1 << 53) & (x > -(1 << 53)) if x.dtype.kind == "int" else x < 1 << 53
        x = choose(small, x, folded)
    return narrow(_round_to_odd(x.convert(instruction, float64)), to)


def _round_to_odd(x: Value) -> Value:
    """Round float64 to float32 so that a later rounding to fewer digits equals rounding x once: make inexact results
    odd (S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums", 2008)."""
    near = x.convert("fptrunc", float32)
    back = near.convert("fpext", float64)
    bits = near.bits()
    even = (bits & 1).eq(0)
    toward_zero = abs(back) > abs(x)
    odd = choose(toward_zero, bits - 1, bits + 1)
    inexact = (back < x) | (back > x)  # false for NaN
    return choose(inexact & even, odd, bits).reinterpret(float32)


def _between_floats(x: Value, to: DType) -> Value:
    if x.dtype in HALVES:
        wide = widen(x)
        if to is float32:
            return wide
        return wide.convert("fpext", float64) if to is float64 else narrow(wide, to)
    if x.dtype is float32:
        return x.convert("fpext", float64) if to is float64 else narrow(x, to)
    return x.convert("fptrunc", float32) if to is float32 else narrow(_round_to_odd(x), to)


def _to_integer(x: Value, to: DType) -> Value:
    if x.dtype in HALVES:
        x = widen(x)
    form = FORMATS[x.dtype]
    signed = to.kind == "int"
    bits = to.itemsize * 8
    low, limit = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    # the largest value of the format that is below the limit and an integer
    digits = form.mantissa + 1
    top = limit - 1 if limit.bit_length() - 1 <= digits else limit - (1 << (limit.bit_length() - 1 - digits))
    inside = choose(x.is_nan(), 0.0, x.at_least(float(low)).at_most(float(top)))
    if to.itemsize < 4:
        return inside.convert("fptosi", int32).convert("trunc", to)
    result = inside.convert("fptosi" if signed else "fptoui", to)
    return result if top == limit - 1 else choose(x >= float(limit), limit - 1, result)
