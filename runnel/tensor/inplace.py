"""What in-place methods and operators do: ``x.f_(...)`` gives ``x`` the value of ``x.f(...)``.

A Variable is updated. A tensor's handle gets another value: what was computed from the old one keeps that, and other
handles do. Shape and dtype stay; a result of another kind is an error, as in PyTorch. The methods whose purpose is
another shape (``x.t_()``) give it to a tensor's handle, and not to a Variable.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from runnel import ops
from runnel.core.avals import ShapedArray
from runnel.core.dtypes import DType
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.public import public
from runnel.core.tracebacks import ending_at_user
from runnel.tensor.methods import ArrayMethods

Function = Callable[..., Any]


def fitted(name: str, target: ShapedArray, value: Any) -> Any:
    """``value`` in the dtype of ``target``. ShapeError or DTypeError where it does not fit."""
    if value.shape != target.shape:
        raise ShapeError(
            f"[{name}] the result has shape {value.shape}, but what is changed in place keeps its shape, "
            f"{target.shape}; compute a new array."
        )
    return in_dtype(name, target, value)


def in_dtype(name: str, target: ShapedArray, value: Any) -> Any:
    """The same for a value whose shape may be another."""
    if not _is_castable(value.dtype, target.dtype):
        raise DTypeError(
            f"[{name}] the result is {value.dtype.name}, but what is changed in place stays {target.dtype.name}; "
            f"convert the operand, or compute a new array."
        )
    return ops.cast(value, target.dtype)


def _is_castable(source: DType, target: DType) -> bool:
    """Whether the kind of number stays or gets wider: bool, integers, floats, complex."""
    rank = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}
    return rank[source.kind] <= rank[target.kind]


def in_place(name: str, function: Function) -> Function:
    """The method ``name_`` that gives an array the value ``function`` makes of it."""
    label = f"{name}_"

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.update(label, lambda x: function(x, *args, **kwargs))

    method.__name__ = label
    method.__doc__ = f"Give this array the value of ``{name}`` of it and the arguments; returns the array itself."
    return public(method)


# --- augmented assignment -----------------------------------------------------------------------------------------


def _augmented(name: str) -> Function:
    """``x op= y``: changes what is a cell; for a plain value it is ``x = x op y``."""
    compute = getattr(operator, f"__{name}__")

    @ending_at_user
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
