"""Windows: the factors of a frame's samples before its Fourier transform.

F. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978. A periodic window of
n samples is the symmetric one of n + 1 without its last sample. Computed in float64 and rounded once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.core import dtypes
from runnel.core.devices import as_device
from runnel.core.dtypes import FLOATS, Dtype
from runnel.core.errors import DTypeError, ShapeError
from runnel.ops.arguments import as_sizes
from runnel.tensor import tensor as tensors
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor

Formula = Callable[[Any, int], Any]


def sampled(name: str, formula: Formula, length: int, periodic: bool, dtype: Any, device: Any = None) -> Tensor:
    """Return ``formula(n, m)`` for n from 0 to m; a periodic window omits the last sample."""
    count, kind = operator.index(length), dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
    if count < 0:
        raise ShapeError(f"[{name}] the length must be at least 0; got {length}.")
    if kind not in FLOATS:
        raise DTypeError(f"[{name}] the dtype must be floating; got {kind.name}.")
    as_sizes(name, (count,))
    m = count if periodic else count - 1
    samples = np.ones(count) if count < 2 else formula(np.arange(count), m)
    return asarray(samples, kind, device=device)


def cosines(factors: Sequence[float]) -> Formula:
    """Return the formula Σ (-1)ᵏ·aₖ·cos(2πkn/m)."""
    return lambda n, m: sum((-1) ** k * a * np.cos(2 * math.pi * k * n / m) for k, a in enumerate(factors))


def kaiser(beta: float) -> Formula:
    """Return I₀(β·√(1 - (2n/m - 1)²)) / I₀(β)."""
    return lambda n, m: np.i0(beta * np.sqrt(np.maximum(1 - (2 * n / m - 1) ** 2, 0))) / np.i0(np.float64(beta))


def triangle(n: Any, m: int) -> Any:
    """Return 1 - |2n/m - 1|."""
    return 1 - np.abs(2 * n / m - 1)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return ½ - ½·cos(2πn/m) for n from 0 on; m is ``window_length``, or one less unless ``periodic``. The default
    dtype is float32."""
    return sampled("hann_window", cosines((0.5, 0.5)), window_length, periodic, dtype, device)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Return α - β·cos(2πn/m), with the arguments of :func:`hann_window`."""
    return sampled("hamming_window", cosines((alpha, beta)), window_length, periodic, dtype, device)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return 0.42 - ½·cos(2πn/m) + 0.08·cos(4πn/m), with the arguments of :func:`hann_window`."""
    return sampled("blackman_window", cosines((0.42, 0.5, 0.08)), window_length, periodic, dtype, device)


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return 1 - |2n/m - 1|, with the arguments of :func:`hann_window`."""
    return sampled("bartlett_window", triangle, window_length, periodic, dtype, device)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Return I₀(β·√(1 - (2n/m - 1)²)) / I₀(β), with the arguments of :func:`hann_window`."""
    return sampled("kaiser_window", kaiser(beta), window_length, periodic, dtype, device)


def fftfreq(n: int, d: float = 1.0, dtype: Dtype = dtypes.float32, device: Any = None) -> Tensor:
    """Return the frequencies of a transform of ``n`` samples at distance ``d``: 0, 1, …, then the negative ones up to
    -1, over n·d."""
    return _made("fftfreq", np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, d: float = 1.0, dtype: Dtype = dtypes.float32, device: Any = None) -> Tensor:
    """Return the frequencies of a transform of ``n`` real samples at distance ``d``: 0, 1, …, n//2, over n·d."""
    return _made("rfftfreq", np.fft.rfftfreq, n, d, dtype, device)


def _made(name: str, function: Any, n: int, d: float, dtype: Any, device: Any) -> Tensor:
    (count,) = as_sizes(name, n)
    kind = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
    if not float(d):
        raise ValueError(f"[{name}] the distance d of two samples must not be 0.")
    if count < 1:
        raise ShapeError(f"[{name}] n must be at least 1; got {n}.")
    if not kind.is_float:
        raise DTypeError(f"[{name}] the dtype must be floating; got {kind.name}.")
    place = None if device is None else as_device(device)
    return tensors.from_numpy(function(count, float(d)), kind, copy=True, device=place)
