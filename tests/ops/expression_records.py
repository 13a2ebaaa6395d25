"""Records of the ops of tensor expressions, whose module is imported when somebody asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np

import runnel.expressions.function  # noqa: F401 - fills the tables
from runnel.core import dtypes as dt
from runnel.ops.elementwise.rows import ANY


def _affine_view(x: Any, *, shape: Any, forms: Any) -> Any:
    """Element by element."""
    result = np.empty(shape, x.dtype)
    for at in np.ndindex(*shape):
        result[at] = x[tuple(offset + sum(step * at[axis] for axis, step in terms) for offset, terms in forms)]
    return result


PRODUCT = "C[i: 3, j: 5] += (A[i, k] * B[k, j])"
CONVOLUTION = "O[i: 5] += (A[(i + r)] * B[r])"
ORACLES = {PRODUCT: np.matmul, CONVOLUTION: lambda x, w: np.correlate(x, w, "valid")}


def _tensor_expression(*xs: Any, text: str, schedule: Any) -> Any:
    return ORACLES[text](*xs)


EXPRESSIONS: dict[str, dict[str, Any]] = {
    "affine_view": {
        "oracle": _affine_view,
        "cases": (
            (((3, 4),), {"shape": (4, 3), "forms": ((0, ((1, 1),)), (0, ((0, 1),)))}),
            (((8,),), {"shape": (3, 2), "forms": ((1, ((0, 2), (1, 1))),)}),
            (((5,),), {"shape": (5,), "forms": ((4, ((0, -1),)),)}),
            (((3, 4),), {"shape": (3,), "forms": ((0, ((0, 1),)), (2, ()))}),
        ),
        "dtypes": ANY, "smooth": False, "made_late": True,
    },
    "tensor_expression": {
        "oracle": _tensor_expression,
        "cases": (
            (((3, 4), (4, 5)), {"text": PRODUCT, "schedule": None}),
            (((7,), (3,)), {"text": CONVOLUTION, "schedule": None}),
        ),
        "dtypes": (dt.float32, dt.float64),
    },
}  # fmt: skip
