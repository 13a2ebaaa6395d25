"""``testing.assert_close``: tensors that agree within a tolerance that follows from their dtype."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from runnel.tensor.methods import ArrayMethods

_TOLERANCES: Final = {  # relative, absolute
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """AssertionError unless |actual - expected| ≤ atol + rtol·|expected| everywhere, and shapes and dtypes are equal.
    Tolerances are PyTorch's for the dtype, the wider of two; both or none are given. Sequences and mappings are
    compared element by element."""
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_dtype": check_dtype, "msg": msg}
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or actual.keys() != expected.keys():
            raise AssertionError(_text(msg, "the keys of the mappings are not equal."))
        for key in expected:
            assert_close(actual[key], expected[key], **options)
    elif isinstance(expected, tuple | list):
        if not isinstance(actual, tuple | list) or len(actual) != len(expected):
            raise AssertionError(_text(msg, "the lengths of the sequences are not equal."))
        for one, other in zip(actual, expected, strict=True):
            assert_close(one, other, **options)
    else:
        _compare(actual, expected, rtol, atol, equal_nan, check_dtype, msg)


def _compare(
    actual: Any, expected: Any, rtol: float | None, atol: float | None, equal_nan: bool, check_dtype: bool, msg: Any
) -> None:
    ours, theirs = (x.numpy() if isinstance(x, ArrayMethods) else np.asarray(x) for x in (actual, expected))
    if (rtol is None) != (atol is None):
        raise ValueError("[assert_close] rtol and atol are given both or not at all.")
    if ours.shape != theirs.shape:
        raise AssertionError(_text(msg, f"the shapes are {ours.shape} and {theirs.shape}."))
    is_tensors = isinstance(actual, ArrayMethods) and isinstance(expected, ArrayMethods)
    if check_dtype and is_tensors and ours.dtype != theirs.dtype:
        raise AssertionError(_text(msg, f"the dtypes are {ours.dtype} and {theirs.dtype}."))
    if rtol is None or atol is None:
        each = [_TOLERANCES.get(str(x.dtype), (0.0, 0.0)) for x in (ours, theirs)]
        rtol, atol = (max(pair) for pair in zip(*each, strict=True))
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    is_close = np.isclose(a, b, rtol, atol, equal_nan)
    if not is_close.all():
        gap = np.abs(a - b)
        raise AssertionError(
            _text(
                msg,
                f"{np.count_nonzero(~is_close)} of {a.size} elements differ by more than {atol} + {rtol}·|expected|; "
                f"the greatest difference is {np.nanmax(gap)}.",
            )
        )


def _text(msg: Any, text: str) -> str:
    return f"[assert_close] {text}" if msg is None else msg(text) if callable(msg) else str(msg)
