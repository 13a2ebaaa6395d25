"""Eigenvalues and eigenvectors of general square matrices: complex numbers, by LAPACK.

Gradient: C. Boeddeker and others, "On the computation of complex-valued gradients with application to statistically
optimum beamforming", 2017. It is correct for functions that do not depend on the lengths and phases of eigenvectors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import complex_of
from runnel.core.tables import Op, abstract_eval, vjp
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast
from runnel.ops.creation_like import or_zeros
from runnel.ops.elementwise.arithmetic import add, divide, multiply, subtract
from runnel.ops.elementwise.comparison import equal, where
from runnel.ops.elementwise.complex_parts import complex_of_numpy, conj, real
from runnel.ops.linear_algebra.contraction import matmul
from runnel.ops.linear_algebra.factorizations import adjoint, host_op, require_matrices, rows_and_columns, solved
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.views import expand_dims


class Eig(NamedTuple):
    """Eigenvalues, and eigenvectors of length 1 as columns."""

    eigenvalues: Array
    eigenvectors: Array


def _eig(a: Any) -> tuple[Any, Any]:
    values, vectors = np.linalg.eig(a)
    dtype = complex_of_numpy(a.real.dtype)
    return values.astype(dtype), vectors.astype(dtype)


eig_p = Op("eig", "a", "Eigenvalues and eigenvectors (columns) of square a.", multiple_results=True, is_late=True)
host_op(eig_p, _eig, lambda m, n, k: 25 * n**3)


@abstract_eval.rule(eig_p)
def _eig_abstract_eval(a: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    require_matrices("eig", a, square=True)
    dtype = complex_of(a.dtype)
    return aval(a.shape[:-1], dtype), aval(a.shape, dtype)


@vjp.rule(eig_p)
def _eig_vjp(gs: Any, outs: Any, a: Array, *, needs_grad: Any) -> tuple[Array]:
    values, vectors = outs
    g_values, g_vectors = or_zeros(gs, outs)
    turned = adjoint(vectors)
    along = expand_dims(real(sum(multiply(conj(vectors), g_vectors), -2)), -2)  # changes a vector's length
    inner = subtract(matmul(turned, g_vectors), multiply(matmul(turned, vectors), along))
    i, j = rows_and_columns(inner)
    same = equal(i, j)
    gaps = conj(subtract(expand_dims(values, -2), expand_dims(values, -1)))
    apart = where(same, 0, divide(inner, where(same, 1, gaps)))
    middle = add(apart, where(same, expand_dims(g_values, -1), 0))
    into_a = solved(turned, matmul(middle, turned))
    return (into_a if a.dtype.is_complex else cast(real(into_a), a.dtype),)


def eig(x: Array) -> Eig:
    """Return the eigenvalues (..., n) and, as columns, the eigenvectors (..., n, n) of square matrices (..., n, n).

    The result is a named tuple (eigenvalues, eigenvectors) of complex numbers, in no particular order. The gradient
    is infinite where eigenvalues are equal and eigenvectors are used."""
    return Eig(*apply(eig_p, x))


def eigvals(x: Array) -> Array:
    """Return the eigenvalues (..., n) of square matrices (..., n, n): complex numbers, in no particular order."""
    return eig(x).eigenvalues
