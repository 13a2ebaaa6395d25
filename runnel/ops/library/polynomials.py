"""Orthogonal polynomials under PyTorch's names.

The degree is a number or a tensor of integers (floats are cut), which broadcasts with x: 0 for degrees below 0, NaN for
those above 2²⁴. Degrees have no gradient.
"""

from __future__ import annotations

from runnel.core.dispatch import apply
from runnel.loops.formulas.special.orthogonal import polynomial
from runnel.ops.arguments import Array, Operand
from runnel.ops.arithmetic import multiply
from runnel.ops.family import partials
from runnel.ops.library.scalars import functions_of_floats
from runnel.ops.promotion import meet_as_floats

polynomial_p = functions_of_floats(
    "polynomial", "x, n, *, kind, order", "The derivative ``order`` of an orthogonal polynomial.", polynomial, 100
)
partials(
    polynomial_p,
    lambda g, out, x, n, *, kind, order: multiply(g, apply(polynomial_p, x, n, kind=kind, order=order + 1)),
    None,
)


def _of(kind: str, x: Operand, n: Operand) -> Array:
    value, degree = meet_as_floats(polynomial_p, x, n)
    return apply(polynomial_p, value, degree, kind=kind, order=0)


def chebyshev_polynomial_t(x: Operand, n: Operand) -> Array:
    """Chebyshev's polynomial of the first kind Tₙ(x) = cos(n·arccos x)."""
    return _of("chebyshev_t", x, n)


def chebyshev_polynomial_u(x: Operand, n: Operand) -> Array:
    """Chebyshev's polynomial of the second kind Uₙ."""
    return _of("chebyshev_u", x, n)


def chebyshev_polynomial_v(x: Operand, n: Operand) -> Array:
    """Chebyshev's polynomial of the third kind Vₙ = Uₙ - Uₙ₋₁."""
    return _of("chebyshev_v", x, n)


def chebyshev_polynomial_w(x: Operand, n: Operand) -> Array:
    """Chebyshev's polynomial of the fourth kind Wₙ = Uₙ + Uₙ₋₁."""
    return _of("chebyshev_w", x, n)


def shifted_chebyshev_polynomial_t(x: Operand, n: Operand) -> Array:
    """Tₙ(2x - 1)."""
    return _of("shifted_chebyshev_t", x, n)


def shifted_chebyshev_polynomial_u(x: Operand, n: Operand) -> Array:
    """Uₙ(2x - 1)."""
    return _of("shifted_chebyshev_u", x, n)


def shifted_chebyshev_polynomial_v(x: Operand, n: Operand) -> Array:
    """Vₙ(2x - 1)."""
    return _of("shifted_chebyshev_v", x, n)


def shifted_chebyshev_polynomial_w(x: Operand, n: Operand) -> Array:
    """Wₙ(2x - 1)."""
    return _of("shifted_chebyshev_w", x, n)


def hermite_polynomial_h(x: Operand, n: Operand) -> Array:
    """Hermite's polynomial Hₙ, of the weight e^(-x²)."""
    return _of("hermite_h", x, n)


def hermite_polynomial_he(x: Operand, n: Operand) -> Array:
    """Hermite's polynomial Heₙ, of the weight e^(-x²/2)."""
    return _of("hermite_he", x, n)


def laguerre_polynomial_l(x: Operand, n: Operand) -> Array:
    """Laguerre's polynomial Lₙ."""
    return _of("laguerre_l", x, n)


def legendre_polynomial_p(x: Operand, n: Operand) -> Array:
    """Legendre's polynomial Pₙ."""
    return _of("legendre_p", x, n)
