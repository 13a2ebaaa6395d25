"""log, log1p and log2.

x = 2ᵉ·m with m in [√½, √2) and f = m - 1, by integer arithmetic on the bits; log x = e·ln 2 + log(1 + f). In float32
log(1 + f) = f - f²/2 + f³·P(f). In float64, with s = f/(2 + f), log(1 + f) = f - (f²/2 - s·(f²/2 + s²·R(s²))), the
arrangement of K. C. Ng and others in fdlibm (Sun Microsystems, 1993), whose terms after f are small corrections. P and
R are minimax fits (Remez exchange in 45 digits): P of (log(1+f) - f + f²/2)/f³ with weight f³/log(1+f), R of
(2·atanh(s)/s - 2)/s² with weight s².
"""

from __future__ import annotations

from typing import Final

from runnel.core.dtypes import float32, float64
from runnel.loops.formulas.exp import LN2
from runnel.loops.formulas.value import FORMATS, Value, choose

_P: Final = (
    0.3333331346511841, -0.25000008940696716, 0.20002123713493347, -0.16668005287647247, 0.14219453930854797,
    -0.124053455889225, 0.11888696253299713, -0.11677484214305878, 0.06747694313526154,
)  # fmt: skip
_R: Final = (
    0.6666666666666735, 0.3999999999941108, 0.28571428743266286, 0.22222198475587715, 0.18183569760389048,
    0.1531390273799665, 0.1479751257177978,
)  # fmt: skip
_SQRT_HALF: Final = {float32: 0x3F3504F3, float64: 0x3FE6A09E667F3BCD}
# 1/ln 2 as head and tail
_INVERSE_LN2: Final = {
    float32: (1.4426950216293335, 1.925963033500011e-08),
    float64: (1.4426950408889634, 2.0355273740931033e-17),
}
_TINY: Final = {float32: 2.0**-25, float64: 2.0**-54}  # below, x itself is the correctly rounded log1p


class Decomposed:
    """x = 2^exponent · (1 + f) for finite x > 0; ``field`` is the exponent + ``offset``, as an unsigned integer."""

    __slots__ = ("exponent", "f", "field", "offset")

    def __init__(self, x: Value, subnormals: bool = True) -> None:
        form = FORMATS[x.dtype]
        self.offset: Final = form.bias + 1
        offset = float(self.offset)
        # an integer or-ed under the mantissa of 2^mantissa is a conversion to floating point
        magic = x.constant(2.0**form.mantissa)
        excess = x.constant(2.0**form.mantissa + offset)
        if subnormals:
            small = x < form.smallest_normal
            up = form.mantissa + 1
            excess = choose(small, x.constant(2.0**form.mantissa + offset + up), excess)
            x = choose(small, x * 2.0**up, x)
        base = self.offset << form.mantissa
        bits = x.bits()
        t = bits - (_SQRT_HALF[x.dtype] - base)
        self.field: Final = t >> form.mantissa
        m = (bits - ((self.field << form.mantissa) - base)).reinterpret(x.dtype)
        self.exponent: Final = (self.field | magic.bits()).reinterpret(x.dtype) - excess
        self.f: Final = m - 1.0

    def negative_power(self) -> Value:
        """Return 2^-exponent, or 0 if it would be subnormal."""
        form = FORMATS[self.f.dtype]
        signed = ((form.bias + self.offset) - self.field).reinterpret(form.int)
        return (choose(signed < 0, 0, signed) << form.mantissa).reinterpret(self.f.dtype)


def _log_of_product(exponent: Value, f: Value) -> Value:
    """exponent·ln 2 + log(1 + f), for f in [√½ - 1, √2 - 1]; exactly f for tiny f and exponent 0."""
    head, tail = LN2[f.dtype]
    if f.dtype is float32:
        square = f * f
        rest = (square * f).fma(f.split_polynomial(_P), square * -0.5)
        return exponent.fma(head, f + exponent.fma(tail, rest))
    half_square, correction = _atanh_terms(f)
    return exponent.fma(head, f - (half_square - exponent.fma(tail, correction)))


def _atanh_terms(f: Value) -> tuple[Value, Value]:
    """f²/2 and s·(f²/2 + s²·R(s²))."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    return half_square, s * z.fma(z.split_polynomial(_R), half_square)


def _with_special_values(x: Value, result: Value) -> Value:
    """log's values where x is 0 (-inf), negative (NaN), +inf or NaN (itself); ``result`` elsewhere."""
    finite = choose(x < float("inf"), result, x)
    outside = choose(x.eq(0.0), x.constant(float("-inf")), x.constant(float("nan")))
    return choose(x <= 0.0, outside, finite)


def log(x: Value) -> Value:
    """Return the natural logarithm, subnormal arguments included.

    Measured error: at most 0.78 ULP in float32, 0.77 in float64.
    """
    parts = Decomposed(x)
    return _with_special_values(x, _log_of_product(parts.exponent, parts.f))


def log2(x: Value) -> Value:
    """Return the base-2 logarithm: exponent + log(1 + f)/ln 2 with 1/ln 2 in two parts; exact for powers of 2.

    Measured error: at most 1.54 ULP in float32, 1.45 in float64.
    """
    parts = Decomposed(x)
    y = _log_of_product(x.constant(0.0), parts.f)
    head, tail = _INVERSE_LN2[x.dtype]
    return _with_special_values(x, y.fma(head, y.fma(tail, parts.exponent)))


def log1p(x: Value) -> Value:
    """log(1 + x): u = 1 + x is decomposed, and its rounding error, scaled alike, is added to f.

    Measured error: at most 1.41 ULP in float32, 1.16 in float64.
    """
    u = x + 1.0
    lost = choose(x >= 1.0, 1.0 - (u - x), x - (u - 1.0))
    parts = Decomposed(u, subnormals=False)
    f = parts.f + lost * parts.negative_power()
    result = _with_special_values(u, _log_of_product(parts.exponent, f))
    return choose(abs(x) < _TINY[x.dtype], x, result)
