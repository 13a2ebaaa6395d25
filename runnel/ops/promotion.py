"""Type promotion: operands of different kinds (tensors, Python scalars, NumPy arrays) to one dtype and rank."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from runnel.core.conversion import fitting
from runnel.core.dispatch import RunTimeNumber, TensorLike
from runnel.core.dtypes import DType, bool_, float32, float64, from_numpy, of_scalar, promote
from runnel.core.lengths import Length, as_number
from runnel.core.tables import Op
from runnel.ops.arguments import Array, Operand, broadcast_shapes
from runnel.ops.conversion import cast
from runnel.ops.shapes.broadcasting import with_rank

_SCALARS = (bool, int, float, complex)
_NUMBERS = (*_SCALARS, np.generic)  # NumPy's scalars count as Python's: np.float64 is a float, and the others follow
_EXAMPLE = {"bool": False, "int": 0, "uint": 0, "float": 0.0, "complex": 0j}  # a Python scalar of each kind


def constant(like: Array, value: bool | int | float | complex | Length, dtype: DType, ndim: int = 0) -> Array:
    """Return a Python scalar as a value of ``like``'s kind, of shape (1,) * ndim.

    Equal constants share one read-only array, so ``lift`` recognizes them by identity."""
    if isinstance(value, Length):
        number: Any = as_number(value)
        if not isinstance(number, int):
            return cast(number.as_array(dtype if dtype.is_inexact else float64, ndim), dtype)
        value = number
    if isinstance(value, RunTimeNumber):
        return value.as_array(dtype, ndim)
    if isinstance(value, complex):
        return like.lift(np.full((1,) * ndim, value, dtype.numpy), dtype)
    return like.lift(scalar_array(value, dtype, ndim), dtype)


def scalar_array(value: bool | int | float, dtype: DType, ndim: int = 0) -> np.ndarray[Any, Any]:
    """Return a Python scalar, rounded to ``dtype``, as a read-only array of shape (1,) * ndim, the same one each
    time."""
    sign = -1.0 if value == 0 and math.copysign(1.0, value) < 0 else 1.0  # 0.0 == -0.0, but they are two constants
    array: np.ndarray[Any, Any] = _constant_array(value, sign, dtype, ndim)
    return array


@functools.lru_cache(maxsize=1024)
def _constant_array(value: bool | int | float, sign: float, dtype: DType, ndim: int) -> Any:
    array = np.full((1,) * ndim, fitting("promotion", value, dtype))
    array.flags.writeable = False
    return array


def is_operand(x: Any) -> bool:
    """Return whether elementwise ops accept ``x``."""
    return isinstance(x, (TensorLike, *_NUMBERS, np.ndarray, Length))


def common_dtype(op: Op, operands: tuple[Any, ...]) -> DType:
    """Return the dtype to which ``operands`` are promoted: arrays promote, Python scalars and weak values follow."""
    strong: DType | None = None
    weak: list[Any] = []
    for x in operands:
        if isinstance(x, TensorLike):
            if x.is_weak:
                weak.append(x)
                continue
            dtype = x.dtype
        elif isinstance(x, _NUMBERS):
            weak.append(x.item() if isinstance(x, np.generic) else x)
            continue
        elif isinstance(x, Length):
            weak.append(x.value)  # any int
            continue
        elif isinstance(x, np.ndarray):
            dtype = from_numpy(x.dtype)
        else:
            raise TypeError(
                f"[{op.name}] takes tensors, numbers and NumPy arrays; got {type(x).__name__}. Convert it first."
            )
        strong = dtype if strong is None else promote(strong, dtype)
    result = strong
    if strong is None:  # run-time floats and Python numbers: they compute as Python does
        result = next((x.dtype for x in weak if isinstance(x, TensorLike)), None)
    for x in weak:
        result = of_scalar(_EXAMPLE[x.dtype.kind] if isinstance(x, TensorLike) else x, result)
    return bool_ if result is None else result


def anchor(op: Op, operands: tuple[Any, ...]) -> Array:
    """Return the first TensorLike among the operands, which decides the kind of constants."""
    for x in operands:
        if isinstance(x, TensorLike):
            return x
    kinds = ", ".join(type(x).__name__ for x in operands)
    raise TypeError(f"[{op.name}] needs a tensor among its operands, got {kinds}; make one with asarray().")


def lifted(like: Array, x: Any, dtype: DType, ndim: int) -> Array:
    """Convert ``x`` to a value of ``like``'s kind with ``dtype`` and at least ``ndim`` dimensions."""
    if isinstance(x, TensorLike):
        return with_rank(cast(x, dtype), ndim)
    if isinstance(x, (*_NUMBERS, Length)):
        return constant(like, x.item() if isinstance(x, np.generic) else x, dtype, ndim)
    array = np.asarray(x)
    own = like.lift(array.reshape((1,) * (ndim - array.ndim) + array.shape), from_numpy(array.dtype))
    return cast(own, dtype)


def alike(op: Op, *operands: Any) -> list[Array]:
    """Convert the operands to tensors of one dtype, each in its own shape."""
    like, common = anchor(op, operands), common_dtype(op, operands)
    return [lifted(like, x, common, 0) for x in operands]


def meet(op: Op, *operands: Any, dtype: DType | None = None) -> list[Array]:
    """Convert the operands to tensors of one dtype (their common one, or ``dtype``) and one rank."""
    like = anchor(op, operands)
    common = common_dtype(op, operands) if dtype is None else dtype
    ndim = common_rank(op, operands)
    return [lifted(like, x, common, ndim) for x in operands]


def common_rank(op: Op, operands: tuple[Any, ...]) -> int:
    """Return the rank to which operands broadcast.

    An error shows their original shapes."""
    shapes = [getattr(x, "shape", ()) for x in operands]
    ndim = max(map(len, shapes))
    if any(0 < len(shape) < ndim for shape in shapes):
        broadcast_shapes(op.name, *shapes)
    return ndim


def unary(op: Op, x: Operand) -> Array:
    """Apply an elementwise op of one operand."""
    if isinstance(x, TensorLike):
        return x.apply_op(op, (x,), {})
    return anchor(op, (x,))


def unary_float(op: Op, x: Operand, **attrs: Any) -> Array:
    """Apply an op that is defined only for floats; integers are converted to float32."""
    if isinstance(x, TensorLike):
        operand = x if x.dtype.is_inexact else cast(x, float32)
        return operand.apply_op(op, (operand,), attrs)
    return anchor(op, (x,))


def binary(op: Op, x: Operand, y: Operand) -> Array:
    """Apply an elementwise op of two operands.

    The usual cases, equal avals and a Python scalar, come first."""
    if isinstance(x, TensorLike):
        if isinstance(y, TensorLike):
            if x.aval is y.aval:
                return x.apply_op(op, (x, y), {})
        elif isinstance(y, _SCALARS) and not x.is_weak and of_scalar(y, x.dtype) is x.dtype:
            return x.apply_op(op, (x, constant(x, y, x.dtype, x.ndim)), {})
    elif isinstance(x, _SCALARS) and isinstance(y, TensorLike) and not y.is_weak and of_scalar(x, y.dtype) is y.dtype:
        return y.apply_op(op, (constant(y, x, y.dtype, y.ndim), y), {})
    a, b = meet(op, x, y)
    return a.apply_op(op, (a, b), {})


def binary_float(op: Op, x: Operand, y: Operand) -> Array:
    """Apply an op as :func:`binary` does, after converting integers to float32."""
    if isinstance(x, TensorLike) and isinstance(y, TensorLike) and x.aval is y.aval and x.dtype.is_inexact:
        return x.apply_op(op, (x, y), {})
    if common_dtype(op, (x, y)).is_inexact:
        return binary(op, x, y)
    a, b = meet_as_floats(op, x, y)
    return a.apply_op(op, (a, b), {})


def meet_as_floats(op: Op, *operands: Any) -> list[Array]:
    """Convert the operands as :func:`meet` does, and integers to float32."""
    common = common_dtype(op, operands)
    return meet(op, *operands, dtype=common if common.is_inexact else float32)
