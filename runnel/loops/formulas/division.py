"""floor_divide and remainder, for floats and integers. No input traps, and the floats' remainder is exact.

Semantics are Python's: the quotient is rounded down, the remainder has the divisor's sign. An integer divided by zero
gives 0, and the smallest integer divided by -1 wraps. Where an operand is infinite, or the divisor 0, the quotient of
floats is floor(a/b), as in the Array API: infinity for infinity // 2, and -0 for 3 // -infinity.
"""

from __future__ import annotations

from runnel.core.dtypes import DType, float32, float64, int32, uint32
from runnel.loops.formulas.value import FORMATS, State, Value, choose


def remainder(a: Value, b: Value) -> Value:
    """a - b·floor(a/b), with the sign of b."""
    if a.dtype.is_integer:
        return _integer_divmod(a, b)[1]
    mod = _fmod(a, b)
    differs = ((b < 0.0) ^ (mod < 0.0)) & mod.ne(0.0)
    return choose(differs, mod + b, choose(mod.eq(0.0), mod.with_sign_of(b), mod))


def floor_divide(a: Value, b: Value) -> Value:
    """floor(a/b), computed as (a - remainder)/b so that no rounding of a/b leads to the wrong integer."""
    if a.dtype.is_integer:
        return _integer_divmod(a, b)[0]
    mod = _fmod(a, b)
    differs = ((b < 0.0) ^ (mod < 0.0)) & mod.ne(0.0)
    quotient = (a - mod) / b
    quotient = choose(differs, quotient - 1.0, quotient)
    down = quotient.intrinsic("floor")
    down = choose((quotient - down) > 0.5, down + 1.0, down)
    ratio = a / b
    is_exact = (abs(a) < float("inf")) & (abs(b) < float("inf")) & b.ne(0.0)
    return choose(is_exact, choose(quotient.eq(0.0), quotient.with_sign_of(ratio), down), ratio.intrinsic("floor"))


def _fmod(a: Value, b: Value) -> Value:
    """C's fmod, with the sign of a: exact multiples of |b|·2^k, k as large as possible, are subtracted from |a| until
    it is below |b|."""
    form = FORMATS[a.dtype]
    size, divisor = abs(a), abs(b)
    invalid = ~((size < float("inf")) & (divisor > 0.0))
    rest = choose(size < float("inf"), size, 0.0)
    unit = choose(divisor > 0.0, divisor, float("inf"))
    up = form.mantissa + 1
    small = unit < form.smallest_normal
    field = (choose(small, unit * 2.0**up, unit).bits() >> form.mantissa).reinterpret(form.int)
    exponent = choose(small, field - up, field)

    def step(state: State) -> State:
        (r,) = state
        distance = (r.bits() >> form.mantissa).reinterpret(form.int) - exponent - (form.mantissa - 1)
        k = choose(distance > 0, distance, 0).reinterpret(form.uint)
        half = k >> 1
        b_k = unit * _power_of_two(half, a.dtype) * _power_of_two(k - half, a.dtype)
        q = (r / b_k).intrinsic("trunc")
        left = (-q).fma(b_k, r)
        left = choose(left < 0.0, left + b_k, left)
        return [choose(r >= unit, left, r)]

    (mod,) = rest.while_any([rest], lambda state: state[0] >= unit, step)
    return choose(invalid, float("nan"), mod.with_sign_of(a))


def _power_of_two(k: Value, dtype: DType) -> Value:
    form = FORMATS[dtype]
    return ((k + form.bias) << form.mantissa).reinterpret(dtype)


def _integer_divmod(a: Value, b: Value) -> tuple[Value, Value]:
    """Quotient and remainder; divisors 0 and -1 are handled apart, because machines trap on them."""
    zero = b.eq(0)
    signed = a.dtype.kind == "int"
    aside = (zero | b.eq(-1)) if signed else zero
    safe = choose(aside, 1, b)
    quotient = _divide_down(a, safe)
    if signed:
        quotient = choose(b.eq(-1), 0 - a, quotient)
    quotient = choose(zero, 0, quotient)
    rest = a - quotient * b
    return quotient, choose(zero, 0, rest)


def _divide_down(a: Value, b: Value) -> Value:
    """floor(a/b) for b not 0 or -1. Up to 32 bits by floating-point division, whose quotient never crosses an integer:
    a/b is at least 1/b away from one, more than the rounding error when the format has more digits than a and b."""
    signed = a.dtype.kind == "int"
    if a.dtype.itemsize == 8:
        if not signed:
            return a.binary("udiv", b)
        quotient = a.binary("sdiv", b)
        rest = a - quotient * b
        return choose(rest.ne(0) & ((rest ^ b) < 0), quotient - 1, quotient)
    widen = "sitofp" if signed else "uitofp"
    wide = float64 if a.dtype.itemsize == 4 else float32
    ratio = (a.convert(widen, wide) / b.convert(widen, wide)).intrinsic("floor")
    word = int32 if signed else uint32
    whole = ratio.convert("fptosi" if signed else "fptoui", word)
    return whole.convert("trunc", a.dtype) if a.dtype.itemsize < 4 else whole
