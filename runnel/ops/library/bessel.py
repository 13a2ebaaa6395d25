"""Bessel functions of the first and second kind and their relatives, under PyTorch's names; gradients have all of them.

Errors are some 1e-15 times the size of the oscillation. At infinity they are 0.
"""

from __future__ import annotations

from runnel.core.dispatch import apply
from runnel.loops.formulas.special import airy, bessel, cylinder
from runnel.ops.arguments import Array, Operand
from runnel.ops.arithmetic import add, divide, multiply, negative, subtract
from runnel.ops.family import partials
from runnel.ops.library.scalars import function_of_floats, functions_of_floats
from runnel.ops.library.special import over
from runnel.ops.promotion import unary_float

j0_p = function_of_floats("bessel_j0", "x", "J₀(x).", cylinder.j0, 200)
j1_p = function_of_floats("bessel_j1", "x", "J₁(x).", cylinder.j1, 200)
y0_p = function_of_floats("bessel_y0", "x", "Y₀(x).", cylinder.y0, 250)
y1_p = function_of_floats("bessel_y1", "x", "Y₁(x).", cylinder.y1, 250)
k0_p = function_of_floats("bessel_k0", "x", "K₀(x).", cylinder.k0, 200)
k0e_p = function_of_floats("bessel_k0e", "x", "eˣ·K₀(x).", cylinder.k0e, 200)
k1_p = function_of_floats("bessel_k1", "x", "K₁(x).", cylinder.k1, 200)
k1e_p = function_of_floats("bessel_k1e", "x", "eˣ·K₁(x).", cylinder.k1e, 200)
airy_p = functions_of_floats("airy", "x, *, order", "Ai(x), or its derivative.", airy.airy, 350)
spherical_p = functions_of_floats("spherical_bessel", "x, *, n", "jₙ(x)/xⁿ.", bessel.spherical, 150)


def bessel_j0(x: Operand) -> Array:
    """The Bessel function J₀."""
    return unary_float(j0_p, x)


def bessel_j1(x: Operand) -> Array:
    """The Bessel function J₁."""
    return unary_float(j1_p, x)


def bessel_y0(x: Operand) -> Array:
    """The Bessel function of the second kind Y₀: -∞ at 0, NaN below."""
    return unary_float(y0_p, x)


def bessel_y1(x: Operand) -> Array:
    """The Bessel function of the second kind Y₁: -∞ at 0, NaN below."""
    return unary_float(y1_p, x)


def modified_bessel_k0(x: Operand) -> Array:
    """The modified Bessel function of the second kind K₀: ∞ at 0, NaN below."""
    return unary_float(k0_p, x)


def modified_bessel_k1(x: Operand) -> Array:
    """The modified Bessel function of the second kind K₁: ∞ at 0, NaN below."""
    return unary_float(k1_p, x)


def scaled_modified_bessel_k0(x: Operand) -> Array:
    """eˣ·K₀(x)."""
    return unary_float(k0e_p, x)


def scaled_modified_bessel_k1(x: Operand) -> Array:
    """eˣ·K₁(x)."""
    return unary_float(k1e_p, x)


def spherical_bessel_j0(x: Operand) -> Array:
    """The spherical Bessel function j₀(x) = sin x / x, 1 at 0."""
    return unary_float(spherical_p, x, n=0)


def airy_ai(x: Operand) -> Array:
    """Airy's function Ai, the solution of y″ = x·y that falls off for large x."""
    return unary_float(airy_p, x, order=0)


# "NIST Digital Library of Mathematical Functions", 10.6.2, 10.29.2, 10.51.2 and 9.2.1

partials(j0_p, lambda g, out, x: multiply(g, negative(bessel_j1(x))))
partials(j1_p, lambda g, out, x: multiply(g, subtract(bessel_j0(x), over(out, x))))
partials(y0_p, lambda g, out, x: multiply(g, negative(bessel_y1(x))))
partials(y1_p, lambda g, out, x: multiply(g, subtract(bessel_y0(x), divide(out, x))))
partials(k0_p, lambda g, out, x: multiply(g, negative(modified_bessel_k1(x))))
partials(k1_p, lambda g, out, x: multiply(g, negative(add(modified_bessel_k0(x), divide(out, x)))))
partials(k0e_p, lambda g, out, x: multiply(g, subtract(out, scaled_modified_bessel_k1(x))))
partials(k1e_p, lambda g, out, x: multiply(g, subtract(subtract(out, scaled_modified_bessel_k0(x)), divide(out, x))))
partials(spherical_p, lambda g, out, x, *, n: multiply(g, multiply(negative(x), apply(spherical_p, x, n=n + 1))))


def _along_airy(g: Array, out: Array, x: Array, *, order: int) -> Array:
    return multiply(g, multiply(x, airy_ai(x)) if order else apply(airy_p, x, order=1))


partials(airy_p, _along_airy)
