"""Losses as modules, with PyTorch's names and arguments."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar

from runnel import ops
from runnel.core.dtypes import int64
from runnel.core.errors import DTypeError, ShapeError
from runnel.nn import distances
from runnel.nn.linear import Linear
from runnel.nn.module import Module
from runnel.ops.arguments import Array
from runnel.ops.indexing import labels_below
from runnel.ops.losses import IGNORED, reduced, require_same_shape
from runnel.ops.views import with_axis
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Loss(Module):
    """The base of losses. ``reduction`` is "mean", "sum", or "none" for a loss of each element."""

    reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none")

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in self.reductions:
            *first, last = map(repr, self.reductions)
            known = f"{', '.join(first)} or {last}"
            raise ValueError(f"[{type(self).__name__}] reduction must be {known}; got {reduction!r}.")
        self.reduction = reduction

    def extra_repr(self) -> str:
        return "" if self.reduction == "mean" else f"reduction={self.reduction!r}"


class MSELoss(Loss):
    """Compute the squared error (x - target)².

    Args:
        reduction: "mean", "sum", or "none" for a loss of each element.

    Shape:
        x and target of the same shape; a scalar, or the same shape for "none".

    Example:
        >>> nn.MSELoss()(rn.tensor([1.0, 2.0]), rn.tensor([0.0, 4.0])).item()
        2.5
    """

    def forward(self, x: Any, target: Any) -> Any:
        return ops.mse_loss(x, target, self.reduction)


class L1Loss(Loss):
    """Compute the absolute error |x - target|.

    Args:
        reduction: "mean", "sum", or "none" for a loss of each element.
    """

    def forward(self, x: Any, target: Any) -> Any:
        return ops.l1_loss(x, target, self.reduction)


class SmoothL1Loss(Loss):
    """Compute (x - target)²/(2·beta) where |x - target| is less than ``beta``, and else |x - target| - beta/2.

    Args:
        reduction: "mean", "sum", or "none" for a loss of each element.
        beta: where the loss changes from quadratic to linear.
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, x: Any, target: Any) -> Any:
        return ops.smooth_l1_loss(x, target, self.reduction, self.beta)


class HuberLoss(Loss):
    """Compute (x - target)²/2 where |x - target| is at most ``delta``, and else delta·(|x - target| - delta/2).

    Args:
        reduction: "mean", "sum", or "none" for a loss of each element.
        delta: where the loss changes from quadratic to linear.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, x: Any, target: Any) -> Any:
        return ops.huber_loss(x, target, self.reduction, self.delta)


class WeightedLoss(Loss):
    """The base of losses with a weight for each class or element, which is a buffer."""

    weight: Variable | None

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class NLLLoss(WeightedLoss):
    """Compute the negative log-likelihood: -x at the class of the label, for log-probabilities x.

    Args:
        weight: a weight for each class, shape (C,).
        ignore_index: a label whose elements do not count.
        reduction: "mean", "sum", or "none" for a loss of each element.

    Shape:
        x ``(N, C, ...)``; target ``(N, ...)`` with integers.
    """

    def __init__(self, weight: Any = None, ignore_index: int = IGNORED, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, x: Any, target: Any) -> Any:
        return ops.nll_loss(x, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(WeightedLoss):
    """Compute the cross-entropy of softmax(x), for logits x and labels or probabilities.

    Args:
        weight: a weight for each class, shape (C,).
        ignore_index: a label whose elements do not count.
        reduction: "mean", "sum", or "none" for a loss of each element.
        label_smoothing: the share, in [0, 1], of the target that is spread evenly over all classes.

    Shape:
        x ``(N, C, ...)``; target ``(N, ...)`` with integers, or probabilities of the shape of x.

    Example:
        >>> round(nn.CrossEntropyLoss()(rn.zeros((2, 4)), rn.tensor([0, 3])).item(), 4)
        1.3863
    """

    def __init__(
        self, weight: Any = None, ignore_index: int = IGNORED, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, x: Any, target: Any) -> Any:
        return ops.cross_entropy(x, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class BCELoss(WeightedLoss):
    """Compute the binary cross-entropy -(target·log(x) + (1 - target)·log(1 - x)) of probabilities x.

    Args:
        weight: a weight for each element, which is broadcast.
        reduction: "mean", "sum", or "none" for a loss of each element.
    """

    def forward(self, x: Any, target: Any) -> Any:
        return ops.binary_cross_entropy(x, target, self.weight, self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """Compute the binary cross-entropy of sigmoid(x), which is more accurate than applying :class:`BCELoss` to it.

    Args:
        weight: a weight for each element, which is broadcast.
        reduction: "mean", "sum", or "none" for a loss of each element.
        pos_weight: a weight for positive targets, which is broadcast.

    Example:
        >>> round(nn.BCEWithLogitsLoss()(rn.zeros(3), rn.ones(3)).item(), 4)
        0.6931
    """

    pos_weight: Variable | None

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, x: Any, target: Any) -> Any:
        return ops.binary_cross_entropy_with_logits(x, target, self.weight, self.reduction, self.pos_weight)


# --- margins and distances --------------------------------------------------------------------------------------------


def margin_ranking_loss(
    input1: Array, input2: Array, target: Array, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Compute max(0, margin - target·(input1 - input2)).

    A target of 1 or -1 says which input must be larger. All have the same number of axes.
    """
    shapes = input1.shape, input2.shape, target.shape
    if len({len(shape) for shape in shapes}) > 1:
        raise ShapeError(f"[margin_ranking_loss] inputs and target have as many axes; received shapes {shapes}.")
    result: Tensor = reduced("margin_ranking_loss", ops.clip(margin - target * (input1 - input2), 0), reduction)
    return result


def hinge_embedding_loss(x: Array, target: Array, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """Compute x where the target is 1, and max(0, margin - x) where it is -1.

    ``x`` are distances of similar and dissimilar pairs.
    """
    far = ops.where(ops.not_equal(target, 1), ops.clip(margin - x, 0), 0)  # with a gradient at 0
    near = ops.where(ops.not_equal(target, -1), x, 0)
    result: Tensor = reduced("hinge_embedding_loss", far + near, reduction)
    return result


def soft_margin_loss(x: Array, target: Array, reduction: str = "mean") -> Tensor:
    """Compute log(1 + exp(-target·x)) for targets 1 and -1 of the shape of x."""
    require_same_shape("soft_margin_loss", x, target)
    result: Tensor = reduced("soft_margin_loss", ops.softplus(-(target * x)), reduction)
    return result


def cosine_embedding_loss(
    input1: Array, input2: Array, target: Array, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Compute 1 - cos where the target is 1, and max(0, cos - margin) where it is -1.

    cos is the cosine between vectors (N, D) or (D); each pair has one target.
    """
    if input1.shape != input2.shape or target.shape != input1.shape[:-1] or not 1 <= input1.ndim <= 2:
        raise ShapeError(
            f"[cosine_embedding_loss] takes vectors (N, D) with targets (N,), or (D,) with (); received shapes "
            f"{input1.shape}, {input2.shape} and {target.shape}."
        )
    squares = (ops.sum(x * x, -1) + 1e-12 for x in (input1, input2))
    cosine = ops.sum(input1 * input2, -1) / ops.sqrt(functools.reduce(ops.multiply, squares))
    near = ops.where(ops.equal(target, 1), 1 - cosine, 0)
    far = ops.where(ops.equal(target, -1), ops.clip(cosine - margin, 0), 0)
    result: Tensor = reduced("cosine_embedding_loss", near + far, reduction)
    return result


def triplet_margin_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute max(0, d(anchor, positive) - d(anchor, negative) + margin) (V. Balntas et al., 2016).

    d is the p-norm of the difference plus ``eps``. ``swap`` uses d(positive, negative) where it is smaller.
    """

    def distance(x: Array, y: Array) -> Tensor:
        return distances.pairwise_distance(x, y, p, eps)

    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


def triplet_margin_with_distance_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    *,
    distance_function: Callable[..., Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``triplet_margin_loss`` with another distance, a function of two arrays."""
    if margin <= 0:
        raise ValueError(f"[triplet_margin_loss] margin is positive; received {margin}.")
    distance = distances.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    result: Tensor = reduced("triplet_margin_loss", ops.clip(near - far + margin, 0), reduction)
    return result


# --- classes ----------------------------------------------------------------------------------------------------------


def multi_margin_loss(
    x: Array,
    target: Array,
    p: int = 1,
    margin: float = 1.0,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute Σ max(0, margin - x[y] + x[i])ᵖ / C over the classes i other than the label y.

    ``x`` is (N, C) or (C,). ``weight`` has a factor for each label. p is 1 or 2.
    """
    if p not in (1, 2):
        raise ValueError(f"[multi_margin_loss] p is 1 or 2; received {p}.")
    x = with_axis(x)
    if x.ndim == 1 and target.shape == (1,):
        x = ops.expand_dims(x, 0)
    _require_labels("multi_margin_loss", x, target, x.shape[:-1])
    label = labels_below(ops.cast(ops.expand_dims(target, -1), int64), x.shape[-1])
    is_label = ops.equal(ops.iota(x, x.shape, -1), label)
    own = ops.sum(ops.where(is_label, x, 0), -1, keepdims=True)
    terms = ops.relu(margin - own + x)
    terms = terms * terms if p == 2 else terms
    if weight is not None:
        terms = terms * ops.sum(ops.where(is_label, weight, 0), -1, keepdims=True)
    losses = ops.sum(ops.where(is_label, 0, terms), -1) / x.shape[-1]
    result: Tensor = reduced("multi_margin_loss", losses, reduction)
    return result


def multilabel_margin_loss(x: Array, target: Array, reduction: str = "mean") -> Tensor:
    """Compute Σ max(0, 1 - x[y] + x[i]) / C over the labels y and all other classes i.

    ``x`` is (N, C) or (C,). ``target``, of the same shape, has the labels first, and -1 after the last one.
    """
    x, target = with_axis(x), with_axis(target)
    _require_labels("multilabel_margin_loss", x, target, x.shape)
    classes = x.shape[-1]
    is_end = ops.less(target, 0)
    place = ops.iota(x, x.shape, -1)
    end = ops.where(ops.any(is_end, -1, keepdims=True), ops.argmax(ops.cast(is_end, int64), -1, keepdims=True), classes)
    counts = ops.less(place, end)
    label = labels_below(ops.where(counts, ops.cast(target, int64), 0), classes)
    named = ops.logical_and(
        ops.equal(ops.expand_dims(place, -2), ops.expand_dims(label, -1)), ops.expand_dims(counts, -1)
    )
    is_label = ops.any(named, -2)  # of each class, whether it is one of the labels
    own = ops.expand_dims(ops.take_along_axis(x, label, -1), -1)
    terms = ops.relu(1 - own + ops.expand_dims(x, -2))  # (…, labels, classes)
    is_pair = ops.logical_and(ops.expand_dims(counts, -1), ops.logical_not(ops.expand_dims(is_label, -2)))
    losses = ops.sum(ops.where(is_pair, terms, 0), (-2, -1)) / classes
    result: Tensor = reduced("multilabel_margin_loss", losses, reduction)
    return result


def multilabel_soft_margin_loss(
    x: Array, target: Array, weight: Array | None = None, reduction: str = "mean"
) -> Tensor:
    """Compute the mean over classes of the binary cross-entropy of sigmoid(x), for x (…, C) and targets 0 and 1."""
    losses = -(target * ops.log_sigmoid(x) + (1 - target) * ops.log_sigmoid(-x))
    if weight is not None:
        losses = losses * weight
    result: Tensor = reduced("multilabel_soft_margin_loss", ops.mean(losses, -1), reduction)
    return result


def _require_labels(name: str, x: Array, target: Array, shape: tuple[int, ...]) -> None:
    if not 1 <= x.ndim <= 2 or target.shape != shape:
        raise ShapeError(
            f"[{name}] takes x (N, C) or (C,), and labels of shape {shape} for {x.shape}; received {target.shape}."
        )
    if not target.dtype.is_integer:
        raise DTypeError(f"[{name}] labels are integers, got {target.dtype.name}; cast them.")


def linear_cross_entropy(
    x: Array,
    linear_weight: Array,
    target: Array,
    *,
    linear_bias: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Compute the cross-entropy of x · linear_weightᵀ + linear_bias.

    ``x`` is (N, in) or (in,), and the weight (C, *sizes, in), so that logits are (N, C, *sizes). ``options``, which
    divide the work in PyTorch, have no effect.
    """
    outputs = linear_weight.shape[:-1]
    flat = ops.reshape(linear_weight, (-1, linear_weight.shape[-1]))
    bias = None if linear_bias is None else ops.reshape(linear_bias, (-1,))
    logits = ops.reshape(ops.linear(x, flat, bias), (*x.shape[:-1], *outputs))
    ignored = IGNORED if ignore_index is None else ignore_index
    result: Tensor = ops.cross_entropy(logits, target, weight, ignored, reduction, label_smoothing)
    return result


# --- distributions ----------------------------------------------------------------------------------------------------


def gaussian_nll_loss(
    x: Array, target: Array, var: float | Array, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Compute (log var + (x - target)²/var) / 2 for a variance of at least ``eps``.

    ``var`` has the shape of x, lacks its last axis, has axes of size 1, or is a number. ``full`` adds log(2π)/2.
    """
    if isinstance(var, (int, float)):
        var = ops.full_like(x, var)
    elif var.shape != x.shape and var.shape == x.shape[:-1]:
        var = ops.expand_dims(var, -1)
    elif var.shape != x.shape and (
        var.ndim != x.ndim or any(n not in (1, m) for n, m in zip(var.shape, x.shape, strict=True))
    ):
        raise ShapeError(f"[gaussian_nll_loss] var has sizes of x, {x.shape}, or 1; received shape {var.shape}.")
    var = var + ops.stop_gradient(ops.maximum(var, eps) - var)  # as if it had been that great
    losses = (ops.log(var) + ops.square(x - target) / var) * 0.5
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    result: Tensor = reduced("gaussian_nll_loss", losses, reduction)
    return result


def poisson_nll_loss(
    x: Array, target: Array, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Tensor:
    """Compute exp(x) - target·x for the logarithm x of the mean, or else x - target·log(x + eps) for the mean x.

    ``full`` adds Stirling's approximation of log(target!) for targets above 1.
    """
    losses = ops.exp(x) - target * x if log_input else x - target * ops.log(x + eps)
    if full:
        is_great = ops.greater(target, 1)
        count = ops.where(is_great, target, 2)
        stirling = count * ops.log(count) - count + 0.5 * ops.log(2 * math.pi * count)
        losses = losses + ops.where(is_great, stirling, 0)
    result: Tensor = reduced("poisson_nll_loss", losses, reduction)
    return result


class KLDivLoss(Loss):
    """target·(log target - x) for log-probabilities x; reduction "batchmean" divides the sum by the first axis."""

    reductions = ("mean", "sum", "none", "batchmean")

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, x: Any, target: Any) -> Any:
        return ops.kl_div(x, target, self.reduction, self.log_target)


class NLLLoss2d(NLLLoss):
    """``NLLLoss`` under the name that it had for images."""


class _MarginLoss(Loss):
    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin


class MarginRankingLoss(_MarginLoss):
    """max(0, margin - target·(input1 - input2)) for targets 1 and -1."""

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """x where the target is 1, max(0, margin - x) where it is -1."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)

    def forward(self, x: Any, target: Any) -> Any:
        return hinge_embedding_loss(x, target, self.margin, self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1, for the cosine between vectors."""

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class SoftMarginLoss(Loss):
    """log(1 + exp(-target·x)) for targets 1 and -1."""

    def forward(self, x: Any, target: Any) -> Any:
        return soft_margin_loss(x, target, self.reduction)


class TripletMarginLoss(Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for the p-norm d."""

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        if margin <= 0:
            raise ValueError(f"[TripletMarginLoss] margin is positive; received {margin}.")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        options = (self.margin, self.p, self.eps, self.swap, self.reduction)
        return triplet_margin_loss(anchor, positive, negative, *options)


class TripletMarginWithDistanceLoss(Loss):
    """``TripletMarginLoss`` with another distance: a function of two arrays."""

    def __init__(
        self,
        *,
        distance_function: Callable[..., Any] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        if margin <= 0:
            raise ValueError(f"[TripletMarginWithDistanceLoss] margin is positive; received {margin}.")
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        return triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class MultiMarginLoss(WeightedLoss):
    """Σ max(0, margin - x[y] + x[i])ᵖ / C over the classes i other than the label y."""

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)
        if p not in (1, 2):
            raise ValueError(f"[MultiMarginLoss] p is 1 or 2; received {p}.")
        self.p = p
        self.margin = margin

    def forward(self, x: Any, target: Any) -> Any:
        return multi_margin_loss(x, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(Loss):
    """Σ max(0, 1 - x[y] + x[i]) / C over the labels y and all other classes i."""

    def forward(self, x: Any, target: Any) -> Any:
        return multilabel_margin_loss(x, target, self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """The mean over classes of the binary cross-entropy of sigmoid(x) with targets of 0 and 1."""

    def forward(self, x: Any, target: Any) -> Any:
        return multilabel_soft_margin_loss(x, target, self.weight, self.reduction)


class GaussianNLLLoss(Loss):
    """(log var + (x - target)²/var) / 2; called with x, target and var."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, x: Any, target: Any, var: Any) -> Any:
        return gaussian_nll_loss(x, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(Loss):
    """exp(x) - target·x, or x - target·log(x + eps) without ``log_input``."""

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, x: Any, target: Any) -> Any:
        return poisson_nll_loss(x, target, self.log_input, self.full, self.eps, self.reduction)


class LinearCrossEntropyLoss(WeightedLoss):
    """The cross-entropy of a linear layer's result, with that layer: ``linear`` has num_classes·(product of
    ``out_features``) rows. ``options``, which divide the work in PyTorch, change nothing."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        super().__init__(weight, reduction)
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"[LinearCrossEntropyLoss] label_smoothing lies in [0, 1]; received {label_smoothing}.")
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, dtype)
        self.options = options

    def forward(self, x: Any, target: Any) -> Any:
        outputs = (self.num_classes, *self.out_features)
        bias = None if self.linear.bias is None else ops.reshape(self.linear.bias, outputs)
        return linear_cross_entropy(
            x, ops.reshape(self.linear.weight, (*outputs, -1)), target, linear_bias=bias, weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
        )  # fmt: skip
