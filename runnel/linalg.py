"""Linear algebra: factorizations and systems of equations."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public
from runnel.ops.contraction import outer
from runnel.ops.linalg import eigh, qr, solve, svd
from runnel.ops.precision import matmul, tensordot, vecdot

if TYPE_CHECKING:
    from runnel.ops.library.eigenvalues import eig, eigvals
    from runnel.ops.library.elimination import lu, lu_factor, lu_solve
    from runnel.ops.library.matrices import (
        cholesky,
        det,
        diagonal,
        eigvalsh,
        inv,
        lstsq,
        matrix_exp,
        matrix_exp as expm,
        matrix_norm,
        matrix_power,
        matrix_rank,
        norm,
        pinv,
        slogdet,
        solve_triangular,
        svdvals,
        vander,
        vector_norm,
    )
    from runnel.ops.library.products import cross, multi_dot
    from runnel.ops.library.reflections import householder_product
    from runnel.ops.library.symmetric import ldl_factor, ldl_factor_ex, ldl_solve
    from runnel.ops.library.triangles import trace
    from runnel.ops.library.unchecked import cholesky_ex, cond, inv_ex, lu_factor_ex, solve_ex, tensorinv, tensorsolve
    from runnel.tensor.library.asking import matrix_transpose

__all__ = [
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vander",
    "vecdot",
    "vector_norm",
]
_LATE = {
    "cholesky": "runnel.ops.library.matrices:cholesky",
    "cholesky_ex": "runnel.ops.library.unchecked:cholesky_ex",
    "cond": "runnel.ops.library.unchecked:cond",
    "cross": "runnel.ops.library.products:cross",
    "det": "runnel.ops.library.matrices:det",
    "diagonal": "runnel.ops.library.matrices:diagonal",
    "eig": "runnel.ops.library.eigenvalues:eig",
    "eigvals": "runnel.ops.library.eigenvalues:eigvals",
    "eigvalsh": "runnel.ops.library.matrices:eigvalsh",
    "expm": "runnel.ops.library.matrices:matrix_exp",
    "householder_product": "runnel.ops.library.reflections:householder_product",
    "inv": "runnel.ops.library.matrices:inv",
    "inv_ex": "runnel.ops.library.unchecked:inv_ex",
    "ldl_factor": "runnel.ops.library.symmetric:ldl_factor",
    "ldl_factor_ex": "runnel.ops.library.symmetric:ldl_factor_ex",
    "ldl_solve": "runnel.ops.library.symmetric:ldl_solve",
    "lstsq": "runnel.ops.library.matrices:lstsq",
    "lu": "runnel.ops.library.elimination:lu",
    "lu_factor": "runnel.ops.library.elimination:lu_factor",
    "lu_factor_ex": "runnel.ops.library.unchecked:lu_factor_ex",
    "lu_solve": "runnel.ops.library.elimination:lu_solve",
    "matrix_exp": "runnel.ops.library.matrices:matrix_exp",
    "matrix_norm": "runnel.ops.library.matrices:matrix_norm",
    "matrix_power": "runnel.ops.library.matrices:matrix_power",
    "matrix_rank": "runnel.ops.library.matrices:matrix_rank",
    "matrix_transpose": "runnel.tensor.library.asking:matrix_transpose",
    "multi_dot": "runnel.ops.library.products:multi_dot",
    "norm": "runnel.ops.library.matrices:norm",
    "pinv": "runnel.ops.library.matrices:pinv",
    "slogdet": "runnel.ops.library.matrices:slogdet",
    "solve_ex": "runnel.ops.library.unchecked:solve_ex",
    "solve_triangular": "runnel.ops.library.matrices:solve_triangular",
    "svdvals": "runnel.ops.library.matrices:svdvals",
    "tensorinv": "runnel.ops.library.unchecked:tensorinv",
    "tensorsolve": "runnel.ops.library.unchecked:tensorsolve",
    "trace": "runnel.ops.library.triangles:trace",
    "vander": "runnel.ops.library.matrices:vander",
    "vector_norm": "runnel.ops.library.matrices:vector_norm",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
