"""Bessel functions of the first and second kind, modified and spherical ones, and Airy's function, under PyTorch's
names.

Errors are about 1e-15 times the size of the oscillation. Derivatives: "NIST Digital Library of Mathematical Functions",
10.6.2, 10.29.2, 10.51.2 and 9.2.1.
"""

from __future__ import annotations

from runnel.core.dispatch import apply
from runnel.ops.arguments import Array, Operand
from runnel.ops.elementwise.arithmetic import add, divide, multiply, negative, sign, subtract
from runnel.ops.elementwise.comparison import equal, where
from runnel.ops.elementwise.rows import Unary, family_of_floats, function_of_floats, partials
from runnel.ops.promotion import unary_float
from runnel.special.formulas import VERSION, airy, bessel, cylinder

# Functions that derivatives in rows above their own call.
bessel_j1: Unary
bessel_y1: Unary
i1: Unary
i1e: Unary
modified_bessel_k1: Unary
scaled_modified_bessel_k1: Unary


def _over(out: Array, x: Array) -> Array:
    """Return out / x for an odd function with derivative 1 at 0, and ½ at 0."""
    is_zero = equal(x, 0)
    return where(is_zero, 0.5, divide(out, where(is_zero, 1, x)))


_, bessel_j0 = function_of_floats(
    "bessel_j0", cylinder.j0, 200, lambda g, out, x: multiply(g, negative(bessel_j1(x))),
    "Return the Bessel function of the first kind J₀(x).", version=VERSION,
)  # fmt: skip
_, bessel_j1 = function_of_floats(
    "bessel_j1", cylinder.j1, 200, lambda g, out, x: multiply(g, subtract(bessel_j0(x), _over(out, x))),
    "Return the Bessel function of the first kind J₁(x).", version=VERSION,
)  # fmt: skip
_, bessel_y0 = function_of_floats(
    "bessel_y0", cylinder.y0, 250, lambda g, out, x: multiply(g, negative(bessel_y1(x))),
    "Return the Bessel function of the second kind Y₀(x): -∞ at 0, NaN below 0.", version=VERSION,
)  # fmt: skip
_, bessel_y1 = function_of_floats(
    "bessel_y1", cylinder.y1, 250, lambda g, out, x: multiply(g, subtract(bessel_y0(x), divide(out, x))),
    "Return the Bessel function of the second kind Y₁(x): -∞ at 0, NaN below 0.", version=VERSION,
)  # fmt: skip
_, i0 = function_of_floats(
    "i0", bessel.i0, 120, lambda g, out, x: multiply(g, i1(x)),
    "Return the modified Bessel function of the first kind I₀(x).", version=VERSION,
)  # fmt: skip
_, i0e = function_of_floats(
    "i0e", bessel.i0e, 100, lambda g, out, x: multiply(g, subtract(i1e(x), multiply(sign(x), out))),
    "Return e^-|x| · I₀(x).", version=VERSION,
)  # fmt: skip
_, i1 = function_of_floats(
    "i1", bessel.i1, 120, lambda g, out, x: multiply(g, subtract(i0(x), _over(out, x))),
    "Return the modified Bessel function of the first kind I₁(x).", version=VERSION,
)  # fmt: skip
_, i1e = function_of_floats(
    "i1e", bessel.i1e, 100,
    lambda g, out, x: multiply(g, subtract(i0e(x), add(_over(out, x), multiply(sign(x), out)))),
    "Return e^-|x| · I₁(x).", version=VERSION,
)  # fmt: skip
_, modified_bessel_k0 = function_of_floats(
    "modified_bessel_k0", cylinder.k0, 200, lambda g, out, x: multiply(g, negative(modified_bessel_k1(x))),
    "Return the modified Bessel function of the second kind K₀(x): ∞ at 0, NaN below 0.", version=VERSION,
)  # fmt: skip
_, modified_bessel_k1 = function_of_floats(
    "modified_bessel_k1", cylinder.k1, 200,
    lambda g, out, x: multiply(g, negative(add(modified_bessel_k0(x), divide(out, x)))),
    "Return the modified Bessel function of the second kind K₁(x): ∞ at 0, NaN below 0.", version=VERSION,
)  # fmt: skip
_, scaled_modified_bessel_k0 = function_of_floats(
    "scaled_modified_bessel_k0", cylinder.k0e, 200,
    lambda g, out, x: multiply(g, subtract(out, scaled_modified_bessel_k1(x))),
    "Return eˣ · K₀(x): ∞ at 0, NaN below 0.", version=VERSION,
)  # fmt: skip
_, scaled_modified_bessel_k1 = function_of_floats(
    "scaled_modified_bessel_k1", cylinder.k1e, 200,
    lambda g, out, x: multiply(g, subtract(subtract(out, scaled_modified_bessel_k0(x)), divide(out, x))),
    "Return eˣ · K₁(x): ∞ at 0, NaN below 0.", version=VERSION,
)  # fmt: skip


spherical_p = family_of_floats("spherical_bessel", "x, *, n", "Return jₙ(x) / xⁿ.", bessel.spherical, 150, VERSION)
partials(spherical_p, lambda g, out, x, *, n: multiply(g, multiply(negative(x), apply(spherical_p, x, n=n + 1))))


def spherical_bessel_j0(x: Operand) -> Array:
    """Return the spherical Bessel function j₀(x) = sin x / x, and 1 at 0."""
    return unary_float(spherical_p, x, n=0)


airy_p = family_of_floats("airy", "x, *, order", "Return Ai(x), or its derivative.", airy.airy, 350, VERSION)


def airy_ai(x: Operand) -> Array:
    """Return Airy's function Ai(x), the solution of y″ = x·y that decays for large x."""
    return unary_float(airy_p, x, order=0)


def _airy_slope(g: Array, out: Array, x: Array, *, order: int) -> Array:
    return multiply(g, multiply(x, airy_ai(x)) if order else apply(airy_p, x, order=1))


partials(airy_p, _airy_slope)
