"""Orthogonal polynomials under PyTorch's names.

The degree n is a number or a tensor of integers (floats are truncated), which broadcasts with x. A polynomial is 0
for a degree below 0 and NaN for a degree above 2²⁴. The degree has no gradient.
"""

from __future__ import annotations

from collections.abc import Callable

from runnel.core.dispatch import apply
from runnel.ops.arguments import Array, Operand
from runnel.ops.elementwise.arithmetic import multiply
from runnel.ops.elementwise.rows import family_of_floats, named, partials
from runnel.ops.promotion import meet_as_floats
from runnel.special.formulas import VERSION
from runnel.special.formulas.orthogonal import polynomial

polynomial_p = family_of_floats(
    "polynomial", "x, n, *, kind, order", "Return the derivative `order` of an orthogonal polynomial.", polynomial, 100,
    VERSION,
)  # fmt: skip
partials(
    polynomial_p,
    lambda g, out, x, n, *, kind, order: multiply(g, apply(polynomial_p, x, n, kind=kind, order=order + 1)),
    None,
)


def _of_kind(kind: str, name: str, doc: str) -> Callable[[Operand, Operand], Array]:
    """Return the function of x and the degree n that computes the polynomials of ``kind``."""

    def function(x: Operand, n: Operand) -> Array:
        value, degree = meet_as_floats(polynomial_p, x, n)
        return apply(polynomial_p, value, degree, kind=kind, order=0)

    return named(function, name, f"Return the {doc}.")


chebyshev_polynomial_t = _of_kind(
    "chebyshev_t", "chebyshev_polynomial_t", "Chebyshev polynomial of the first kind Tₙ(x) = cos(n · arccos x)"
)
chebyshev_polynomial_u = _of_kind(
    "chebyshev_u", "chebyshev_polynomial_u", "Chebyshev polynomial of the second kind Uₙ(x)"
)
chebyshev_polynomial_v = _of_kind(
    "chebyshev_v", "chebyshev_polynomial_v", "Chebyshev polynomial of the third kind Vₙ = Uₙ - Uₙ₋₁"
)
chebyshev_polynomial_w = _of_kind(
    "chebyshev_w", "chebyshev_polynomial_w", "Chebyshev polynomial of the fourth kind Wₙ = Uₙ + Uₙ₋₁"
)
shifted_chebyshev_polynomial_t = _of_kind(
    "shifted_chebyshev_t", "shifted_chebyshev_polynomial_t", "shifted Chebyshev polynomial Tₙ(2x - 1)"
)
shifted_chebyshev_polynomial_u = _of_kind(
    "shifted_chebyshev_u", "shifted_chebyshev_polynomial_u", "shifted Chebyshev polynomial Uₙ(2x - 1)"
)
shifted_chebyshev_polynomial_v = _of_kind(
    "shifted_chebyshev_v", "shifted_chebyshev_polynomial_v", "shifted Chebyshev polynomial Vₙ(2x - 1)"
)
shifted_chebyshev_polynomial_w = _of_kind(
    "shifted_chebyshev_w", "shifted_chebyshev_polynomial_w", "shifted Chebyshev polynomial Wₙ(2x - 1)"
)
hermite_polynomial_h = _of_kind("hermite_h", "hermite_polynomial_h", "Hermite polynomial Hₙ(x), for the weight e^(-x²)")
hermite_polynomial_he = _of_kind(
    "hermite_he", "hermite_polynomial_he", "Hermite polynomial Heₙ(x), for the weight e^(-x²/2)"
)
laguerre_polynomial_l = _of_kind("laguerre_l", "laguerre_polynomial_l", "Laguerre polynomial Lₙ(x)")
legendre_polynomial_p = _of_kind("legendre_p", "legendre_polynomial_p", "Legendre polynomial Pₙ(x)")
