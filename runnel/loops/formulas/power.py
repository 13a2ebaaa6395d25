"""pow, with every special case of IEEE 754-2019 (section 9.2.1), and its integer form.

|x|^y = e^(y·log|x|). float32 computes that in float64 with shorter polynomials and rounds once at the end. float64
carries the logarithm and the product as a sum of two numbers (T. J. Dekker, "A floating-point technique for extending
the available precision", 1971): its relative error of 2^-64 or so keeps the error of e^p's argument below 2^-54.
"""

from __future__ import annotations

from typing import Final

from runnel.core.dtypes import float32, float64
from runnel.loops.formulas.exp import LN2, Reduced, clamped, exp_of_sum
from runnel.loops.formulas.log import Decomposed
from runnel.loops.formulas.value import FORMATS, State, Value, choose

# Minimax fits (Remez exchange in 45 digits): (2·atanh(s)/s - 2)/s² with weight s², to 2^-37;
# (eʳ - 1 - r)/r² with weight r², to 2^-39; ((atanh(s)/s - 1)/s² - 1/3)/s² with weight s², to 2^-67
_ATANH_SHORT: Final = (0.66666665641292, 0.40000336219069327, 0.2853723835423114, 0.23583568085879264)
_EXP_SHORT: Final = (
    0.49999999999504374, 0.16666666789472687, 0.04166666706332657, 0.008333280450760051, 0.0013888794980508297,
    0.00019909777483985815, 2.4888278746045105e-05,
)  # fmt: skip
_ATANH: Final = (
    0.19999999999999998, 0.14285714285717133, 0.11111111110044271, 0.09090909284074154, 0.07692288367448434,
    0.06667790700456519, 0.05844604353699419, 0.05936768399453618,
)  # fmt: skip
_THIRD: Final = (1 / 3, 1.850371707708594e-17)
_LN2_HEAD, _LN2_TAIL = LN2[float64]
_FLOAT32_LOGS: Final = (-110.0, 95.0)  # e^ these is 0 and infinity in float32


def power(x: Value, y: Value) -> Value:
    """xʸ. Measured error: at most 0.50 ULP in float32, 0.91 in float64."""
    if x.dtype.is_integer:
        return _integer_power(x, y)
    magnitude = _magnitude32(x, y) if x.dtype is float32 else _magnitude64(x, y)
    form = FORMATS[x.dtype]
    whole = y.intrinsic("trunc").eq(y)
    half = y * 0.5
    odd = whole & half.intrinsic("trunc").ne(half)
    sign = choose(odd, x.bits() & form.sign, 0)
    result = (magnitude.bits() ^ sign).reinterpret(x.dtype)
    invalid = (x < 0.0) & (x > float("-inf")) & ~whole
    result = choose(invalid, float("nan"), result)
    one = y.eq(0.0) | x.eq(1.0) | (abs(x).eq(1.0) & abs(y).eq(float("inf")))
    return choose(one, 1.0, result)


def _special_log(x: Value, result: Value) -> Value:
    """log's value at 0, infinity and NaN, for x without sign."""
    return choose(x.eq(0.0), float("-inf"), choose(x < float("inf"), result, x))


def _magnitude32(x: Value, y: Value) -> Value:
    size = abs(x).convert("fpext", float64)
    parts = Decomposed(size, subnormals=False)  # a subnormal float32 is a normal float64
    s = parts.f / (parts.f + 2.0)
    z = s * s
    log = parts.exponent.fma(_LN2_HEAD, s.fma(z.polynomial((2.0, *_ATANH_SHORT)), parts.exponent * _LN2_TAIL))
    low, high = _FLOAT32_LOGS
    product = y.convert("fpext", float64) * _special_log(size, log)
    reduced = Reduced(product.at_least(low).at_most(high))
    wide = reduced.r.polynomial((1.0, 1.0, *_EXP_SHORT)) * reduced.power_of_two()
    return wide.convert("fptrunc", float32)


def _magnitude64(x: Value, y: Value) -> Value:
    size = abs(x)
    head, tail = _log_in_two(size)
    head = _special_log(size, head)
    product = y * head
    below = y.fma(head, -product) + y * tail
    below = choose(abs(product) < 1000.0, below, 0.0)
    return exp_of_sum(clamped(product), below)


def _log_in_two(x: Value) -> tuple[Value, Value]:
    """log x as head + tail, by atanh's series in s = f/(2 + f) with the first two terms in two parts."""
    parts = Decomposed(x)
    f = parts.f
    d = f + 2.0
    d_tail = f - (d - 2.0)
    s = f / d
    s_tail = ((-s).fma(d, f) - s * d_tail) / d
    z = s * s
    z_tail = s.fma(s, -z) + s * s_tail * 2.0
    # t = 1/3 + z·(…), then u = z·t and v = s·u: atanh s = s + v
    higher = z * z.polynomial(_ATANH)
    t = higher + _THIRD[0]
    t_tail = (higher - (t - _THIRD[0])) + _THIRD[1]
    u, u_tail = _product_in_two(z, z_tail, t, t_tail)
    v, v_tail = _product_in_two(s, s_tail, u, u_tail)
    half = s + v
    half_tail = (v - (half - s)) + (s_tail + v_tail)
    whole = parts.exponent * _LN2_HEAD
    log = whole + half * 2.0
    log_tail = (half * 2.0 - (log - whole)) + half_tail.fma(2.0, parts.exponent * _LN2_TAIL)
    return log, log_tail


def _product_in_two(a: Value, a_tail: Value, b: Value, b_tail: Value) -> tuple[Value, Value]:
    p = a * b
    return p, a.fma(b, -p) + (a * b_tail + a_tail * b)


def _integer_power(x: Value, y: Value) -> Value:
    """Return x to the power y by repeated squaring, with wraparound. For a negative exponent, return the reciprocal
    rounded toward 0, and 0 for x = 0."""
    if x.dtype.kind == "int":
        odd = (y & 1).ne(0)
        base = choose(y < 0, choose(odd, x, x * x), x)  # a negative power is nonzero for x = 1 and -1 only
        unit = x.eq(1) | x.eq(-1)
        exponent = choose(y < 0, choose(unit, y.constant(1), 0), y)
    else:
        base, unit, exponent = x, None, y
    result = x.constant(1)

    def step(state: State) -> State:
        r, b, e = state
        return [choose((e & 1).ne(0), r * b, r), b * b, e.binary("lshr", 1)]

    power = result.while_any([result, base, exponent], lambda state: state[2].ne(0), step)[0]
    return power if unit is None else choose((y < 0) & ~unit, 0, power)
