"""In-place methods and operators: ``x.f_(...)`` assigns the value of ``x.f(...)`` to ``x``; and which handles may
change.

A Variable is updated. A tensor's handle gets another value; results computed from the old value, and other handles,
keep it. Shape and dtype stay; a result of another kind is an error, as in PyTorch. Methods whose purpose is another
shape (``x.t_()``) work on a tensor's handle and not on a Variable.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final

from runnel import ops
from runnel.core import tracebacks
from runnel.core.avals import ShapedArray
from runnel.core.devices import Device
from runnel.core.dtypes import DType
from runnel.core.errors import CaptureError, DeviceError, DTypeError, GradientError, ShapeError, SideEffectError
from runnel.core.public import public
from runnel.core.recall import Recalled
from runnel.core.tracebacks import ending_at_user
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import Handle, OutsideHandles
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.trace import Trace
from runnel.tensor.traced_values import counted

Function = Callable[..., Any]


def fitted(name: str, target: ShapedArray, value: Any) -> Any:
    """Return ``value`` in the dtype of ``target``. ShapeError or DTypeError if it does not fit."""
    if value.aval is target:
        return value
    if value.shape != target.shape:
        raise ShapeError(
            f"[{name}] the result has shape {value.shape}, but what is changed in place keeps its shape, "
            f"{target.shape}; compute a new array."
        )
    return in_dtype(name, target, value)


def in_dtype(name: str, target: ShapedArray, value: Any) -> Any:
    """Like :func:`fitted`, for a value of any shape."""
    if not _is_castable(value.dtype, target.dtype):
        raise DTypeError(
            f"[{name}] the result is {value.dtype.name}, but what is changed in place stays {target.dtype.name}; "
            f"convert the operand, or compute a new array."
        )
    return ops.cast(value, target.dtype)


def _is_castable(source: DType, target: DType) -> bool:
    """Return whether the kind of number stays or widens: bool, integers, floats, complex."""
    rank = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}
    return rank[source.kind] <= rank[target.kind]


def in_place(name: str, function: Function) -> Function:
    """Return the method ``name_``, which assigns to an array the value that ``function`` computes from it."""
    label = f"{name}_"

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.update(label, lambda x: function(x, *args, **kwargs))

    method.__name__ = label
    method.__doc__ = f"Give this array the value of ``{name}`` of it and the arguments; returns the array itself."
    return public(method)


# --- augmented assignment -----------------------------------------------------------------------------------------


def _augmented(name: str) -> Function:
    """Return the operator ``x op= y``."""
    compute = getattr(operator, f"__{name}__")
    known = Recalled(lambda x, other: x.update(f"i{name}", lambda before: compute(before, other)))

    @ending_at_user
    def method(self: Any, other: Any) -> Any:
        return known.call(self, other)

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


CONSTANT_SERIAL: Final = 1 << 62  # later than any trace: such a tensor is a constant in every trace


def require_own(x: Handle[Any], name: str, trace: Trace | None) -> None:
    """Raise unless the handle ``x`` may be given another value now."""
    if x._leaf is not None or x._serial == CONSTANT_SERIAL:
        raise CaptureError(
            f"[{name}] this tensor is the value of a Variable or a constant; assign to the Variable, or change a copy "
            "(x.clone())."
        )
    if x._is_user_leaf and RECORDING.get():
        raise GradientError(
            f"[{name}] a leaf that requires a gradient cannot be changed in place while operations are recorded; "
            "change it under `with runnel.no_grad():`, or change a copy (x.clone())."
        )
    if trace is not None and x._is_outside(trace):
        require_no_body(name, trace)


def require_no_body(name: str, trace: Trace) -> None:
    """Raise where a trace cannot give a tensor from outside another value, or gradient: in a loop's or branch's body,
    or where nothing is compiled."""
    if trace.is_body or trace.facet(OutsideHandles).stand_ins is None:
        raise SideEffectError(
            f"[{name}] a tensor from outside is changed at {tracebacks.user_line()}; return the new value."
        )


def require_movable(x: Handle[Any], device: Device, trace: Trace | None) -> None:
    """Raise unless ``x`` can be moved to another device now: a program computes on one."""
    if trace is not None and (x._node is not None or x._is_outside(trace)):
        raise counted(
            DeviceError(
                f"[to] at {tracebacks.user_line()} a tensor moves from {x.device} to {device} in the middle of a "
                "compiled function, which computes on one device; move it before the call."
            )
        )


def require_inside(x: Handle[Any], name: str, level: Any) -> None:
    """Raise unless the handle ``x`` may become a tensor of ``level``: it was made while that was open."""
    if level is not None and level is not x._level and x._serial <= level.born:
        raise SideEffectError(
            f"[{name}] at {tracebacks.user_line()} a function under {level.name} gives a tensor from outside a value "
            f"that belongs to the {level.name}; return the value."
        )
