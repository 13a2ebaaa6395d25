"""The functions of networks under PyTorch's names and with its argument order, usually imported as ``F``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel import ops
from runnel.core.dtypes import as_dtype
from runnel.core.errors import ShapeError
from runnel.ops import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    elu,
    gelu,
    hardsigmoid,
    hardswish,
    hardtanh,
    huber_loss,
    kl_div,
    l1_loss,
    layer_norm,
    leaky_relu,
    linear,
    log_sigmoid as logsigmoid,
    mish,
    mse_loss,
    nll_loss,
    one_hot,
    pad,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    smooth_l1_loss,
    softplus,
    tanh,
)
from runnel.tensor import random
from runnel.tensor.tensor import Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "relu",
    "relu6",
    "rms_norm",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "tanh",
]


def softmax(x: Any, dim: int = -1, dtype: Any = None) -> Tensor:
    """exp(x) along ``dim``, divided by its sum."""
    result: Tensor = ops.softmax(x if dtype is None else ops.cast(x, as_dtype(dtype)), dim)
    return result


def log_softmax(x: Any, dim: int = -1, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along ``dim``."""
    result: Tensor = ops.log_softmax(x if dtype is None else ops.cast(x, as_dtype(dtype)), dim)
    return result


def dropout(x: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Elements zeroed with probability ``p`` and the rest divided by 1 - p; x itself unless ``training``."""
    return random.dropout(x, p, training)


def embedding(labels: Any, weight: Any) -> Tensor:
    """The rows of ``weight`` numbered by ``labels``."""
    result: Tensor = ops.embedding(weight, labels)
    return result


def glu(x: Any, dim: int = -1) -> Tensor:
    """The first half of ``x`` along ``dim`` times the sigmoid of the second."""
    first, gate = ops.split(x, x.shape[dim] // 2, dim)
    result: Tensor = ops.glu(first, gate)
    return result


def rms_norm(x: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float = 1e-6) -> Tensor:
    """``x`` divided by its root mean square over the last axis, which has ``normalized_shape``; then scaled."""
    if tuple(normalized_shape) != x.shape[-1:]:
        raise ShapeError(
            f"[rms_norm] the normalized shape {tuple(normalized_shape)} must be the last axis of shape {x.shape}."
        )
    result: Tensor = ops.rms_norm(x, weight, eps)
    return result


def normalize(x: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """``x`` divided by its norm along ``dim`` (at least ``eps``)."""
    result: Tensor = x / ops.maximum(ops.norm(x, dim, p, keepdims=True), eps)
    return result
