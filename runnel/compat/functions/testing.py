"""``torch.testing``: ``assert_close`` and ``make_tensor``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from runnel.compat.functions.creation import sizes
from runnel.core import dtypes
from runnel.core.dtype_info import finfo, iinfo
from runnel.core.dtypes import Dtype
from runnel.ops.arguments import as_sizes
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.random import rand
from runnel.tensor.tensor import Tensor

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
    """Raise AssertionError unless |actual - expected| ≤ atol + rtol·|expected| everywhere and shapes and dtypes match.

    Pass both tolerances or none; the defaults are PyTorch's for the dtype, the wider of two. Sequences and mappings are
    compared item by item.
    """
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


def make_tensor(
    *shape: Any,
    dtype: Dtype,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Draw uniform random numbers from [``low``, ``high``), within the range of ``dtype``.

    The default range is [-9, 9) for floats and complex numbers, [-9, 10) for integers, [0, 10) for unsigned integers
    and [0, 2) for bools.

    Args:
        requires_grad: whether to compute gradients for it.
        noncontiguous: whether its elements are apart in memory.
        exclude_zero: replace 0 by the smallest positive number of ``dtype``.
    """
    kind = dtypes.as_dtype(dtype)
    is_whole = not kind.is_inexact
    usual: tuple[float, float] = {"bool": (0, 2), "uint": (0, 10), "int": (-9, 10)}.get(kind.kind, (-9, 9))
    first, last = usual[0] if low is None else low, usual[1] if high is None else high
    if not first < last:
        raise ValueError(f"[make_tensor] low must be less than high; got {first} and {last}.")
    lowest, highest = _limits(kind)
    first, last = max(first, lowest), min(last, highest + is_whole)
    extent = as_sizes("make_tensor", sizes(shape, None))
    values = first + rand((*extent, 2), dtype=dtypes.float64).numpy() * (last - first)
    if is_whole:
        values = np.minimum(np.floor(values), math.ceil(last) - 1)
    exact = (values[..., 0] + 1j * values[..., 1] if kind.is_complex else values[..., 0]).astype(kind.numpy)
    if exclude_zero:
        exact[exact == 0] = 1 if is_whole else finfo(kind).tiny
    made: Tensor = asarray(np.repeat(exact, 2, -1) if noncontiguous and extent else exact, device=device)
    made = made[..., ::2] if noncontiguous and extent else made
    return made.requires_grad_() if requires_grad else made


def _limits(kind: dtypes.DType) -> tuple[float, float]:
    """Return the smallest and the largest number of a dtype."""
    if kind.kind == "bool":
        return 0, 1
    info = finfo(kind) if kind.is_inexact else iinfo(kind)
    return info.min, info.max


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
    msg: str = "",
) -> None:  # fmt: skip
    """Compare like :func:`assert_close`, without dtypes, under PyTorch's older name."""
    assert_close(
        asarray(actual), asarray(expected), rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False,
        msg=msg or None,
    )  # fmt: skip
