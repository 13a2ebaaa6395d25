"""Products of bfloat16: their accumulation dtype, and the machines with instructions for them.

A product of two bfloat16 is exact in float32. Machines with dot instructions take such factors directly. For others,
functions convert them to float32 first, as :func:`operand_dtype` says, and rules of table ``decompose`` convert the
rest.
"""

from __future__ import annotations

from typing import Any, Final

from runnel.backends import context
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType, bfloat16, float32, float64
from runnel.core.tables import Op
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast

OPERAND_DTYPES: Final = (float32, float64, bfloat16)  # of products


def sum_dtype(dtype: DType) -> DType:
    """Return the dtype in which products of arrays of ``dtype`` are summed and returned."""
    return float32 if dtype is bfloat16 else dtype


def operand_dtype(dtype: DType) -> DType:
    """Return the dtype in which factors of the float ``dtype`` are multiplied, by the context's precision."""
    is_direct = dtype.itemsize >= 4 or (dtype is bfloat16 and context.current().precision != "float32")
    return dtype if is_direct else float32


def in_float32(op: Op, x: Array, y: Array, **attrs: Any) -> Array:
    """Apply ``op`` to the operands in float32."""
    return apply(op, cast(x, float32), cast(y, float32), **attrs)


def expanded(op: Op, x: Array, y: Array, **attrs: Any) -> Array | None:
    """Return a product with converted factors, or None if they need no conversion."""
    return None if operand_dtype(x.dtype) is x.dtype else in_float32(op, x, y, **attrs)


def summed(array: Any) -> Any:
    """Convert a NumPy array of factors to the dtype of their sums, for references."""
    return array.astype(float32.numpy) if array.dtype == bfloat16.numpy else array
