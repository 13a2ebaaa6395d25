"""PyTorch's windows: ``torch.hann_window`` with ``requires_grad``, and ``torch.signal.windows``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.compat.functions.creation import finished
from runnel.tensor import windows
from runnel.tensor.tensor import Tensor
from runnel.tensor.windows import Formula, cosines, sampled


def _periodic(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Add PyTorch's options for new tensors to one of Runnel's windows."""

    def window(
        *args: Any, layout: Any = None, pin_memory: bool = False, requires_grad: bool = False, **options: Any
    ) -> Tensor:
        return finished(make(*args, **options), None, None, requires_grad)

    window.__name__, window.__doc__ = make.__name__, make.__doc__
    return window


hann_window = _periodic(windows.hann_window)
hamming_window = _periodic(windows.hamming_window)
blackman_window = _periodic(windows.blackman_window)
bartlett_window = _periodic(windows.bartlett_window)
kaiser_window = _periodic(windows.kaiser_window)


def _symmetric(name: str, doc: str, formula: Callable[..., Formula], **defaults: Any) -> Callable[..., Tensor]:
    """Return a window of ``torch.signal.windows``: M samples, symmetric unless ``sym`` is False.

    ``formula`` takes M and the arguments that have ``defaults``.
    """

    def window(
        M: int,
        *args: Any,
        sym: bool = True,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> Tensor:
        given = {**defaults, **dict(zip(defaults, args, strict=False)), **options}
        values = sampled(name, formula(M, **given), M, not sym, dtype, device)
        return finished(values, None, None, requires_grad)

    window.__name__, window.__doc__ = name, doc
    return window


def _decay(M: int, center: float | None, tau: float) -> Formula:
    return lambda n, m: np.exp(-np.abs(n - (m / 2 if center is None else center)) / tau)


def _cosines(M: int, a: Sequence[float]) -> Formula:
    return cosines(a)


bartlett = _symmetric("bartlett", "1 - |2n/m - 1|.", lambda M: windows.triangle)
blackman = _symmetric("blackman", "Cosines with the factors 0.42, 0.5, 0.08.", lambda M: cosines((0.42, 0.5, 0.08)))
cosine = _symmetric("cosine", "sin(π(n + ½)/(m + 1)).", lambda M: lambda n, m: np.sin(math.pi * (n + 0.5) / (m + 1)))
exponential = _symmetric("exponential", "e^(-|n - center|/τ).", _decay, center=None, tau=1.0)
gaussian = _symmetric(
    "gaussian",
    "e^(-(n - m/2)²/(2·std²)).",
    lambda M, std: lambda n, m: np.exp(-(((n - m / 2) / std) ** 2) / 2),
    std=1.0,
)
general_cosine = _symmetric("general_cosine", "Σ (-1)ᵏ·aₖ·cos(2πkn/m).", _cosines, a=())
general_hamming = _symmetric(
    "general_hamming", "α - (1 - α)·cos(2πn/m).", lambda M, alpha: cosines((alpha, 1 - alpha)), alpha=0.54
)
hamming = _symmetric("hamming", "0.54 - 0.46·cos(2πn/m).", lambda M: cosines((0.54, 0.46)))
hann = _symmetric("hann", "½ - ½·cos(2πn/m).", lambda M: cosines((0.5, 0.5)))
kaiser = _symmetric("kaiser", "I₀(β·√(1 - (2n/m - 1)²)) / I₀(β).", lambda M, beta: windows.kaiser(beta), beta=12.0)
nuttall = _symmetric(
    "nuttall",
    "Cosines with the factors 0.3635819, 0.4891775, 0.1365995, 0.0106411.",
    lambda M: cosines((0.3635819, 0.4891775, 0.1365995, 0.0106411)),
)
