"""Hurwitz' ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, and its derivatives by s.

A sum of terms up to a = q + N, and the formula of Euler and Maclaurin from there on ("NIST Digital Library of
Mathematical Functions", 25.11.5 and its proof; Cephes' ``zeta`` does the same):
a⁻ˢ·(a/(s - 1) + ½ + Σ B₂ⱼ/(2j)!·s·(s + 1)·…·(s + 2j - 2)·a¹⁻²ʲ). Derivatives by s come from truncated power series,
whose coefficients are computed instead of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from runnel.loops.formulas.gamma import BERNOULLI
from runnel.loops.formulas.log import log
from runnel.loops.formulas.power import power
from runnel.loops.formulas.series import in_float64
from runnel.loops.formulas.value import State, Value, choose

_WEIGHTS: Final = [float(b / math.factorial(2 * j)) for j, b in enumerate(BERNOULLI, 1)]
_SMALL: Final = 2.0**-56
_INFINITY: Final = float("inf")
Series = Sequence[Any]  # coefficients of the powers of a small change of s


def _product(x: Series, y: Series) -> list[Any]:
    return [sum((x[i] * y[k - i] for i in range(1, k + 1)), x[0] * y[k]) for k in range(len(x))]


def _power_of(a: Value, s: Value, order: int) -> list[Any]:
    """a⁻ˢ."""
    terms = [power(a, -s)]
    if order:
        logarithm = -log(a)
        for k in range(1, order + 1):
            terms.append(terms[-1] * logarithm * (1.0 / k))
    return terms


def _of_positive(s: Value, q: Value, order: int) -> Value:
    """Return the coefficient ``order``, for q > 0 and s > 1."""
    end = s * 0.8 + 10.0

    def adds(state: State) -> Any:
        a, is_done = state[0], state[1]
        return (a < end) & is_done.eq(0.0)

    def further(state: State) -> State:
        a, is_done, *total = state
        terms = _power_of(a, s, order)
        goes_on = adds(state)
        summed = [choose(goes_on, x + t, x) for x, t in zip(total, terms, strict=True)]
        negligible = abs(terms[-1]) * a <= abs(summed[-1]) * _SMALL
        if order:
            negligible = negligible & (a > 2.0)  # at 1 the logarithm is 0
        return [
            choose(goes_on & ~negligible, a + 1.0, a), choose(goes_on & negligible, 1.0, is_done), *summed,
        ]  # fmt: skip

    start = [q, q.constant(0.0), *(q.constant(0.0) for _ in range(order + 1))]
    a, is_done, *total = q.while_any(start, adds, further)
    inverse = 1.0 / a
    zeros = [0.0] * (order - 1)
    geometric = [1.0 / (s - 1.0)]
    for _ in range(order):
        geometric.append(-geometric[-1] / (s - 1.0))
    tail: list[Any] = [a * g for g in geometric]
    tail[0] = tail[0] + 0.5
    term: list[Any] = [s * inverse, inverse, *zeros] if order else [s * inverse]
    for j, weight in enumerate(_WEIGHTS, 1):
        tail = [x + t * weight if isinstance(t, Value) else x for x, t in zip(tail, term, strict=True)]
        for step in (2.0 * j - 1.0, 2.0 * j):
            term = _product(term, [(s + step) * inverse, inverse, *zeros] if order else [(s + step) * inverse])
    rest = _product(_power_of(a, s, order), tail)[order]
    return (total[order] + choose(is_done.eq(0.0) & (a < _INFINITY), rest, 0.0)) * float(math.factorial(order))


def zeta(order: int) -> Callable[[Value, Value], Value]:
    """Return the derivative ``order`` by s of ζ(s, q): ∞ at s = 1 and at q = 0, -1, …; NaN for s < 1. Below q = 0 it is
    real for integers s alone, ζ(s, f) + (-1)ˢ·(ζ(s, 1 - f) - ζ(s, 1 - q)) with f the fraction of q; NaN for other s,
    and for derivatives by s."""

    @in_float64
    def rule(s: Value, q: Value) -> Value:
        order_above = choose(s > 1.0, s, 2.0)
        positive = _of_positive(order_above, choose(q > 0.0, q, 1.0), order)
        is_negative = q < 0.0

        def below() -> State:
            t, x = choose(is_negative, order_above, 2.0), choose(is_negative, q, -0.5)
            fraction = x - x.intrinsic("floor")
            f = choose(fraction > 0.0, fraction, 0.5)
            rest = _of_positive(t, 1.0 - f, 0) - _of_positive(t, 1.0 - x, 0)
            half = t * 0.5
            value = _of_positive(t, f, 0) + choose(half.intrinsic("floor").eq(half), rest, -rest)
            return [choose(t.intrinsic("floor").eq(t), value, float("nan"))]

        if order:
            value = choose(is_negative, float("nan"), positive)
        else:
            (negative,) = is_negative.rarely([positive], below)
            value = choose(is_negative, negative, positive)
        pole = (q <= 0.0) & q.intrinsic("floor").eq(q)
        value = choose(pole, _INFINITY if not order else choose(q.eq(0.0), q.constant(_INFINITY), float("nan")), value)
        value = choose(s.eq(1.0), -_INFINITY if order % 2 else _INFINITY, choose(s < 1.0, float("nan"), value))
        return choose(s.is_nan() | (q.is_nan() & s.ne(1.0)), float("nan"), value)

    return rule
