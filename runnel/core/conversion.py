"""Conversion of NumPy arrays to other dtypes with a single rounding, as in compiled code.

NumPy reaches bfloat16 by way of float32, and rounds twice where that does not hold the number. Here it is rounded to
odd in between (S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from runnel.core.dtypes import DType, bfloat16, float64
from runnel.core.errors import DTypeError
from runnel.core.recall import Usual


def fitting(name: str, values: Any, dtype: DType, given: Any = None) -> np.ndarray[Any, Any]:
    """Like :func:`rounded`, for Python numbers: DTypeError if an integer dtype lacks one of them. Floats are truncated
    toward 0. ``name`` is for the message. If ``given``, from which the values come, is an array, they wrap."""
    array = np.asarray(values)
    is_array = hasattr(given, "dtype") and not isinstance(given, np.generic)
    if dtype.is_integer and array.size and array.dtype.kind in "iufO" and not is_array:
        limits = np.iinfo(dtype.numpy)
        for extreme in (values,) if array.dtype.kind == "O" else (array.min().tolist(), array.max().tolist()):
            if not limits.min - 1 < extreme < limits.max + 1:  # Python compares ints and floats exactly
                raise DTypeError(
                    f"[{name}] the Python number {extreme} does not fit {dtype.name}; use a dtype that has it, or cast "
                    "an array, which wraps."
                )
    return rounded(values, dtype)


def rounded(values: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """Convert data that NumPy accepts as an array to ``dtype``; return an array that has the dtype already as it is."""
    if isinstance(values, int) and not -(1 << 63) <= values < 1 << 64 and dtype.is_float:
        values = _wide(values, dtype is float64)
    array = np.asarray(values)
    if dtype is bfloat16 and array.dtype.kind in "iuf" and array.dtype.itemsize >= 4 and array.dtype != np.float32:
        array = _to_odd(_as_float64(array))
    if array.dtype == dtype.numpy:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype.numpy)


def _wide(value: int, to_nearest: bool) -> float:
    """Convert a Python int of more bits than NumPy's to float64: rounded to nearest, or to odd if it is rounded
    again."""
    shift = abs(value).bit_length() - 53
    leading = abs(value) >> shift
    try:
        wide = float(abs(value)) if to_nearest else math.ldexp(leading | (leading << shift != abs(value)), shift)
    except OverflowError:
        wide = math.inf
    return wide if value > 0 else -wide


def _as_float64(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert to float64. For integers that do not fit, the last bit says whether digits were lost."""
    if array.dtype.kind != "f" and array.dtype.itemsize == 8:
        one = array.dtype.type
        lost = (array & one(0x7FF)) != 0
        folded = (array & ~one(0x7FF)) | np.where(lost, one(0x800), one(0))
        small = (array < 1 << 53) & (array > (0 if array.dtype.kind == "u" else -(1 << 53)))
        array = np.where(small, array, folded)
    return array.astype(np.float64)


def _to_odd(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Round float64 to float32: of the two neighbors of an inexact number, choose the one whose last bit is odd."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        near = x.astype(np.float32)
        back = near.astype(np.float64)
        is_even = (near.view(np.uint32) & np.uint32(1)) == 0
        toward = np.where(back > x, -np.inf, np.inf).astype(np.float32)
        return np.where(is_even & (back != x) & ~np.isnan(x), np.nextafter(near, toward), near)


class _Casting(Usual):
    """The dtype that autocast sets on this thread (None: nothing is cast), and the dtypes of the blocks around."""

    plain = frozenset({"outer"})

    dtype: DType | None = None

    def __init__(self) -> None:
        self.outer: list[DType | None] = []


CASTING: Final = _Casting()


@contextmanager
def casting(dtype: DType | None) -> Iterator[None]:
    """Set it on this thread for the block."""
    before = CASTING.dtype
    CASTING.dtype = dtype
    try:
        yield
    finally:
        CASTING.dtype = before
