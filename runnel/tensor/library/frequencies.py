"""The frequencies that the elements of a discrete Fourier transform stand for."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core import dtypes
from runnel.core.devices import as_device
from runnel.core.dtypes import Dtype
from runnel.core.errors import DTypeError, ShapeError
from runnel.ops.arguments import as_sizes
from runnel.tensor import tensor as tensors
from runnel.tensor.tensor import Tensor


def fftfreq(n: int, d: float = 1.0, dtype: Dtype = dtypes.float32, device: Any = None) -> Tensor:
    """The frequencies of a transform of ``n`` samples that lie ``d`` apart: 0, 1, …, then the negative ones up to -1,
    over n·d."""
    return _made("fftfreq", np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, d: float = 1.0, dtype: Dtype = dtypes.float32, device: Any = None) -> Tensor:
    """The frequencies of the transform of ``n`` real samples that lie ``d`` apart: 0, 1, …, n//2, over n·d."""
    return _made("rfftfreq", np.fft.rfftfreq, n, d, dtype, device)


def _made(name: str, function: Any, n: int, d: float, dtype: Any, device: Any) -> Tensor:
    (count,) = as_sizes(name, n)
    kind = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
    if not float(d):
        raise ValueError(f"[{name}] the distance d of two samples is not 0.")
    if count < 1:
        raise ShapeError(f"[{name}] there are no frequencies of {n} samples; give one at least.")
    if not kind.is_float:
        raise DTypeError(f"[{name}] frequencies are floats; received {kind.name}.")
    place = None if device is None else as_device(device)
    return tensors.from_numpy(function(count, float(d)), kind, copy=True, device=place)
