"""Hurwitz' zeta function."""

from __future__ import annotations

from runnel.core.dispatch import apply
from runnel.loops.formulas.special.zeta import zeta as formula
from runnel.ops.arguments import Array, Operand
from runnel.ops.arithmetic import add, multiply, negative
from runnel.ops.family import partials
from runnel.ops.library.scalars import functions_of_floats
from runnel.ops.promotion import meet_as_floats

zeta_p = functions_of_floats("zeta", "x, q, *, order", "The derivative ``order`` by x of Σ (q + k)⁻ˣ.", formula, 600)


def zeta(x: Operand, q: Operand) -> Array:
    """Hurwitz' zeta function Σ (q + k)⁻ˣ over k ≥ 0, for x > 1: ∞ at x = 1 and at q = 0, -1, …, NaN below x = 1, and
    for q < 0 where x is no integer. ζ(x, 1) is Riemann's. Gradients flow to both (by x for q > 0)."""
    s, a = meet_as_floats(zeta_p, x, q)
    return apply(zeta_p, s, a, order=0)


def _by_q(g: Array, out: Array, x: Array, q: Array, *, order: int) -> Array:
    """-x·ζ(x + 1, q) ("NIST Digital Library of Mathematical Functions", 25.11.17), differentiated by x."""
    above = add(x, 1)
    slope = multiply(negative(x), apply(zeta_p, above, q, order=order))
    if order:
        slope = add(slope, multiply(apply(zeta_p, above, q, order=order - 1), -order))
    return multiply(g, slope)


partials(zeta_p, lambda g, out, x, q, *, order: multiply(g, apply(zeta_p, x, q, order=order + 1)), _by_q)
