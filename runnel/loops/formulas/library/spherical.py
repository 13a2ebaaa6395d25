"""The spherical Bessel functions jₙ(x)/xⁿ, which are even and regular, and whose derivatives are -x·jₙ₊₁(x)/xⁿ⁺¹.

Below n + 2 the power series ("NIST Digital Library of Mathematical Functions", 10.53.1); above, from sin x/x and cos x
by the recurrence 10.51.1, which is stable there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from runnel.loops.formulas.library.series import in_float64
from runnel.loops.formulas.trig import cos, sin
from runnel.loops.formulas.value import Value, choose


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
