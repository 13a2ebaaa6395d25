"""The functions of networks that differ from those of ``runnel`` in their arguments, which are PyTorch's here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel import ops
from runnel.core.dtypes import as_dtype
from runnel.core.errors import ShapeError
from runnel.core.surface import offered, offered_names
from runnel.nn.spatial import over_axes
from runnel.ops.arguments import Array, as_shape, normalize_axis
from runnel.tensor import random
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

conv1d, conv2d, conv3d = over_axes(ops.conv, "conv")
conv_transpose1d, conv_transpose2d, conv_transpose3d = over_axes(ops.conv_transpose, "conv_transpose")
max_pool1d, max_pool2d, max_pool3d = over_axes(ops.max_pool, "max_pool")
avg_pool1d, avg_pool2d, avg_pool3d = over_axes(ops.avg_pool, "avg_pool")
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = over_axes(ops.adaptive_avg_pool, "adaptive_avg_pool")
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = over_axes(ops.adaptive_max_pool, "adaptive_max_pool")
offered_names("functional", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
offered_names("functional", "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d")
offered_names("functional", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
offered_names("functional", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")


@offered("functional")
def softmax(x: Array, dim: int = -1, dtype: Any = None) -> Tensor:
    """exp(x) along ``dim``, divided by its sum."""
    result: Tensor = ops.softmax(x if dtype is None else ops.cast(x, as_dtype(dtype)), dim)
    return result


@offered("functional")
def log_softmax(x: Array, dim: int = -1, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along ``dim``."""
    result: Tensor = ops.log_softmax(x if dtype is None else ops.cast(x, as_dtype(dtype)), dim)
    return result


@offered("functional")
def dropout(x: Array, p: float = 0.5, training: bool = True) -> Tensor:
    """Elements zeroed with probability ``p`` and the rest divided by 1 - p; x itself unless ``training``."""
    return random.dropout(x, p, training)


@offered("functional")
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    lengths: Array | None = None,
) -> Tensor:
    """softmax(query·keyᵀ·scale + mask)·value (``runnel.scaled_dot_product_attention``); dropout draws from the default
    generator."""
    result: Tensor = ops.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa,
        lengths=lengths, dropout_key=random.next_key(None, query.device) if dropout_p else None,
    )  # fmt: skip
    return result


@offered("functional")
def varlen_attn(
    query: Array,
    key: Array,
    value: Array,
    cu_seq_q: Array,
    cu_seq_k: Array | None = None,
    max_q: int | None = None,
    max_k: int | None = None,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    dropout_p: float = 0.0,
) -> Tensor:
    """Attention within sequences that lie one after another (``runnel.varlen_attn``); dropout draws from the default
    generator."""
    result: Tensor = ops.varlen_attn(
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal, scale=scale, enable_gqa=enable_gqa,
        dropout_p=dropout_p, dropout_key=random.next_key(None, query.device) if dropout_p else None,
    )  # fmt: skip
    return result


@offered("functional")
def pad(x: Array, pad: Sequence[int], mode: str = "constant", value: bool | int | float = 0) -> Tensor:
    """``x`` with elements put around it, as in PyTorch: ``pad`` is (before, after) of the last axis, then of the one
    before it, … . The modes and ``value`` are those of :func:`runnel.pad`, which takes a pair for each axis."""
    widths = as_shape("pad", pad)
    if len(widths) % 2 or len(widths) > 2 * x.ndim:
        raise ShapeError(
            f"[pad] pad is (before, after) of the last axis, then of the one before it, …: an even number of ints, at "
            f"most {2 * x.ndim} for shape {x.shape}; received {pad!r}. runnel.pad takes a pair for each axis."
        )
    pairs = [(widths[i], widths[i + 1]) for i in range(0, len(widths), 2)]
    pairs += [(0, 0)] * (x.ndim - len(pairs))
    result: Tensor = ops.pad(x, pairs[::-1], value, mode)
    return result


@offered("functional")
def embedding(labels: Array, weight: Array) -> Tensor:
    """The rows of ``weight`` numbered by ``labels``."""
    result: Tensor = ops.embedding(weight, labels)
    return result


@offered("functional")
def glu(x: Array, dim: int = -1) -> Tensor:
    """The first half of ``x`` along ``dim`` times the sigmoid of the second."""
    size = x.shape[normalize_axis("glu", dim, x.ndim)]
    if size % 2:
        raise ShapeError(f"[glu] axis {dim} of shape {x.shape} has an odd size and no halves.")
    first, gate = ops.split(x, (size // 2, size // 2), dim)
    result: Tensor = ops.glu(first, gate)
    return result


@offered("functional")
def rms_norm(x: Array, normalized_shape: int | Sequence[int], weight: Array | None = None, eps: float = 1e-6) -> Tensor:
    """``x`` divided by its root mean square over the last axis, which has ``normalized_shape``; then scaled."""
    shape = as_shape("rms_norm", normalized_shape)
    if shape != x.shape[-1:]:
        raise ShapeError(f"[rms_norm] the normalized shape {shape} must be the last axis of shape {x.shape}.")
    result: Tensor = ops.rms_norm(x, weight, eps)
    return result


@offered("functional")
def normalize(x: Array, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """``x`` divided by its norm along ``dim`` (at least ``eps``)."""
    result: Tensor = x / ops.maximum(ops.norm(x, p, dim, keepdims=True), eps)
    return result


@offered("functional")
def batch_norm(
    x: Array,
    running_mean: Variable | None,
    running_var: Variable | None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: Any = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Channels of ``x`` (N, C, …) normalized by the running statistics or, in ``training``, by their own moments, which
    then move the running ones by ``momentum`` (the unbiased variance, as in PyTorch). An empty batch moves nothing."""
    if x.ndim < 2:
        raise ShapeError(f"[batch_norm] an input has axes (N, C, …); received shape {x.shape}.")
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("[batch_norm] without training, running_mean and running_var are needed.")
        result: Tensor = ops.batch_norm(x, running_mean, running_var, weight, bias, eps)
        return result
    if x.ndim < 2:
        raise ShapeError(f"[batch_norm] an input has a batch axis and a channel axis; got shape {x.shape}.")
    require_variance(x)
    if x.size == 0:  # nothing to learn from, as in PyTorch
        channels = ops.full_like(x, 1, (x.shape[1],))
        unmoved: Tensor = ops.batch_norm(x, channels - 1, channels, weight, bias, eps)
        return unmoved
    count = x.size // max(x.shape[1], 1)
    mean, variance = ops.channel_moments(x)
    _move(running_mean, mean, momentum)
    _move(running_var, variance * (count / max(count - 1, 1)), momentum)
    result = ops.batch_norm(x, mean, variance, weight, bias, eps)
    return result


def require_variance(x: Any) -> None:
    """ShapeError for a batch with one element for each channel."""
    if x.ndim > 1 and x.size == x.shape[1] != 0:
        raise ShapeError(
            f"[batch_norm] a single element for each channel has no variance; got shape {x.shape}. Use a larger batch, "
            "or evaluation mode."
        )


@offered("functional")
def instance_norm(
    x: Array,
    running_mean: Variable | None = None,
    running_var: Variable | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    use_input_stats: bool = True,
    momentum: Any = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each image of ``x`` (N, C, …) normalized by its own moments, or by running statistics."""
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    if running_mean is not None and running_var is not None:
        axes = tuple(range(2, x.ndim))
        _move(running_mean, ops.mean(ops.mean(x, axes), 0), momentum)
        _move(running_var, ops.mean(ops.var(x, axes, correction=1), 0), momentum)
    result: Tensor = ops.instance_norm(x, weight, bias, eps)
    return result


def _move(running: Variable | None, new: Any, momentum: Any) -> None:
    if running is not None:
        running.assign(ops.cast(running * (1 - momentum) + new.detach() * momentum, running.dtype))
