"""exp, expm1, the logistic sigmoid, the hyperbolic tangent, and the error function.

exp(x) = 2ⁿ·eʳ with n = rint(x/ln 2) and r = x - n·ln 2 in two fused steps (W. J. Cody and W. Waite, "Software Manual
for the Elementary Functions", 1980); eʳ = 1 + r + r²·P(r). P is a minimax fit (Remez exchange in 45 digits) of (eʳ - 1
- r)/r² on ±ln 2/2 with weight |r|, rounded to the format afterwards. 2ⁿ is applied as two factors of half the
exponent, so overflow and subnormal results arise in the multiplications, rounded once, on any machine.

Below 1, erf x = x + x·S(x²). From 1 on, erf x = 1 - e^(x·L(x)): the subtrahend is small, so its rounding error hardly
matters. S and L are minimax fits (Remez exchange in 45 digits) of erf(x)/x - 1, relative, and of log(erfc x)/x with
weight x·erfc(x)/erf(x); float64 takes L in t = (x - 3.5)/2.5, which keeps its coefficients small.
"""

from __future__ import annotations

from typing import Final

from runnel.core.dtypes import float32, float64
from runnel.loops.formulas.value import FORMATS, Value, choose

_LOG2_E: Final = 1.4426950408889634
# ln 2 as a head of few bits, so that n·head is exact, and the rest
LN2: Final = {float32: (0.693145751953125, 1.428606765330187e-06), float64: (0.6931471805598903, 5.497923018708371e-14)}
_P: Final = {
    float32: (0.5, 0.16666540503501892, 0.04166627675294876, 0.008366843685507774, 0.0013946903636679053),
    float64: (
        0.5, 0.16666666666666677, 0.041666666666666706, 0.008333333333321246, 0.0013888888888866132,
        0.00019841269887219826, 2.480158736196505e-05, 2.755724300332377e-06, 2.7557241546351697e-07,
        2.5109490455393117e-08, 2.0924820232622052e-09,
    ),
}  # fmt: skip
_DOMAIN: Final = {float32: (-104.0, 89.0), float64: (-746.0, 710.0)}  # beyond, the result is 0 or infinity
_EXPM1_FLOOR: Final = {float32: -18.0, float64: -40.0}  # below, the result is -1
_TINY: Final = {float32: 2.0**-25, float64: 2.0**-54}  # below, x itself is the correctly rounded expm1


class Reduced:
    """x = n·ln 2 + r; ``integer`` holds n + 2·bias in its low bits, ``r`` the remainder."""

    __slots__ = ("integer", "r")

    def __init__(self, x: Value) -> None:
        form = FORMATS[x.dtype]
        # adding 1.5·2^mantissa rounds to an integer and leaves it in the low bits; 2·bias saves two additions below
        magic = 1.5 * 2.0**form.mantissa + 2 * form.bias
        shifted = x.fma(_LOG2_E, magic)
        n = shifted - magic
        head, tail = LN2[x.dtype]
        self.integer: Final = shifted.bits()
        self.r: Final = n.fma(-tail, n.fma(-head, x))

    def power_of_two(self) -> Value:
        """Return 2ⁿ, for n within the normal exponents."""
        form = FORMATS[self.r.dtype]
        return ((self.integer - form.bias) << form.mantissa).reinterpret(self.r.dtype)

    def scale(self, p: Value) -> Value:
        """p·2ⁿ for p near 1: exact but for one rounding where it overflows or becomes subnormal."""
        form = FORMATS[self.r.dtype]
        half = self.integer >> 1
        rest = self.integer - half
        first = (half << form.mantissa).reinterpret(self.r.dtype)
        second = (rest << form.mantissa).reinterpret(self.r.dtype)
        return p * first * second


def exp_of_sum(x: Value, tail: Value | None = None) -> Value:
    """e^(x + tail) for x within the domain and a tail much smaller than 1."""
    reduced = Reduced(x)
    return reduced.scale(_poly(reduced.r if tail is None else reduced.r + tail))


def exp_bounded(x: Value) -> Value:
    """eˣ for x whose result is known to be normal: 2ⁿ is applied at once."""
    reduced = Reduced(x)
    return _poly(reduced.r) * reduced.power_of_two()


def _poly(r: Value) -> Value:
    """eʳ for |r| ≤ ln 2/2."""
    return r.polynomial((1.0, 1.0, *_P[r.dtype]))


def clamped(x: Value) -> Value:
    """x within exp's domain; NaN stays."""
    low, high = _DOMAIN[x.dtype]
    return x.at_least(low).at_most(high)


def exp(x: Value) -> Value:
    """eˣ. Subnormal results are rounded once; e^-inf = 0, e^inf = inf.

    Measured error: at most 0.89 ULP in float32, 0.82 in float64.
    """
    return exp_of_sum(clamped(x))


def _expm1_parts(x: Value) -> tuple[Value, Reduced]:
    """eʳ - 1 and the reduction of x."""
    reduced = Reduced(x)
    r = reduced.r
    return (r * r).fma(r.polynomial(_P[x.dtype]), r), reduced


def expm1_bounded(x: Value) -> Value:
    """eˣ - 1 for x from expm1's floor to 60: 2ⁿ·(eʳ - 1) + (2ⁿ - 1), the last difference exact where it matters."""
    q, reduced = _expm1_parts(x)
    s = reduced.power_of_two()
    return s.fma(q, s - 1.0)


def expm1(x: Value) -> Value:
    """eˣ - 1, without cancellation near 0. As :func:`expm1_bounded`, in halves so that 2ⁿ may reach the overflow.

    Measured error: at most 1.53 ULP in float32, 1.62 in float64.
    """
    low, high = _EXPM1_FLOOR[x.dtype], _DOMAIN[x.dtype][1]
    q, reduced = _expm1_parts(x.at_least(low).at_most(high))
    form = FORMATS[x.dtype]
    half = ((reduced.integer - (form.bias + 1)) << form.mantissa).reinterpret(x.dtype)  # 2^(n-1)
    return choose(abs(x) < _TINY[x.dtype], x, half.fma(q, half - 0.5) * 2.0)


def sigmoid(x: Value) -> Value:
    """Return 1/(1 + e^-x). Computing it from e^-|x| avoids overflow and keeps the digits of small results.

    Measured error: at most 2.25 ULP in float32, 2.09 in float64.
    """
    e = exp_of_sum((-abs(x)).at_least(_DOMAIN[x.dtype][0]))
    return choose(x < 0.0, e, 1.0) / (e + 1.0)


_TANH_SATURATED: Final = {float32: 10.0, float64: 22.0}  # beyond, tanh rounds to ±1


def tanh(x: Value) -> Value:
    """tanh |x| = t/(t + 2) with t = e^(2|x|) - 1, which is free of cancellation; the sign of x is restored.

    Measured error: at most 2.27 ULP in float32, 2.25 in float64.
    """
    t = expm1_bounded(abs(x).at_most(_TANH_SATURATED[x.dtype]) * 2.0)
    return (t / (t + 2.0)).with_sign_of(x)


_S: Final = {
    float32: (
        0.12837916612625122, -0.37612637877464294, 0.11283782124519348, -0.0268654003739357, 0.005220945458859205,
        -0.000848282827064395, 0.00011256945435889065, -9.641508768254425e-06,
    ),
    float64: (
        0.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.026866170645072896, 0.005223977624780871,
        -0.0008548326978742478, 0.00012055331036909689, -1.4925593507112162e-05, 1.646097282006387e-06,
        -1.6350025248302407e-07, 1.4657879967943953e-08, -1.1365666266903172e-09, 5.945261969216108e-11,
    ),
}  # fmt: skip
_L: Final = {
    float32: (
        -1.1284171342849731, -0.636383056640625, -0.10341901332139969, 0.02013537660241127, -0.0007554049952886999,
        -0.001148430397734046, 0.00046822818694636226, -9.648255945648998e-05, 1.0948931958409958e-05,
        -5.427349378805957e-07,
    ),
    float64: (
        -4.032124972042439, -2.309981868804563, -0.07635769146165779, 0.031212377273462568, -0.012543577088639575,
        0.004849832923868197, -0.0017631662488913956, 0.0005807410609536108, -0.00016031820057864745,
        2.708892152672533e-05, 1.3627386108175905e-05, 1.8162884159747626e-06, 1.3726274833393152e-05,
        -2.220369701500236e-05, -4.691504329201709e-05, -5.8224103354438516e-05, -3.967756229955214e-05,
        -1.5958014102146207e-05, -2.9440971990602562e-06,
    ),
}  # fmt: skip
_ERF_SATURATED: Final = {float32: 4.0, float64: 6.0}  # beyond, erf rounds to ±1


def erf(x: Value) -> Value:
    """Return the error function, 2/√π·∫₀ˣ e^(-t²) dt. Measured error: at most 0.96 ULP in float32, 1.14 in float64."""
    a = abs(x).at_most(_ERF_SATURATED[x.dtype])
    z = x * x
    small = x.fma(z.split_polynomial(_S[x.dtype]), x)
    if x.dtype is float32:
        exponent = a * a.split_polynomial(_L[float32])
    else:
        exponent = a * a.fma(0.4, -1.4).polynomial(_L[float64])
    large = 1.0 - exp_bounded(exponent)
    return choose(a < 1.0, small, large.with_sign_of(x))
