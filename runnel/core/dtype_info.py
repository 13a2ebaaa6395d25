"""Information on dtypes: limits, promotion, PyTorch's aliases, and constants of the Array API."""

from __future__ import annotations

import builtins
import functools
import importlib.metadata
import math
from typing import Any, Final

import ml_dtypes
import numpy as np

from runnel.core import dtypes
from runnel.core.arrays import short_repr
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType, Dtype
from runnel.core.errors import DTypeError
from runnel.core.records import record

__version__: Final = importlib.metadata.version("runnel")
__array_api_version__: Final = "2025.12"

e: Final = math.e
inf: Final = math.inf
nan: Final = math.nan
newaxis: Final = None
pi: Final = math.pi

bool: Final = dtypes.bool_
half: Final = dtypes.float16
float: Final = dtypes.float32
double: Final = dtypes.float64
cfloat: Final = dtypes.complex64
cdouble: Final = dtypes.complex128
short: Final = dtypes.int16
int: Final = dtypes.int32
long: Final = dtypes.int64


@record
class FloatInfo:
    """The limits of a float dtype."""

    bits: builtins.int
    eps: builtins.float
    max: builtins.float
    min: builtins.float
    smallest_normal: builtins.float
    tiny: builtins.float
    resolution: builtins.float
    dtype: DType


@record
class IntInfo:
    """The limits of an integer dtype."""

    bits: builtins.int
    max: builtins.int
    min: builtins.int
    dtype: DType


def _dtype_of(name: str, value: Any) -> DType:
    if isinstance(value, TensorLike):
        return value.dtype
    try:
        return dtypes.as_dtype(value)
    except (TypeError, ValueError):
        raise DTypeError(f"[{name}] the argument must be a dtype or an array; got {short_repr(value)}.") from None


def finfo(type: Any = dtypes.float32) -> FloatInfo:
    """Return the limits of a float dtype, of an array's dtype, or of the parts of complex numbers. DTypeError for
    others."""
    dtype = dtypes.real_of(_dtype_of("finfo", type))
    if not dtype.is_float:
        raise DTypeError(f"[finfo] the dtype must be floating; got {dtype.name}. Use iinfo().")
    info: Any = ml_dtypes.finfo(dtype.numpy)
    names = ("eps", "max", "min", "smallest_normal", "tiny", "resolution")
    limits = {name: builtins.float(getattr(info, name)) for name in names}
    return FloatInfo(bits=builtins.int(info.bits), dtype=dtype, **limits)


def iinfo(type: Any = dtypes.int64) -> IntInfo:
    """Return the limits of an integer dtype or of an array's dtype. DTypeError for others."""
    dtype = _dtype_of("iinfo", type)
    if not dtype.is_integer:
        raise DTypeError(f"[iinfo] the dtype must be an integer; got {dtype.name}.")
    info = np.iinfo(dtype.numpy)
    return IntInfo(info.bits, builtins.int(info.max), builtins.int(info.min), dtype)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype that arrays, dtypes and Python numbers promote to. A number takes the arrays' dtype if its
    kind fits."""
    numbers = [
        x for x in arrays_and_dtypes if isinstance(x, (builtins.bool, builtins.int, builtins.float, builtins.complex))
    ]
    strong = [_dtype_of("result_type", x) for x in arrays_and_dtypes if not any(x is n for n in numbers)]
    if not arrays_and_dtypes:
        raise DTypeError("[result_type] takes an array, a dtype or a number at least.")
    result = functools.reduce(dtypes.promote, strong) if strong else None
    for number in numbers:
        result = dtypes.of_scalar(number, result)
    if result is None:
        raise DTypeError("[result_type] takes an array, a dtype or a number at least.")
    return result


def can_cast(from_: Any, to: Any) -> builtins.bool:
    """Return whether promotion converts ``from_``, a dtype or an array, to ``to``."""
    target = _dtype_of("can_cast", to)
    return dtypes.promote(_dtype_of("can_cast", from_), target) is target


_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("bool",), "signed integer": ("int",), "unsigned integer": ("uint",), "integral": ("int", "uint"),
    "real floating": ("float",), "complex floating": ("complex",), "numeric": ("int", "uint", "float", "complex"),
}  # fmt: skip


def isdtype(dtype: Dtype, kind: Any) -> builtins.bool:
    """Return whether ``dtype`` is of a kind: a dtype, a word of the Array API ("bool", "integral", "numeric", "real
    floating", "signed integer", "unsigned integer", "complex floating"), or a tuple of these."""
    own = _dtype_of("isdtype", dtype)
    if isinstance(kind, tuple):
        return any(isdtype(own, k) for k in kind)
    if isinstance(kind, str) and kind not in dtypes.names():
        if kind not in _KINDS:
            raise ValueError(f"[isdtype] kind must be one of {', '.join(_KINDS)}; got {kind!r}.")
        return own.kind in _KINDS[kind]
    if isinstance(kind, str) and kind == "bool":
        return own is dtypes.bool_
    return own is _dtype_of("isdtype", kind)
