"""Linear algebra: factorizations and systems of equations."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public
from runnel.ops.contraction import outer
from runnel.ops.linalg import eigh, qr, solve, svd
from runnel.ops.precision import matmul, tensordot, vecdot

if TYPE_CHECKING:
    from runnel.ops.library.eigenvalues import eig, eigvals
    from runnel.ops.library.matrices import (
        cholesky,
        cond,
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
    from runnel.ops.library.triangles import trace
    from runnel.tensor.library.asking import matrix_transpose

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "lstsq",
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
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vander",
    "vecdot",
    "vector_norm",
]
_LATE = {
    "cholesky": "runnel.ops.library.matrices:cholesky",
    "cond": "runnel.ops.library.matrices:cond",
    "cross": "runnel.ops.library.products:cross",
    "det": "runnel.ops.library.matrices:det",
    "diagonal": "runnel.ops.library.matrices:diagonal",
    "eig": "runnel.ops.library.eigenvalues:eig",
    "eigvals": "runnel.ops.library.eigenvalues:eigvals",
    "eigvalsh": "runnel.ops.library.matrices:eigvalsh",
    "expm": "runnel.ops.library.matrices:matrix_exp",
    "inv": "runnel.ops.library.matrices:inv",
    "lstsq": "runnel.ops.library.matrices:lstsq",
    "matrix_exp": "runnel.ops.library.matrices:matrix_exp",
    "matrix_norm": "runnel.ops.library.matrices:matrix_norm",
    "matrix_power": "runnel.ops.library.matrices:matrix_power",
    "matrix_rank": "runnel.ops.library.matrices:matrix_rank",
    "matrix_transpose": "runnel.tensor.library.asking:matrix_transpose",
    "multi_dot": "runnel.ops.library.products:multi_dot",
    "norm": "runnel.ops.library.matrices:norm",
    "pinv": "runnel.ops.library.matrices:pinv",
    "slogdet": "runnel.ops.library.matrices:slogdet",
    "solve_triangular": "runnel.ops.library.matrices:solve_triangular",
    "svdvals": "runnel.ops.library.matrices:svdvals",
    "trace": "runnel.ops.library.triangles:trace",
    "vander": "runnel.ops.library.matrices:vander",
    "vector_norm": "runnel.ops.library.matrices:vector_norm",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
