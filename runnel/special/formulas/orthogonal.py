"""Orthogonal polynomials, and their derivatives of any order, by their recurrences in the degree.

M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions": 22.7 has the recurrences, 22.5 and 22.8 the
derivatives. Derivatives of Chebyshev and Legendre polynomials are Gegenbauer polynomials C of a higher parameter,
derivatives of Laguerre polynomials are Laguerre polynomials, and derivatives of Hermite polynomials are Hermite
polynomials. V and W, of the third and fourth kind, are Uₙ ∓ Uₙ₋₁ (J. Mason, D. Handscomb, "Chebyshev polynomials",
2003, 1.17 and 1.18).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from runnel.loops.formulas.series import in_float64
from runnel.loops.formulas.value import State, Value, choose

_HIGHEST: Final = 2.0**24
Step = Callable[[Value, Value, Value, Value], Any]  # x, k, pₖ and pₖ₋₁ to pₖ₊₁


def _gegenbauer(parameter: float) -> Step:
    def step(x: Value, k: Value, here: Value, before: Value) -> Value:
        scaled = (k + parameter) * 2.0 * x * here - (k + (2.0 * parameter - 1.0)) * before
        return scaled / (k + 1.0)

    return step


def _chebyshev(x: Value, k: Value, here: Value, before: Value) -> Value:
    return (x + x) * here - before


def _laguerre(parameter: float) -> Step:
    def step(x: Value, k: Value, here: Value, before: Value) -> Value:
        return ((k + k + (1.0 + parameter) - x) * here - (k + parameter) * before) / (k + 1.0)

    return step


def _hermite(scale: float) -> Step:
    def step(x: Value, k: Value, here: Value, before: Value) -> Value:
        return (x * here - k * before) * scale

    return step


def _recurrence(x: Value, n: Value, first: Any, step: Step) -> Value:
    """Compute pₙ from p₀ = 1 and p₁ = ``first``; return 0 below degree 0."""
    one = x.constant(1.0)

    def goes_on(state: State) -> Any:
        return state[0] < n

    def further(state: State) -> State:
        k, here, before = state
        adds = goes_on(state)
        after = step(x, k, here, before)
        return [choose(adds, k + 1.0, k), choose(adds, after, here), choose(adds, here, before)]

    _, value, _ = x.while_any([one, first, one], goes_on, further)
    return choose(n < 0.0, 0.0, choose(n.eq(0.0), 1.0, value))


def _falling(n: Value, order: int) -> Value:
    """Return n·(n - 1)·…·(n - order + 1)."""
    result = n
    for k in range(1, order):
        result = result * (n - float(k))
    return result


def _ultraspherical(x: Value, n: Value, parameter: float) -> Value:
    return _recurrence(x, n, x * (2.0 * parameter), _gegenbauer(parameter))


def _first_kind(x: Value, n: Value, order: int) -> Value:
    if not order:
        return _recurrence(x, n, x, _chebyshev)
    return n * _ultraspherical(x, n - float(order), order) * float(2 ** (order - 1) * math.factorial(order - 1))


def _second_kind(x: Value, n: Value, order: int) -> Value:
    if not order:
        return _recurrence(x, n, x + x, _chebyshev)
    return _ultraspherical(x, n - float(order), order + 1.0) * float(2**order * math.factorial(order))


def _further_kind(sign: float) -> Callable[[Value, Value, int], Value]:
    """Return the rule of the third kind (sign -1) or the fourth kind (+1)."""

    def rule(x: Value, n: Value, order: int) -> Value:
        if not order:
            return _recurrence(x, n, x + x + sign, _chebyshev)
        return _second_kind(x, n, order) + _second_kind(x, n - 1.0, order) * sign

    return rule


def _shifted(rule: Callable[[Value, Value, int], Value]) -> Callable[[Value, Value, int], Value]:
    """Return the rule for the argument 2x - 1."""
    return lambda x, n, order: rule(x + x - 1.0, n, order) * float(2**order)


def _legendre(x: Value, n: Value, order: int) -> Value:
    odd = float(math.prod(range(1, 2 * order, 2)))
    return _ultraspherical(x, n - float(order), order + 0.5) * odd


def _physicists(x: Value, n: Value, order: int) -> Value:
    value = _recurrence(x, n - float(order), x + x, _hermite(2.0))
    return value * _falling(n, order) * float(2**order) if order else value


def _probabilists(x: Value, n: Value, order: int) -> Value:
    value = _recurrence(x, n - float(order), x, _hermite(1.0))
    return value * _falling(n, order) if order else value


def _of_laguerre(x: Value, n: Value, order: int) -> Value:
    return _recurrence(x, n - float(order), (1.0 + order) - x, _laguerre(float(order))) * (-1.0) ** order


KINDS: Final[dict[str, Callable[[Value, Value, int], Value]]] = {
    "chebyshev_t": _first_kind,
    "chebyshev_u": _second_kind,
    "chebyshev_v": _further_kind(-1.0),
    "chebyshev_w": _further_kind(1.0),
    "shifted_chebyshev_t": _shifted(_first_kind),
    "shifted_chebyshev_u": _shifted(_second_kind),
    "shifted_chebyshev_v": _shifted(_further_kind(-1.0)),
    "shifted_chebyshev_w": _shifted(_further_kind(1.0)),
    "hermite_h": _physicists,
    "hermite_he": _probabilists,
    "laguerre_l": _of_laguerre,
    "legendre_p": _legendre,
}


def polynomial(kind: str, order: int) -> Callable[[Value, Value], Value]:
    """Return the formula of derivative ``order`` of the polynomial of degree n, which is truncated to an integer.

    The value is 0 for degrees below 0 and degrees that are not finite, and NaN for degrees above 2²⁴."""

    @in_float64
    def rule(x: Value, n: Value) -> Value:
        degree = choose((n < float("inf")) & (n > -1.0), n.intrinsic("trunc"), -1.0)
        is_high = degree > _HIGHEST
        value = KINDS[kind](x, choose(is_high, 0.0, degree), order)
        value = choose(degree < float(order), 0.0, value)  # also of NaN and infinity
        return choose(is_high, float("nan"), value)

    return rule
