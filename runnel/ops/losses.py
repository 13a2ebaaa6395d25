"""Loss functions, with the arguments and conventions of PyTorch's functions of the same names.

``reduction`` is "mean", "sum" or "none".
"""

from __future__ import annotations

import math
from typing import Any

from runnel.core.composed import composed
from runnel.core.dtypes import int64
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.tracebacks import warn_user
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast
from runnel.ops.creation_like import iota
from runnel.ops.elementwise.activations import log_softmax, shifted, softplus
from runnel.ops.elementwise.arithmetic import abs, add, divide, maximum, multiply, negative, subtract
from runnel.ops.elementwise.comparison import equal, greater_equal, not_equal, where
from runnel.ops.elementwise.exponential import exp, log, square
from runnel.ops.indexing.gather import labels_below, picked
from runnel.ops.reductions.primitives import sum
from runnel.ops.reductions.statistics import mean
from runnel.ops.shapes.views import expand_dims, reshape, squeeze

IGNORED = -100  # the label that PyTorch leaves out by default


def reduced(name: str, losses: Array, reduction: str) -> Array:
    """Return the mean or sum of the losses, or the losses themselves."""
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum(losses)
    if reduction == "none":
        return losses
    raise ValueError(f"[{name}] reduction is 'mean', 'sum' or 'none', got {reduction!r}.")


def _shape(x: Any) -> tuple[int, ...]:
    """Return the shape of an array, or () for a number."""
    shape: tuple[int, ...] = getattr(x, "shape", ())
    return shape


def require_same_shape(name: str, x: Array, target: Array) -> None:
    """Raise ShapeError unless both have one shape: broadcasting (N, 1) and (N,) would pair N² elements."""
    if x.shape != _shape(target) != ():
        raise ShapeError(
            f"[{name}] x and target must have the same shape; got {x.shape} and {_shape(target)}. Use squeeze(1) "
            "or unsqueeze(1)."
        )


def _difference(name: str, x: Array, target: Array) -> Array:
    """Return x - target, with a warning where PyTorch warns: they broadcast."""
    difference = subtract(x, target)
    if x.shape != _shape(target) and x.shape != () != _shape(target):
        warn_user(
            f"[{name}] x of shape {x.shape} and a target of shape {target.shape} are broadcast against one another, "
            "which is seldom meant: of (N, 1) and (N,) all N² pairs are compared. Give both one shape.",
            UserWarning,
        )
    return difference


@composed
def mse_loss(x: Array, target: Array, *, reduction: str = "mean") -> Array:
    """Return the squared error (x - target)²; shapes broadcast with a UserWarning.

    ``reduction`` is "mean", "sum" or "none", as in all losses here; ValueError otherwise."""
    return reduced("mse_loss", square(_difference("mse_loss", x, target)), reduction)


@composed
def l1_loss(x: Array, target: Array, *, reduction: str = "mean") -> Array:
    """Return the absolute error |x - target|; shapes broadcast with a UserWarning."""
    return reduced("l1_loss", abs(_difference("l1_loss", x, target)), reduction)


@composed
def smooth_l1_loss(x: Array, target: Array, *, reduction: str = "mean", beta: float = 1.0) -> Array:
    """Return d² / (2·beta) for differences |d| below beta, and |d| - beta/2 for larger ones."""
    if beta == 0:
        return l1_loss(x, target, reduction=reduction)
    distance = abs(_difference("smooth_l1_loss", x, target))
    is_far = greater_equal(distance, beta)
    near = multiply(square(where(is_far, 0, distance)), 0.5 / beta)  # no infinity is squared
    return reduced("smooth_l1_loss", where(is_far, subtract(distance, 0.5 * beta), near), reduction)


@composed
def huber_loss(x: Array, target: Array, reduction: str = "mean", delta: float = 1.0) -> Array:
    """Return d² / 2 for differences |d| below delta, which must be positive, and delta·(|d| - delta/2) for larger
    ones."""
    if delta <= 0:
        raise ValueError(f"[huber_loss] delta must be positive; got {delta}.")
    distance = abs(_difference("huber_loss", x, target))
    is_far = greater_equal(distance, delta)
    near = multiply(square(where(is_far, 0, distance)), 0.5)  # no infinity is squared
    far = multiply(subtract(distance, 0.5 * delta), delta)
    return reduced("huber_loss", where(is_far, far, near), reduction)


@composed
def binary_cross_entropy(x: Array, target: Array, weight: Array | None = None, *, reduction: str = "mean") -> Array:
    """Return -(target·log x + (1 - target)·log(1 - x)) for probabilities x.

    Each logarithm is at least -100, and an x outside [0, 1] is NaN. ShapeError unless the target is a number or has
    x's shape."""
    require_same_shape("binary_cross_entropy", x, target)
    losses = negative(
        add(multiply(target, _bounded_log(x)), multiply(subtract(1, target), _bounded_log(subtract(1, x))))
    )
    return reduced("binary_cross_entropy", losses if weight is None else multiply(losses, weight), reduction)


def _bounded_log(x: Array) -> Array:
    zero = equal(x, 0)
    return where(zero, -100, maximum(log(where(zero, 1, x)), -100))


@composed
def binary_cross_entropy_with_logits(
    x: Array, target: Array, weight: Array | None = None, *, reduction: str = "mean", pos_weight: Array | None = None
) -> Array:
    """Return the binary cross-entropy of sigmoid(x), without overflow.

    ShapeError unless the target is a number or has x's shape."""
    require_same_shape("binary_cross_entropy_with_logits", x, target)
    if pos_weight is None:
        losses = subtract(softplus(x), multiply(x, target))
    else:
        scale = add(multiply(subtract(pos_weight, 1), target), 1)
        losses = add(multiply(subtract(1, target), x), multiply(scale, softplus(negative(x))))
    return reduced(
        "binary_cross_entropy_with_logits", losses if weight is None else multiply(losses, weight), reduction
    )


@composed
def kl_div(x: Array, target: Array, *, reduction: str = "mean", log_target: bool = False) -> Array:
    """Return target·(log target - x) for log-probabilities x; "batchmean" divides the sum by the size of the first
    axis."""
    if log_target:
        losses = multiply(exp(target), subtract(target, x))
    else:
        is_zero = equal(target, 0)
        losses = where(is_zero, 0, multiply(target, subtract(log(where(is_zero, 1, target)), x)))
    if reduction == "batchmean":
        return divide(sum(losses), x.shape[0] if x.ndim else 1)
    return reduced("kl_div", losses, reduction)


# --- classification -----------------------------------------------------------------------------------------------


@composed
def nll_loss(
    x: Array, target: Array, weight: Array | None = None, *, ignore_index: int = IGNORED, reduction: str = "mean"
) -> Array:
    """Return -x at the target's class, for log-probabilities x (N, C, ...) or (C,) and labels (N, ...) or ()."""
    axis = _class_axis("nll_loss", x)
    target = _labels("nll_loss", x, target, axis, ignore_index)
    losses = negative(squeeze(picked(x, expand_dims(target, axis), axis), axis))
    return _averaged("nll_loss", losses, x, target, weight, ignore_index, reduction, axis)


@composed
def cross_entropy(
    x: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int = IGNORED,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """Return the cross-entropy of softmax(x), for logits x of shape (N, C, ...) or (C,).

    ``target`` contains labels, in x's shape without the class axis, or probabilities of x's shape."""
    axis = _class_axis("cross_entropy", x)
    if target.dtype.is_float:
        return _from_probabilities(x, target, weight, reduction, label_smoothing, axis)
    target = _labels("cross_entropy", x, target, axis, ignore_index)
    below = shifted(x, axis)
    log_total = log(sum(exp(below), axis))
    losses = subtract(log_total, squeeze(picked(below, expand_dims(target, axis), axis), axis))
    hard = _averaged("cross_entropy", losses, x, target, weight, ignore_index, reduction, axis)
    if label_smoothing == 0:
        return hard
    spread = subtract(expand_dims(log_total, axis), below)
    if weight is not None:
        spread = multiply(spread, _along(weight, x, axis))
    valid = not_equal(target, ignore_index)
    smooth = where(valid, sum(spread, axis), 0)
    if reduction == "mean":
        smooth = divide(sum(smooth), sum(_label_weights(x, target, weight, ignore_index, axis)))
    else:
        smooth = reduced("cross_entropy", smooth, reduction)
    return add(multiply(hard, 1 - label_smoothing), multiply(smooth, _share(label_smoothing, x.shape[axis])))


def _share(label_smoothing: float, classes: int) -> float:
    """Return how much of a target is every class's; infinity if there is no class, as in PyTorch."""
    return label_smoothing / classes if classes else math.inf


def _from_probabilities(
    x: Array, target: Array, weight: Array | None, reduction: str, label_smoothing: float, axis: int
) -> Array:
    if target.shape != x.shape:
        raise ShapeError(
            f"[cross_entropy] a target of {target.dtype.name} holds probabilities and must have the logits' shape "
            f"{x.shape}; got {target.shape}. Class labels are integers: cast them."
        )
    if label_smoothing:
        target = add(multiply(target, 1 - label_smoothing), _share(label_smoothing, x.shape[axis]))
    terms = multiply(target, log_softmax(x, axis))
    if weight is not None:
        terms = multiply(terms, _along(weight, x, axis))
    losses = negative(sum(terms, axis))
    return reduced("cross_entropy", losses, reduction)


def _averaged(
    name: str,
    losses: Array,
    x: Array,
    target: Array,
    weight: Array | None,
    ignore_index: int,
    reduction: str,
    axis: int,
) -> Array:
    """Weight the losses of labels, with 0 for ignored ones; a mean divides by the sum of the weights."""
    factors = _label_weights(x, target, weight, ignore_index, axis)
    counted = where(not_equal(target, ignore_index), losses if weight is None else multiply(losses, factors), 0)
    if reduction == "mean":
        return divide(sum(counted), sum(factors))
    return reduced(name, counted, reduction)


def _label_weights(x: Array, target: Array, weight: Array | None, ignore_index: int, axis: int) -> Array:
    """Return the weight of each label's class (1 without weights), and 0 for ignored labels."""
    valid = not_equal(target, ignore_index)
    if weight is None:
        return cast(valid, x.dtype)
    is_class = equal(iota(x, x.shape, axis), expand_dims(target, axis))
    return where(valid, sum(where(is_class, _along(weight, x, axis), 0), axis), 0)


def _along(weight: Array, x: Array, axis: int) -> Array:
    if weight.shape != (x.shape[axis],):
        raise ShapeError(
            f"[cross_entropy] weight has shape {weight.shape}; {x.shape[axis]} classes need one number each."
        )
    return reshape(weight, tuple(-1 if i == axis else 1 for i in range(x.ndim)))


def _class_axis(name: str, x: Array) -> int:
    if x.ndim == 0:
        raise ShapeError(f"[{name}] needs an axis of classes, got a value of shape ().")
    return 0 if x.ndim == 1 else 1


def _labels(name: str, x: Array, target: Array, axis: int, ignore_index: int) -> Array:
    """Return the labels as int64, a dtype that contains ``ignore_index``; an error for a label that is not a class."""
    if not target.dtype.is_integer:
        raise DTypeError(f"[{name}] labels are integers, got {target.dtype.name}; cast them.")
    expected = x.shape[:axis] + x.shape[axis + 1 :]
    if target.shape != expected:
        hint = ""
        if target.shape == x.shape:
            hint = f" One-hot labels are given as floats, or by their places: target.argmax({axis})."
        elif target.ndim == x.ndim and target.shape[axis] == 1:
            hint = f" Take the axis of size 1 away: target.squeeze({axis})."
        raise ShapeError(
            f"[{name}] labels of shape {target.shape} do not fit x of shape {x.shape}; they need {expected}.{hint}"
        )
    return labels_below(cast(target, int64), x.shape[axis], ignore_index)
