"""In-place methods and operators, made from one table: ``x.f_(...)`` gives ``x`` the value of ``x.f(...)``.

A Variable is updated. A tensor's handle gets another value: what was computed from the old one keeps that, and other
handles do. Shape and dtype stay; a result of another kind is an error, as in PyTorch.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final

from runnel import ops
from runnel.core.avals import Aval
from runnel.core.dtypes import DType
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.public import public
from runnel.ops import updates
from runnel.ops.arguments import Array, Operand
from runnel.tensor.methods import ArrayMethods

Function = Callable[..., Any]


def fitted(name: str, target: Aval, value: Any) -> Any:
    """``value`` in the dtype of ``target``. ShapeError or DTypeError where it does not fit."""
    if value.shape != target.shape:
        raise ShapeError(
            f"[{name}] the result has shape {value.shape}, but what is changed in place keeps its shape, "
            f"{target.shape}; compute a new array."
        )
    if not _is_castable(value.dtype, target.dtype):
        raise DTypeError(
            f"[{name}] the result is {value.dtype.name}, but what is changed in place stays {target.dtype.name}; "
            f"convert the operand, or compute a new array."
        )
    return ops.cast(value, target.dtype)


def _is_castable(source: DType, target: DType) -> bool:
    """Whether the kind of number stays or gets wider: bool, integers, floats."""
    rank = {"bool": 0, "int": 1, "uint": 1, "float": 2}
    return rank[source.kind] <= rank[target.kind]


# --- functions that have both forms -------------------------------------------------------------------------------


def _scaled(other: Operand, alpha: Any) -> Operand:
    scaled: Operand = other if isinstance(alpha, int) and alpha == 1 else ops.multiply(other, alpha)
    return scaled


def _added(x: Array, other: Operand, *, alpha: float | Array = 1) -> Array:
    return ops.add(x, _scaled(other, alpha))


def _subtracted(x: Array, other: Operand, *, alpha: float | Array = 1) -> Array:
    return ops.subtract(x, _scaled(other, alpha))


def _divided(x: Array, other: Operand, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode not in (None, "floor", "trunc"):
        raise ValueError(f"[div] rounding_mode is None, 'floor' or 'trunc'; received {rounding_mode!r}.")
    if rounding_mode == "floor":
        return ops.floor_divide(x, other)
    return ops.divide(x, other) if rounding_mode is None else ops.cast(ops.trunc(ops.divide(x, other)), x.dtype)


def _clipped(x: Any, min: Any = None, max: Any = None) -> Any:
    return ops.clip(x, min, max)


FUNCTIONS: Final[dict[str, Function]] = {
    "abs": ops.abs, "add": _added, "addcdiv": updates.addcdiv, "addcmul": updates.addcmul,
    "bitwise_and": ops.bitwise_and, "bitwise_left_shift": ops.bitwise_left_shift, "bitwise_not": ops.bitwise_invert,
    "bitwise_or": ops.bitwise_or, "bitwise_right_shift": ops.bitwise_right_shift, "bitwise_xor": ops.bitwise_xor,
    "ceil": ops.ceil, "clamp": _clipped, "clamp_max": lambda x, max: ops.clip(x, None, max),
    "clamp_min": lambda x, min: ops.clip(x, min, None), "clip": _clipped, "cos": ops.cos, "div": _divided,
    "divide": _divided, "eq": ops.equal, "erf": ops.erf, "exp": ops.exp, "expm1": ops.expm1, "floor": ops.floor,
    "floor_divide": ops.floor_divide, "ge": ops.greater_equal, "gt": ops.greater, "index_add": updates.index_add_along,
    "index_copy": updates.index_copy, "index_fill": updates.index_fill,
    "index_put": updates.index_put, "le": ops.less_equal,
    "lerp": updates.lerp,
    "log": ops.log, "log10": ops.log10, "log1p": ops.log1p, "log2": ops.log2, "logical_and": ops.logical_and,
    "logical_not": ops.logical_not, "logical_or": ops.logical_or, "logical_xor": ops.logical_xor, "lt": ops.less,
    "masked_fill": updates.masked_fill, "maximum": ops.maximum, "minimum": ops.minimum, "mul": ops.multiply,
    "multiply": ops.multiply, "ne": ops.not_equal, "neg": ops.negative, "negative": ops.negative, "pow": ops.pow,
    "reciprocal": ops.reciprocal, "relu": ops.relu, "remainder": ops.remainder, "round": ops.round,
    "rsqrt": ops.rsqrt, "sigmoid": ops.sigmoid, "sign": ops.sign, "sin": ops.sin, "sqrt": ops.sqrt,
    "square": ops.square, "sub": _subtracted, "subtract": _subtracted, "tanh": ops.tanh, "trunc": ops.trunc,
}  # fmt: skip

# --- functions that only replace the value ------------------------------------------------------------------------


def _copied(x: Array, source: Operand) -> Any:
    return ops.put(x, ..., source)


def _zeroed(x: Any) -> Any:
    return ops.zeros_like(x)


def _filled(x: Array, value: float | Array) -> Any:
    if isinstance(value, (bool, int, float)):
        return ops.put(x, ..., value)
    if value.size != 1:
        raise ShapeError(f"[fill_] the value is one number; received shape {value.shape}.")
    return ops.put(x, ..., value.reshape(()))


REPLACEMENTS: Final[dict[str, Function]] = {"copy": _copied, "fill": _filled, "zero": _zeroed}


def in_place(name: str, function: Function) -> Function:
    """The method ``name_`` that gives an array the value ``function`` makes of it."""
    label = f"{name}_"

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.update(label, lambda x: function(x, *args, **kwargs))

    method.__name__ = label
    method.__doc__ = f"Give this array the value of ``{name}`` of it and the arguments; returns the array itself."
    return public(method)


def _returning(name: str, function: Function) -> Function:
    """The method ``name`` that is ``function`` of an array."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    return public(method)


for _name, _function in FUNCTIONS.items():
    setattr(ArrayMethods, _name, _returning(_name, _function))
    setattr(ArrayMethods, f"{_name}_", in_place(_name, _function))
for _name, _function in REPLACEMENTS.items():
    setattr(ArrayMethods, f"{_name}_", in_place(_name, _function))

# --- augmented assignment -----------------------------------------------------------------------------------------


def _augmented(name: str) -> Function:
    """``x op= y``: changes what is a cell; for a plain value it is ``x = x op y``."""
    compute = getattr(operator, f"__{name}__")

    def method(self: Any, other: Any) -> Any:
        if not self.is_cell:
            return compute(self, other)
        return self.update(f"i{name}", lambda x: compute(x, other))

    method.__name__ = f"__i{name}__"
    return method


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
):
    setattr(ArrayMethods, f"__i{_name}__", _augmented(_name))
