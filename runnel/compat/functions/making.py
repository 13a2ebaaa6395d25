"""``testing.make_tensor``: tensors of random numbers for tests, and what PyTorch's older tests compare with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.compat.functions.closeness import assert_close
from runnel.compat.functions.creation import sizes
from runnel.core import dtypes
from runnel.core.library.dtype_info import finfo, iinfo
from runnel.ops.arguments import as_sizes
from runnel.tensor.creation import asarray
from runnel.tensor.random import rand
from runnel.tensor.tensor import Tensor


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Uniform random numbers in [``low``, ``high``): by default in [-9, 9) of floats and complex numbers, [-9, 10) of
    integers, [0, 10) of unsigned ones and [0, 2) of bools, and never outside of what ``dtype`` holds.

    Args:
        requires_grad: whether gradients are computed for it.
        noncontiguous: whether its elements lie apart in memory.
        exclude_zero: replace 0 by the smallest positive number of ``dtype``.
    """
    kind = dtypes.as_dtype(dtype)
    is_whole = not kind.is_inexact
    usual: tuple[float, float] = {"bool": (0, 2), "uint": (0, 10), "int": (-9, 10)}.get(kind.kind, (-9, 9))
    first, last = usual[0] if low is None else low, usual[1] if high is None else high
    if not first < last:
        raise ValueError(f"[make_tensor] low is less than high; received {first} and {last}.")
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
    """The least and the greatest number of a dtype."""
    if kind.kind == "bool":
        return 0, 1
    info = finfo(kind) if kind.is_inexact else iinfo(kind)
    return info.min, info.max


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
    msg: str = "",
) -> None:  # fmt: skip
    """:func:`assert_close` of dtypes that may differ, under PyTorch's older name."""
    assert_close(
        asarray(actual), asarray(expected), rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False,
        msg=msg or None,
    )  # fmt: skip
