"""Functions of networks whose arguments differ from ``runnel``; here they are PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from runnel import ops
from runnel.core.composed import composed
from runnel.core.dtypes import Dtype, float64, int64
from runnel.core.errors import ShapeError
from runnel.nn import windows
from runnel.nn.windows import over_axes
from runnel.ops.arguments import Array, as_shape, normalize_axis
from runnel.ops.indexing.gather import labels_below
from runnel.ops.losses import reduced
from runnel.tensor import random
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

conv1d, conv2d, conv3d = over_axes(ops.conv, "conv{}")
conv_transpose1d, conv_transpose2d, conv_transpose3d = over_axes(ops.conv_transpose, "conv_transpose{}")
max_pool1d, max_pool2d, max_pool3d = over_axes(windows.max_pool, "max_pool{}")
avg_pool1d, avg_pool2d, avg_pool3d = over_axes(ops.avg_pool, "avg_pool{}")
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = over_axes(ops.adaptive_avg_pool, "adaptive_avg_pool{}")
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = over_axes(
    windows.adaptive_max_pool, "adaptive_max_pool{}"
)


def softmax(x: Array, dim: int = -1, dtype: Dtype = None) -> Tensor:
    """Compute exp(x) divided by its sum along ``dim``."""
    result: Tensor = ops.softmax(x, dim, dtype)
    return result


def log_softmax(x: Array, dim: int = -1, dtype: Dtype = None) -> Tensor:
    """Compute log(softmax(x)) along ``dim``."""
    result: Tensor = ops.log_softmax(x, dim, dtype)
    return result


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
    """Compute softmax(query·keyᵀ·scale + mask)·value; dropout draws from the default generator.

    See :func:`runnel.scaled_dot_product_attention`.
    """
    result: Tensor = ops.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa,
        lengths=lengths, dropout_key=random.next_key(None, query.device) if dropout_p else None,
    )  # fmt: skip
    return result


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
    """Compute attention within sequences that follow one another; dropout draws from the default generator.

    See :func:`runnel.varlen_attn`.
    """
    result: Tensor = ops.varlen_attn(
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal, scale=scale, enable_gqa=enable_gqa,
        dropout_p=dropout_p, dropout_key=random.next_key(None, query.device) if dropout_p else None,
    )  # fmt: skip
    return result


def pad(x: Array, pad: Sequence[int], mode: str = "constant", value: bool | int | float | None = None) -> Tensor:
    """Add elements around ``x``, as in PyTorch.

    Args:
        x: an array.
        pad: (before, after) of the last axis, then of the one before it, and so on. Negative numbers remove elements.
        mode: a mode of :func:`runnel.compat.numpy.pad`, which takes a pair for each axis.
        value: the value of new elements; 0 by default.
    """
    given, widths = x, as_shape("pad", pad)
    if len(widths) % 2 or len(widths) > 2 * x.ndim:
        raise ShapeError(
            f"[pad] pad must be (before, after) of the last axis, then of the one before it, …: an even number of "
            f"ints, at most {2 * x.ndim} for shape {x.shape}; got {pad!r}. "
            "runnel.compat.numpy.pad takes a pair for each axis."
        )
    pairs = [(widths[i], widths[i + 1]) for i in range(0, len(widths), 2)]
    pairs += [(0, 0)] * (x.ndim - len(pairs))
    pairs.reverse()
    if mode == "circular":  # first remove, since removed elements are not repeated at the other end
        x, pairs = _cut(x, pairs, pad), [(max(before, 0), max(after, 0)) for before, after in pairs]
    around = [(max(before, 0), max(after, 0)) for before, after in pairs]
    result = _cut(ops.pad(x, around, 0 if value is None else value, mode), pairs, pad)
    separate: Tensor = x.handle() if result is given else result.separate()
    return separate


def _cut(x: Array, pairs: Sequence[tuple[int, int]], asked: Sequence[int]) -> Tensor:
    """Remove the elements of ``x`` that negative ``pairs`` name."""
    for axis, (before, after) in enumerate(pairs):
        cuts = max(-before, 0), max(-after, 0)
        if any(cuts):
            size = x.shape[axis] - sum(cuts)
            if size < 0:
                raise ShapeError(
                    f"[pad] pad must not remove more than axis {axis} of shape {x.shape} has; got {asked!r}."
                )
            x = ops.narrow(x, axis, cuts[0], size)
    return x


def embedding(
    labels: Array,
    weight: Array,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Look up the rows of ``weight`` by ``labels``.

    Args:
        labels: integers.
        weight: the rows (n, …).
        padding_idx: a row that gets no gradient.
        max_norm: shorten the rows that are looked up to this ``norm_type``-norm, in ``weight``, a Variable.
        norm_type: the p of the p-norm of ``max_norm``.
        scale_grad_by_freq: divide the gradient of each row by the number of times it was looked up.
        sparse: has no effect; the ``is_sparse`` of a Parameter tells optimizers what to do.
    """
    if max_norm is not None:
        _shorten(labels, weight, max_norm, norm_type)
    rows: Tensor = ops.embedding(weight, labels)
    if scale_grad_by_freq:
        share = ops.embedding(1 / ops.maximum(_counts(labels, weight), 1), labels)
        still = ops.stop_gradient(rows)
        rows = still + (rows - still) * share
    if padding_idx is not None:
        is_padding = ops.equal(ops.expand_dims(labels, labels.ndim), padding_idx % weight.shape[0])
        rows = ops.where(is_padding, ops.stop_gradient(rows), rows)
    return rows


def _counts(labels: Array, weight: Array) -> Array:
    """Return how often each row is looked up, as (n, 1)."""
    flat = ops.reshape(labels, (-1,))
    return ops.scatter_add(flat, ops.full_like(weight.read().without_tape(), 1, (flat.shape[0], 1)), weight.shape[0])


def _shorten(labels: Array, weight: Array, max_norm: float, norm_type: float) -> None:
    if not isinstance(weight, Variable):
        raise TypeError(
            f"[embedding] weight must be a Variable for max_norm, which changes its rows; got {type(weight).__name__}. "
            "Shorten them before the call."
        )
    rows = weight.read().without_tape()
    size = ops.norm(rows, norm_type, 1, keepdims=True)
    is_long = ops.logical_and(ops.greater(size, max_norm), ops.greater(_counts(labels, weight), 0))
    weight.assign(rows * ops.where(is_long, max_norm / (size + 1e-7), 1.0))


def glu(x: Array, dim: int = -1) -> Tensor:
    """Multiply the first half of ``x`` along ``dim`` by the sigmoid of the second half."""
    size = x.shape[normalize_axis("glu", dim, x.ndim)]
    if size % 2:
        raise ShapeError(f"[glu] axis {dim} must have an even size; got shape {x.shape}.")
    first, gate = ops.split(x, (size // 2, size // 2), dim)
    result: Tensor = ops.glu(first, gate)
    return result


def rms_norm(
    x: Array, normalized_shape: int | Sequence[int], weight: Array | None = None, eps: float | None = None
) -> Tensor:
    """Divide ``x`` by its root mean square over the last axes, of ``normalized_shape``; multiply by ``weight``.

    ``eps`` is added to the mean square; by default it is the machine epsilon of the dtype of the computation.
    """
    shape = as_shape("rms_norm", normalized_shape)
    if not shape or shape != x.shape[-len(shape) :]:
        raise ShapeError(f"[rms_norm] the last axes of x must have the normalized shape {shape}; got {x.shape}.")
    if weight is not None and weight.shape != shape:
        raise ShapeError(f"[rms_norm] weight must have the normalized shape {shape}; got {weight.shape}.")
    least = (2.0**-52 if x.dtype is float64 else 2.0**-23) if eps is None else eps
    if len(shape) == 1:
        single: Tensor = ops.rms_norm(x, weight, least)
        return single
    flat = None if weight is None else ops.reshape(weight, (-1,))
    rows = ops.rms_norm(ops.reshape(x, (*x.shape[: -len(shape)], math.prod(shape))), flat, least)
    result: Tensor = ops.reshape(rows, x.shape)
    return result


@composed
def normalize(x: Array, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide ``x`` by its norm along ``dim``, or by ``eps`` if that is larger."""
    result: Tensor = x / ops.maximum(ops.norm(x, p, dim, keepdims=True), eps)
    return result


def batch_norm(
    x: Array,
    running_mean: Array | None,
    running_var: Array | None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: Any = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize the channels of ``x`` (N, C, …) by the running statistics, or in ``training`` by their own moments.

    In ``training`` the running statistics, Variables or tensors, change in place by ``momentum``, with the unbiased
    variance as in PyTorch. An empty batch does not change them.
    """
    if x.ndim < 2:
        raise ShapeError(f"[batch_norm] x must have axes (N, C, …); got shape {x.shape}.")
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("[batch_norm] running_mean and running_var must not be None without training.")
        result: Tensor = ops.batch_norm(x, running_mean, running_var, weight, bias, eps)
        return result
    require_variance(x)
    if x.size == 0:  # nothing to learn from, as in PyTorch
        channels = ops.full_like(x, 1, (x.shape[1],))
        unmoved: Tensor = ops.batch_norm(x, channels - 1, channels, weight, bias, eps)
        return unmoved
    old_mean = None if running_mean is None else running_mean.without_tape()
    old_var = None if running_var is None else running_var.without_tape()
    result, *moved = batch_norm_in_training(x, old_mean, old_var, weight, bias, momentum, eps)
    if running_var is not None:
        _store(
            running_var,
            old_var,
            moved.pop(),
            lambda old: _moved(old, _unbiased(ops.channel_moments(x)[1], x), momentum),
        )
    if running_mean is not None:
        _store(running_mean, old_mean, moved.pop(), lambda old: _moved(old, ops.channel_moments(x)[0], momentum))
    return result


@composed
def batch_norm_in_training(
    x: Array,
    running_mean: Array | None,
    running_var: Array | None,
    weight: Array | None,
    bias: Array | None,
    momentum: Any,
    eps: float,
) -> tuple[Array, ...]:
    """Return ``x`` normalized by its own moments, and the next values of the running statistics that are not None."""
    mean, variance = ops.channel_moments(x)
    moved = [] if running_mean is None else [_moved(running_mean, mean, momentum)]
    if running_var is not None:
        moved.append(_moved(running_var, _unbiased(variance, x), momentum))
    return (ops.batch_norm(x, mean, variance, weight, bias, eps), *moved)


def _unbiased(variance: Any, x: Array) -> Any:
    count = x.size // max(x.shape[1], 1)
    return variance * (count / max(count - 1, 1))


def _moved(running: Any, new: Any, momentum: Any) -> Any:
    """Return the next value of running statistics."""
    return ops.cast(running * (1 - momentum) + new.without_tape() * momentum, running.dtype)


def _store(running: Any, before: Any, value: Any, again: Callable[[Any], Any]) -> None:
    """Store running statistics, a Variable or a tensor, whose ``value`` was computed from ``before``. If another thread
    has assigned a Variable meanwhile, the value is computed ``again``."""
    if not isinstance(running, Variable):
        running.update("batch_norm", lambda _: value)
    elif not running.replace(value, before):
        running.update("batch_norm", again)


def require_variance(x: Any) -> None:
    """Raise ShapeError for a batch with one element for each channel."""
    if x.ndim > 1 and x.size == x.shape[1] != 0:
        raise ShapeError(
            f"[batch_norm] x must have more than one element for each channel in training mode; got shape {x.shape}. "
            "Use a larger batch, or evaluation mode."
        )


def instance_norm(
    x: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    use_input_stats: bool = True,
    momentum: Any = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each image of ``x`` (N, C, …) by its own moments, or by running statistics."""
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    if running_mean is not None and running_var is not None:
        axes = tuple(range(2, x.ndim))
        new_mean, new_var = ops.mean(ops.mean(x, axes), 0), ops.mean(ops.var(x, axes, correction=1), 0)
        running_mean.update("instance_norm", lambda old: _moved(old, new_mean, momentum))
        running_var.update("instance_norm", lambda old: _moved(old, new_var, momentum))
    result: Tensor = ops.instance_norm(x, weight, bias, eps)
    return result


def mse_loss(x: Array, target: Array, *, reduction: str = "mean", weight: Array | None = None) -> Tensor:
    """Compute (x - target)². ``weight``, of the shape of x, multiplies each element; a mean is divided by its sum."""
    if weight is None:
        plain: Tensor = ops.mse_loss(x, target, reduction=reduction)
        return plain
    return _weighted("mse_loss", ops.mse_loss(x, target, reduction="none"), weight, reduction)


def l1_loss(x: Array, target: Array, *, reduction: str = "mean", weight: Array | None = None) -> Tensor:
    """Compute |x - target|; ``weight`` as in :func:`mse_loss`."""
    if weight is None:
        plain: Tensor = ops.l1_loss(x, target, reduction=reduction)
        return plain
    return _weighted("l1_loss", ops.l1_loss(x, target, reduction="none"), weight, reduction)


def huber_loss(
    x: Array, target: Array, reduction: str = "mean", delta: float = 1.0, weight: Array | None = None
) -> Tensor:
    """Compute d²/2 for differences d up to delta, and delta·(|d| - delta/2) for larger ones.

    ``weight`` is used as in :func:`mse_loss`.
    """
    if weight is None:
        plain: Tensor = ops.huber_loss(x, target, reduction, delta)
        return plain
    return _weighted("huber_loss", ops.huber_loss(x, target, "none", delta), weight, reduction)


def _weighted(name: str, losses: Array, weight: Array, reduction: str) -> Tensor:
    """Multiply each loss by its weight."""
    if weight.shape != losses.shape:
        raise ShapeError(f"[{name}] weight must have the shape of x, {losses.shape}; got {weight.shape}.")
    terms = losses * weight
    result: Tensor = ops.sum(terms) / ops.sum(weight) if reduction == "mean" else reduced(name, terms, reduction)
    return result


def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Compute log(1 + exp(beta·x)) / beta, or x where beta·x is greater than ``threshold``."""
    result: Tensor = ops.where(ops.greater(x * beta, threshold), x, ops.softplus(x, beta))
    return result


def one_hot(x: Array, num_classes: int = -1) -> Tensor:
    """Add a last axis of size ``num_classes``, int64: 1 at the label and 0 elsewhere.

    By default the size is the largest label plus 1, which is not known in a compiled function.
    """
    if num_classes == -1:
        known = x.known()
        if known is None:
            raise ValueError("[one_hot] num_classes must be given in a compiled function, where labels are not known.")
        num_classes = int(known.astype(int).max(initial=-1)) + 1
    result: Tensor = ops.one_hot(labels_below(ops.cast(x, int64), num_classes), num_classes, int64)
    return result
