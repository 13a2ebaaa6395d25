"""The modified Bessel functions I₀ and I₁, e^-|x| times them, and the spherical Bessel functions jₙ(x)/xⁿ.

I₀ and I₁ are sums of Chebyshev polynomials (C. Clenshaw, "Chebyshev series for mathematical functions", 1962),
interpolated in 40 digits: up to 8 of e⁻ˣI₀(x) and e⁻ˣI₁(x)/x in x/4 - 1, above of √x times them in 16/x - 1.

The functions jₙ(x)/xⁿ are even and regular, and their derivatives are -x·jₙ₊₁(x)/xⁿ⁺¹. Below n + 2 they are computed
by the power series ("NIST Digital Library of Mathematical Functions", 10.53.1); above, from sin x/x and cos x by the
recurrence 10.51.1, which is stable there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from runnel.loops.formulas.exp import exp
from runnel.loops.formulas.series import chebyshev, in_float64, is_negative
from runnel.loops.formulas.trig import cos, sin
from runnel.loops.formulas.value import Value, choose

_I0_NEAR: Final = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071,
    -0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357, -0.0005763755745385824,
    0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05, -4.4167383584587505e-06,
    1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08,
    2.6598237246823866e-09, -5.189795601635263e-10, 9.675809035373237e-11, -1.726826291441556e-11,
    2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14, -1.1685332877993451e-14,
    1.715391285555133e-15, -2.431279846547955e-16, 3.3307945188222384e-17, -4.4153416464793395e-18,
)  # fmt: skip
_I0_FAR: Final = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06, 2.0489185894690638e-07,
    2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10, 1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12, 7.180124451383666e-13,
    3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14, -9.554846698828307e-15,
    3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16, -2.8276239805165836e-16,
    3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18, -7.233180487874754e-18,
)  # fmt: skip
_I1_NEAR: Final = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499, 0.024726449030626516,
    -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532, 0.0005122859561685758,
    -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05, 3.4702513081376785e-06,
    -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08, 9.381537386495773e-09,
    -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11, 1.1736186298890901e-11,
    -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14, 7.600684294735408e-15,
    -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17, 2.7779141127610464e-18,
)  # fmt: skip
_I1_FAR: Final = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
    2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17, 4.414348323071708e-18,
    7.517296310842105e-18,
)  # fmt: skip


def _far(a: Value, series: tuple[float, ...]) -> Value:
    b = a.at_least(8.0)
    return chebyshev(16.0 / b - 1.0, series) / b.intrinsic("sqrt")


def _scaled_0(a: Value) -> Value:
    return choose(a > 8.0, _far(a, _I0_FAR), chebyshev(a.at_most(8.0) * 0.25 - 1.0, _I0_NEAR))


def _scaled_1(a: Value) -> Value:
    return choose(a > 8.0, _far(a, _I1_FAR), a * chebyshev(a.at_most(8.0) * 0.25 - 1.0, _I1_NEAR))


def _grown(a: Value, scaled: Value) -> Value:
    """eᵃ·scaled, which overflows later than eᵃ."""
    root = exp(a * 0.5)
    return choose(a.eq(float("inf")), a, (scaled * root) * root)


@in_float64
def i0(x: Value) -> Value:
    """I₀(x)."""
    a = abs(x)
    return _grown(a, _scaled_0(a))


@in_float64
def i0e(x: Value) -> Value:
    """e^-|x|·I₀(x)."""
    return _scaled_0(abs(x))


@in_float64
def i1(x: Value) -> Value:
    """I₁(x)."""
    a = abs(x)
    return _odd(_grown(a, _scaled_1(a)), x)


@in_float64
def i1e(x: Value) -> Value:
    """e^-|x|·I₁(x)."""
    return _odd(_scaled_1(abs(x)), x)


def _odd(value: Value, x: Value) -> Value:
    """With the sign of ``x``. A select: LLVM would lower copysign in half precision to a call of a missing function."""
    return choose(is_negative(x), -value, value)


def _series(n: int) -> list[float]:
    """Coefficients of powers of x², until they add nothing at the end."""
    first = float(math.prod(range(1, 2 * n + 2, 2)))
    terms, largest = [1.0 / first], (n + 2.0) ** 2
    while abs(terms[-1]) * largest ** (len(terms) - 1) * first > 2.0**-60 or len(terms) < 2:
        k = len(terms)
        terms.append(-terms[-1] / (2 * k * (2 * n + 2 * k + 1)))
    return terms


def spherical(n: int) -> Callable[[Value], Value]:
    """jₙ(x)/xⁿ."""
    coefficients = _series(n)

    @in_float64
    def rule(x: Value) -> Value:
        end = n + 2.0
        a = abs(x)
        b, c = a.at_most(end), a.at_least(end)
        near, square = (b * b).polynomial(coefficients), c * c
        here = sin(c) / c
        after = (here - cos(c)) / square
        for k in range(1, n + 1):
            here, after = after, (after * (2.0 * k + 1.0) - here) / square
        return choose(a < end, near, choose(a.eq(float("inf")), 0.0, here))

    return rule
