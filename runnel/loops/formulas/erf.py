"""The error function.

Below 1, erf x = x + x·S(x²). From 1 on, erf x = 1 - e^(x·L(x)): the subtrahend is small, so its rounding error hardly
matters. S and L are minimax fits (Remez exchange in 45 digits) of erf(x)/x - 1, relative, and of log(erfc x)/x with
weight x·erfc(x)/erf(x); float64 takes L in t = (x - 3.5)/2.5, which keeps its coefficients small.
"""

from __future__ import annotations

from typing import Final

from runnel.core.dtypes import float32, float64
from runnel.loops.formulas.exp import exp_bounded
from runnel.loops.formulas.value import Value, choose

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
_SATURATED: Final = {float32: 4.0, float64: 6.0}  # beyond, erf rounds to ±1


def erf(x: Value) -> Value:
    """The error function, 2/√π·∫₀ˣ e^(-t²) dt. Measured error: at most 0.96 ULP in float32, 1.14 in float64."""
    a = abs(x).at_most(_SATURATED[x.dtype])
    z = x * x
    small = x.fma(z.split_polynomial(_S[x.dtype]), x)
    if x.dtype is float32:
        exponent = a * a.split_polynomial(_L[float32])
    else:
        exponent = a * a.fma(0.4, -1.4).polynomial(_L[float64])
    large = 1.0 - exp_bounded(exponent)
    return choose(a < 1.0, small, large.with_sign_of(x))
