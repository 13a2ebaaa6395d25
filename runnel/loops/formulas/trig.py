"""sin and cos, accurate for every argument.

x = n·π/2 + r, then a polynomial in r chosen by n mod 4: sin r = r + r³·S(r²), cos r = 1 - r²/2 + r⁴·C(r²), minimax
fits (Remez exchange in 45 digits, relative weights) of those remainders on |r| ≤ 1.015·π/4.

Up to a bound, x - n·π/2 is computed in three fused steps (Cody and Waite), the first of them exact. Beyond it, x is
multiplied by a window of the bits of 2/π, as integers (M. H. Payne and R. N. Hanek, "Radian reduction for
trigonometric functions", SIGNUM Newsletter 18, 1983): bits that only add whole turns are skipped. A branch takes the
slow path when a lane needs it, and only such lanes use its result, so lanes do not influence each other.
"""

from __future__ import annotations

from typing import Final

from runnel.core.dtypes import float32, float64, int64, uint32, uint64
from runnel.loops.formulas.value import FORMATS, Value, choose

_TWO_OVER_PI: Final = 0.6366197723675814
# π/2 as a sum of three numbers of the format
_HALF_PI: Final = {
    float32: tuple(map(float.fromhex, ("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50"))),
    float64: tuple(map(float.fromhex, ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110"))),
}
_BOUND: Final = {float32: 32768.0, float64: 1048576.0}
# The first 1248 bits of the binary fraction 2/π (computed with mpmath at 1400 bits)
_DIGITS: Final = (
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73e"
    "e88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b7"
    "4f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc20"
)
_LEADING: Final = 2  # zero words before the fraction: windows of small arguments begin there
_WORDS: Final = (0,) * _LEADING + tuple(int(_DIGITS[i : i + 8], 16) for i in range(0, len(_DIGITS), 8))
_LOW: Final = 0xFFFFFFFF
_FUNCTION: Final = "reduce_by_half_pi"
_DTYPES: Final = {float32: (uint32, float32), float64: (uint64, float64, float64)}  # of n, r and tail


class Quadrant:
    """x = n·π/2 + r + tail: ``n`` modulo 4 as an unsigned integer, ``tail`` (float64 only) what r cannot hold."""

    __slots__ = ("n", "r", "tail")

    def __init__(self, n: Value, r: Value, tail: Value | None) -> None:
        self.n: Final = n
        self.r: Final = r
        self.tail: Final = tail


def quadrant(x: Value) -> Quadrant:
    """Reduce x ≥ 0 (or NaN; infinity gives NaN)."""
    bound = _BOUND[x.dtype]
    quick = _parts(_by_subtraction(x))
    large = x >= bound

    def exact() -> list[Value]:
        reduced = choose(large, x, bound).lane_by_lane(_FUNCTION, _window64, _DTYPES[x.dtype])
        return [choose(large, a, b) for a, b in zip(reduced, quick, strict=True)]

    n, r, *tail = large.rarely(quick, exact)
    return Quadrant(n, r, tail[0] if tail else None)


def _parts(q: Quadrant) -> list[Value]:
    return [q.n, q.r] if q.tail is None else [q.n, q.r, q.tail]


def _by_subtraction(x: Value) -> Quadrant:
    """Reduce an x below the bound: x - n·(first part of π/2) is exact, and the other parts are corrections."""
    form = FORMATS[x.dtype]
    magic = 1.5 * 2.0**form.mantissa
    shifted = x.fma(_TWO_OVER_PI, magic)
    n = -(shifted - magic)
    first, second, third = _HALF_PI[x.dtype]
    exact = n.fma(first, x)
    if x.dtype is float32:
        return Quadrant(shifted.bits(), n.fma(third, n.fma(second, exact)), None)
    step = n * second
    r = exact + step
    # the error of r: the roundings of the sum (|step| may exceed |exact|) and of the product, and the third part
    step_in_r = r - exact
    lost = (exact - (r - step_in_r)) + (step - step_in_r)
    return Quadrant(shifted.bits(), r, lost + n.fma(third, n.fma(second, -step)))


def _window64(x: Value) -> list[Value]:
    """Return the parts by Payne and Hanek for a float64 at or above the bound; infinity and NaN give NaN. 53 bits of x
    are multiplied by 192 bits of 2/π; of the product modulo 4, 128 bits are computed."""
    bits = x.bits()
    mantissa = (bits & 0xFFFFFFFFFFFFF) | 0x10000000000000
    exponent = (bits >> 52) & 0x7FF
    exponent = choose(exponent.eq(0x7FF), 1075, exponent)  # infinity and NaN: any place in the table will do
    # x = mantissa·2^e, e = exponent - 1075. Bit i of 2/π adds mantissa·2^(e-i): whole turns unless i ≥ e - 1
    position = exponent + (32 * _LEADING - 1 - 1 - 1075)
    word, shift = position >> 5, position & 31
    raw = [(word + k).element_of("two_over_pi", _WORDS).convert("zext", uint64) for k in range(7)]
    w = [((((raw[k] << 32) | raw[k + 1]) << shift) >> 32) & _LOW for k in range(6)]
    low, high = mantissa & _LOW, mantissa >> 32
    lows, highs = [low * v for v in w], [high * v for v in w]
    # limbs of the product from place 2 (of 0 to 5) up; place p collects low·w[5-p] and high·w[6-p]
    carry = (lows[4] >> 32) + (highs[5] >> 32)
    limbs: list[Value] = []
    for place in range(2, 6):
        a, b = lows[5 - place], highs[6 - place]
        total = (a & _LOW) + (b & _LOW) + carry
        limbs.append(total & _LOW)
        carry = (total >> 32) + (a >> 32) + (b >> 32)
    return _parts(_from_limbs(x, limbs))


def _from_limbs(x: Value, limbs: list[Value]) -> Quadrant:
    """Return a 128-bit fixed-point number of quadrants, 126 bits after the point, lowest limb first, to n
    and r + tail."""
    head = (limbs[3] << 32) | limbs[2]
    n = (head + (1 << 61)) >> 62  # the nearest quadrant
    top = (head - (n << 62)).reinterpret(int64) >> 32
    pieces = ((top.convert("sitofp", float64), 2.0**-30), *((v, s) for v, s in _scaled(limbs)))
    a, b, c, d = (value * scale for value, scale in pieces)
    s = a + b
    below = (b - (s - a)) + (c + d)
    fraction = s + below
    rest = below - (fraction - s)
    first, second, _ = _HALF_PI[float64]
    product = fraction * first
    error = fraction.fma(first, -product) + fraction.fma(second, rest * first)
    r = product + error
    invalid = x - x  # NaN for infinity and NaN, else 0
    return Quadrant(n, r + invalid, error - (r - product))


def _scaled(limbs: list[Value]) -> list[tuple[Value, float]]:
    """Return the three lower limbs as float64 with the weights of their last bits."""
    return [(limbs[k].convert("uitofp", float64), 2.0 ** (-62 - 32 * (2 - k))) for k in (2, 1, 0)]


_S: Final = {
    float32: (-0.1666666716337204, 0.008333329111337662, -0.00019839193555526435, 2.7169951408723136e-06),
    float64: (
        -0.16666666666666624, 0.008333333333320325, -0.0001984126982811872, 2.7557313100734916e-06,
        -2.5050664828131618e-08, 1.5891351364810966e-10,
    ),
}  # fmt: skip
_C: Final = {
    float32: (0.0416666679084301, -0.0013888883404433727, 2.47993284574477e-05, -2.7195116558687005e-07),
    float64: (
        0.04166666666666658, -0.0013888888888870495, 2.4801587287231818e-05, -2.7557313706128333e-07,
        2.087563591015524e-09, -1.1355146970965009e-11,
    ),
}  # fmt: skip


def _sin_of_remainder(q: Quadrant) -> Value:
    """sin(r + tail) = r + r³·S + tail·cos r, with cos r as 1 - r²/2."""
    z = q.r * q.r
    cubic = q.r * z * z.polynomial(_S[q.r.dtype])
    if q.tail is None:
        return q.r + cubic
    return q.r + (cubic + z.fma(q.tail * -0.5, q.tail))


def _cos_of_remainder(q: Quadrant) -> Value:
    """cos(r + tail) = w + ((1 - w) - r²/2) + r⁴·C - r·tail with w = 1 - r²/2 rounded."""
    z = q.r * q.r
    quartic = z * z * z.polynomial(_C[q.r.dtype])
    half = z * 0.5
    w = 1.0 - half
    if q.tail is None:
        return w + (((1.0 - w) - half) + quartic)
    return w + (((1.0 - w) - half) + (quartic - q.r * q.tail))


def _turned(q: Quadrant, steps: int) -> Value:
    """sin of (n + steps)·π/2 + r."""
    form = FORMATS[q.r.dtype]
    turns = q.n + steps if steps else q.n
    value = choose((turns & 1).eq(0), _sin_of_remainder(q), _cos_of_remainder(q))
    flip = (turns & 2) << (form.bits - 2)
    return (value.bits() ^ flip).reinterpret(q.r.dtype)


def sin(x: Value) -> Value:
    """Return the sine of any float (radians); infinities give NaN. The argument's sign is applied at the end.

    Measured error: at most 1.45 ULP in float32, 0.75 in float64.
    """
    form = FORMATS[x.dtype]
    value = _turned(quadrant(abs(x)), 0)
    return (value.bits() ^ (x.bits() & form.sign)).reinterpret(x.dtype)


def cos(x: Value) -> Value:
    """Return the cosine of any float (radians); infinities give NaN.

    Measured error: at most 1.44 ULP in float32, 0.74 in float64.
    """
    return _turned(quadrant(abs(x)), 1)
