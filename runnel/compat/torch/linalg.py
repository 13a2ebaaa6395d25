"""Linear algebra."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.matrices import (
        LinAlgError,
        lstsq,
        matrix_norm,
        matrix_rank,
        norm,
        pinv,
        solve,
        vector_norm,
    )

__all__ = ["LinAlgError", "lstsq", "matrix_norm", "matrix_rank", "norm", "pinv", "solve", "vector_norm"]
_LATE = {
    "LinAlgError": "runnel.compat.functions.matrices:LinAlgError",
    "lstsq": "runnel.compat.functions.matrices:lstsq",
    "matrix_norm": "runnel.compat.functions.matrices:matrix_norm",
    "matrix_rank": "runnel.compat.functions.matrices:matrix_rank",
    "norm": "runnel.compat.functions.matrices:norm",
    "pinv": "runnel.compat.functions.matrices:pinv",
    "solve": "runnel.compat.functions.matrices:solve",
    "vector_norm": "runnel.compat.functions.matrices:vector_norm",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.linalg",))
del TYPE_CHECKING, public
