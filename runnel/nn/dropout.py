"""Dropout of elements, of whole channels, and with the mean and variance of SELU's outputs kept."""

from __future__ import annotations

import math
from typing import Final

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn.layer import Layer, layer
from runnel.ops.arguments import Array
from runnel.tensor import random
from runnel.tensor.tensor import Tensor

_LOWEST: Final = -1.7580993408473766  # what SELU goes to for x → -∞ (G. Klambauer et al., 2017)


def _require_probability(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"[{name}] p must be a probability in [0, 1]; got {p}.")


def _keep_mask(x: Array, p: float, shape: tuple[int, ...]) -> Array:
    """Return an array of ``shape`` that is 1 with probability 1 - p and else 0."""
    return ops.cast(ops.bernoulli(random.next_key(None, x.device), 1 - p, shape), x.dtype)


def _channels(x: Array) -> tuple[int, ...]:
    """Return the shape of one number for each channel of (N, C, …)."""
    return (*x.shape[:2], *(1,) * (x.ndim - 2))


def _of_channels(name: str, x: Array, p: float, training: bool, ranks: tuple[int, ...], alone: int) -> Tensor:
    """Set channels to 0 with probability ``p``; an input of ``alone`` axes has no batch."""
    _require_probability(name, p)
    if x.ndim not in ranks:
        raise ShapeError(f"[{name}] x must have {' or '.join(map(str, ranks))} axes; got shape {x.shape}.")
    if not training or p == 0:
        unchanged: Tensor = x.read()
        return unchanged
    shape = (x.shape[0], *(1,) * (x.ndim - 1)) if x.ndim == alone else _channels(x)
    result: Tensor = x * (_keep_mask(x, p, shape) / (1 - p) if p < 1 else 0)
    return result


def dropout1d(x: Array, p: float = 0.5, training: bool = True) -> Tensor:
    """Set channels of (N, C, L) or (C, L) to 0 with probability ``p`` and divide the rest by 1 - p.

    J. Tompson et al., 2015.
    """
    return _of_channels("dropout1d", x, p, training, (2, 3), 2)


def dropout2d(x: Array, p: float = 0.5, training: bool = True) -> Tensor:
    """Set channels of (N, C, H, W) to 0 with probability ``p`` and divide the rest by 1 - p.

    Three axes are (N, C, L), and two are (N, C), as in PyTorch.
    """
    return _of_channels("dropout2d", x, p, training, (2, 3, 4), -1)


def dropout3d(x: Array, p: float = 0.5, training: bool = True) -> Tensor:
    """Set channels of (N, C, D, H, W) or (C, D, H, W) to 0 with probability ``p`` and divide the rest by 1 - p."""
    return _of_channels("dropout3d", x, p, training, (4, 5), 4)


def _to_lowest(x: Array, p: float, shape: tuple[int, ...]) -> Tensor:
    """Set elements to SELU's lowest value with probability ``p``; then restore mean 0 and variance 1."""
    if p == 1:
        nothing: Tensor = x * 0
        return nothing
    keep_mask = _keep_mask(x, p, shape)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _LOWEST**2))
    result: Tensor = x * (keep_mask * scale) + ((1 - keep_mask) * (_LOWEST * scale) - _LOWEST * scale * p)
    return result


def alpha_dropout(x: Array, p: float = 0.5, training: bool = False) -> Tensor:
    """Set elements to SELU's lowest value with probability ``p``; then scale and shift to keep mean and variance.

    G. Klambauer et al., 2017.
    """
    _require_probability("alpha_dropout", p)
    return _to_lowest(x, p, x.shape) if training and p else x.read()


def feature_alpha_dropout(x: Array, p: float = 0.5, training: bool = False) -> Tensor:
    """Apply ``alpha_dropout`` to whole channels of (N, C, …)."""
    _require_probability("feature_alpha_dropout", p)
    if not training or not p:
        return x.read()
    if x.ndim < 2:
        raise ShapeError(f"[feature_alpha_dropout] x must have axes (N, C, …); got shape {x.shape}.")
    return _to_lowest(x, p, _channels(x))


class _Dropout(Layer):
    def _check(self) -> None:
        _require_probability(type(self).__name__, self.p)


_DOC = """
Only in training mode; in evaluation mode the layer returns its input.

Args:
    p: the probability, in [0, 1].

Example:
    >>> nn.Dropout(0.5).eval()(rn.ones(3))
    Tensor([1., 1., 1.], dtype=float32)
"""

Dropout = layer("Dropout", random.dropout, "p=0.5, inplace=False", base=_Dropout, doc=_DOC)
Dropout1d = layer("Dropout1d", dropout1d, "p=0.5, inplace=False", base=_Dropout)
Dropout2d = layer("Dropout2d", dropout2d, "p=0.5, inplace=False", base=_Dropout)
Dropout3d = layer("Dropout3d", dropout3d, "p=0.5, inplace=False", base=_Dropout)
AlphaDropout = layer("AlphaDropout", alpha_dropout, "p=0.5, inplace=False", base=_Dropout)
FeatureAlphaDropout = layer("FeatureAlphaDropout", feature_alpha_dropout, "p=0.5, inplace=False", base=_Dropout)
