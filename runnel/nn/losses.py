"""Losses that few programs call, as functions with PyTorch's arguments, and all losses as layers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from runnel import ops
from runnel.core.dtypes import Dtype, int64
from runnel.core.errors import DTypeError, ShapeError
from runnel.nn import distances
from runnel.nn.containers import ModuleList, Sequential
from runnel.nn.layer import Layer, layer
from runnel.nn.linear import Linear
from runnel.nn.module import Module
from runnel.ops.arguments import Array
from runnel.ops.indexing.gather import labels_below
from runnel.ops.losses import IGNORED, reduced, require_same_shape
from runnel.ops.shapes.views import with_axis
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

# Margins and distances ------------------------------------------------------------------------------------------------


def margin_ranking_loss(
    input1: Array, input2: Array, target: Array, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """Compute max(0, margin - target·(input1 - input2)).

    A target of 1 or -1 says which input must be larger. All have the same number of axes.
    """
    shapes = input1.shape, input2.shape, target.shape
    if len({len(shape) for shape in shapes}) > 1:
        raise ShapeError(f"[margin_ranking_loss] inputs and target must have as many axes; got shapes {shapes}.")
    result: Tensor = reduced("margin_ranking_loss", ops.clip(margin - target * (input1 - input2), 0), reduction)
    return result


def hinge_embedding_loss(x: Array, target: Array, margin: float = 1.0, *, reduction: str = "mean") -> Tensor:
    """Compute x where the target is 1, and max(0, margin - x) where it is -1.

    ``x`` are distances of similar and dissimilar pairs.
    """
    far = ops.where(ops.not_equal(target, 1), ops.clip(margin - x, 0), 0)  # with a gradient at 0
    near = ops.where(ops.not_equal(target, -1), x, 0)
    result: Tensor = reduced("hinge_embedding_loss", far + near, reduction)
    return result


def soft_margin_loss(x: Array, target: Array, *, reduction: str = "mean") -> Tensor:
    """Compute log(1 + exp(-target·x)) for targets 1 and -1 of the shape of x."""
    require_same_shape("soft_margin_loss", x, target)
    result: Tensor = reduced("soft_margin_loss", ops.softplus(-(target * x)), reduction)
    return result


def cosine_embedding_loss(
    input1: Array, input2: Array, target: Array, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """Compute 1 - cos where the target is 1, and max(0, cos - margin) where it is -1.

    cos is the cosine between vectors (N, D) or (D); each pair has one target.
    """
    if input1.shape != input2.shape or target.shape != input1.shape[:-1] or not 1 <= input1.ndim <= 2:
        raise ShapeError(
            f"[cosine_embedding_loss] inputs and target must have shapes (N, D), (N, D) and (N,), or (D,), (D,), (); "
            f"got {input1.shape}, {input2.shape} and {target.shape}."
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
    *,
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
    """Compute :func:`triplet_margin_loss` with ``distance_function``, a function of two arrays, as distance."""
    if margin <= 0:
        raise ValueError(f"[triplet_margin_loss] margin must be positive; got {margin}.")
    distance = distances.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    result: Tensor = reduced("triplet_margin_loss", ops.clip(near - far + margin, 0), reduction)
    return result


# Classes --------------------------------------------------------------------------------------------------------------


def multi_margin_loss(
    x: Array,
    target: Array,
    p: int = 1,
    margin: float = 1.0,
    weight: Array | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Compute Σ max(0, margin - x[y] + x[i])ᵖ / C over the classes i other than the label y.

    ``x`` is (N, C) or (C,). ``weight`` has a factor for each label. p is 1 or 2.
    """
    if p not in (1, 2):
        raise ValueError(f"[multi_margin_loss] p must be 1 or 2; got {p}.")
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


def multilabel_margin_loss(x: Array, target: Array, *, reduction: str = "mean") -> Tensor:
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
    is_label = ops.any(named, -2)
    own = ops.expand_dims(ops.take_along_axis(x, label, -1), -1)
    terms = ops.relu(1 - own + ops.expand_dims(x, -2))  # (…, labels, classes)
    is_pair = ops.logical_and(ops.expand_dims(counts, -1), ops.logical_not(ops.expand_dims(is_label, -2)))
    losses = ops.sum(ops.where(is_pair, terms, 0), (-2, -1)) / classes
    result: Tensor = reduced("multilabel_margin_loss", losses, reduction)
    return result


def multilabel_soft_margin_loss(
    x: Array, target: Array, weight: Array | None = None, *, reduction: str = "mean"
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
            f"[{name}] x must have shape (N, C) or (C,), and the labels {shape} for this x; got {x.shape} and "
            f"{target.shape}."
        )
    if not target.dtype.is_integer:
        raise DTypeError(f"[{name}] labels must be integers; got {target.dtype.name}. Cast them.")


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
    result: Tensor = ops.cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )
    return result


# Distributions --------------------------------------------------------------------------------------------------------


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
        raise ShapeError(f"[gaussian_nll_loss] var must have the sizes of x, {x.shape}, or 1; got shape {var.shape}.")
    var = var + ops.stop_gradient(ops.maximum(var, eps) - var)  # the value changes, the gradient does not
    losses = (ops.log(var) + ops.square(x - target) / var) * 0.5
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    result: Tensor = reduced("gaussian_nll_loss", losses, reduction)
    return result


def poisson_nll_loss(
    x: Array, target: Array, log_input: bool = True, full: bool = False, *, eps: float = 1e-8, reduction: str = "mean"
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


# Layers ---------------------------------------------------------------------------------------------------------------


class Loss(Layer):
    """The base of losses. ``reduction`` is "mean", "sum", or "none" for a loss of each element."""

    reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none")
    _shows_numbers = False

    def __init__(self, *, reduction: str = "mean") -> None:
        self.reduction = reduction
        self._check()

    def _check(self) -> None:
        if self.reduction not in self.reductions:
            *first, last = map(repr, self.reductions)
            known = f"{', '.join(first)} or {last}"
            raise ValueError(f"[{type(self).__name__}] reduction must be {known}; got {self.reduction!r}.")


class WeightedLoss(Loss):
    """The base of losses with a weight for each class or element, which is a buffer."""

    weight: Variable | None

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        self.register_buffer("weight", weight)
        super().__init__(reduction=reduction)


class _KLDivLoss(Loss):
    reductions = ("mean", "sum", "none", "batchmean")


class _TripletLoss(Loss):
    def _check(self) -> None:
        super()._check()
        if self.margin <= 0:
            raise ValueError(f"[{type(self).__name__}] margin must be positive; got {self.margin}.")


class _MultiMarginLoss(WeightedLoss):
    def _check(self) -> None:
        super()._check()
        if self.p not in (1, 2):
            raise ValueError(f"[MultiMarginLoss] p must be 1 or 2; got {self.p}.")


_REDUCTION = """
Args:
    reduction: "mean", "sum", or "none" for a loss of each element.
"""
_MSE = (
    _REDUCTION
    + """
Shape:
    x and target of the same shape; a scalar, or the same shape for "none".

Example:
    >>> nn.MSELoss()(rn.tensor([1.0, 2.0]), rn.tensor([0.0, 4.0])).item()
    2.5
"""
)
_BETA = _REDUCTION + "    beta: where the loss changes from quadratic to linear.\n"
_DELTA = _REDUCTION + "    delta: where the loss changes from quadratic to linear.\n"
_CLASSES = """
Args:
    weight: a weight for each class, shape (C,).
    ignore_index: a label whose elements do not count.
    reduction: "mean", "sum", or "none" for a loss of each element.
"""
_CROSS_ENTROPY = (
    _CLASSES
    + """\
    label_smoothing: the share, in [0, 1], of the target that is spread evenly over all classes.

Shape:
    x ``(N, C, ...)``; target ``(N, ...)`` with integers, or probabilities of the shape of x.

Example:
    >>> round(nn.CrossEntropyLoss()(rn.zeros((2, 4)), rn.tensor([0, 3])).item(), 4)
    1.3863
"""
)
_ELEMENTS = """
Args:
    weight: a weight for each element, which is broadcast.
    reduction: "mean", "sum", or "none" for a loss of each element.
"""
_LOGITS = (
    _ELEMENTS
    + """\
    pos_weight: a weight for positive targets, which is broadcast.

Example:
    >>> round(nn.BCEWithLogitsLoss()(rn.zeros(3), rn.ones(3)).item(), 4)
    0.6931
"""
)

MSELoss = layer("MSELoss", ops.mse_loss, base=Loss, doc=_MSE)
L1Loss = layer("L1Loss", ops.l1_loss, base=Loss, doc=_REDUCTION)
SmoothL1Loss = layer("SmoothL1Loss", ops.smooth_l1_loss, base=Loss, doc=_BETA)
HuberLoss = layer("HuberLoss", ops.huber_loss, base=Loss, doc=_DELTA)
KLDivLoss = layer("KLDivLoss", ops.kl_div, base=_KLDivLoss)
NLLLoss = layer("NLLLoss", ops.nll_loss, base=WeightedLoss, doc=_CLASSES)
CrossEntropyLoss = layer("CrossEntropyLoss", ops.cross_entropy, base=WeightedLoss, doc=_CROSS_ENTROPY)
BCELoss = layer("BCELoss", ops.binary_cross_entropy, base=WeightedLoss, doc=_ELEMENTS)
BCEWithLogitsLoss = layer("BCEWithLogitsLoss", ops.binary_cross_entropy_with_logits, base=WeightedLoss, doc=_LOGITS)
MarginRankingLoss = layer("MarginRankingLoss", margin_ranking_loss, base=Loss)
HingeEmbeddingLoss = layer("HingeEmbeddingLoss", hinge_embedding_loss, base=Loss)
CosineEmbeddingLoss = layer("CosineEmbeddingLoss", cosine_embedding_loss, base=Loss)
SoftMarginLoss = layer("SoftMarginLoss", soft_margin_loss, base=Loss)
TripletMarginLoss = layer("TripletMarginLoss", triplet_margin_loss, base=_TripletLoss)
TripletMarginWithDistanceLoss = layer(
    "TripletMarginWithDistanceLoss", triplet_margin_with_distance_loss, base=_TripletLoss
)
MultiMarginLoss = layer("MultiMarginLoss", multi_margin_loss, base=_MultiMarginLoss)
MultiLabelMarginLoss = layer("MultiLabelMarginLoss", multilabel_margin_loss, base=Loss)
MultiLabelSoftMarginLoss = layer("MultiLabelSoftMarginLoss", multilabel_soft_margin_loss, base=WeightedLoss)
GaussianNLLLoss = layer("GaussianNLLLoss", gaussian_nll_loss, "*, full, eps, reduction", base=Loss)
PoissonNLLLoss = layer("PoissonNLLLoss", poisson_nll_loss, base=Loss)


class NLLLoss2d(NLLLoss):  # type: ignore[misc,valid-type]
    """Compute ``NLLLoss``; the class has the name that it had for images."""


class LinearCrossEntropyLoss(WeightedLoss):
    """Apply a dense layer ``linear`` and compute the cross-entropy of its result.

    Args:
        in_features: number of input features.
        num_classes: number of classes C.
        out_features: sizes of further axes; ``linear`` has num_classes · (their product) rows.
        bias: whether ``linear`` has a bias.
        dtype: the dtype of the Parameters; float32 by default.
        reduction, weight, ignore_index, label_smoothing: as in :class:`CrossEntropyLoss`.
        options: has no effect.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        dtype: Dtype = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        super().__init__(weight, reduction=reduction)
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"[LinearCrossEntropyLoss] label_smoothing must be in [0, 1]; got {label_smoothing}.")
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, dtype=dtype)
        self.options = options

    def forward(self, x: Array, target: Any) -> Any:
        outputs = (self.num_classes, *self.out_features)
        bias = None if self.linear.bias is None else ops.reshape(self.linear.bias, outputs)
        return linear_cross_entropy(
            x, ops.reshape(self.linear.weight, (*outputs, -1)), target, linear_bias=bias, weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
        )  # fmt: skip


class ASMoutput(NamedTuple):
    """The log-probability of each target, and the mean of -1 times it."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Compute log-probabilities of many classes in clusters, with the frequent classes first (E. Grave et al., 2017).

    ``head`` computes scores of the classes of the first cluster and of the other clusters. ``tail[i]`` computes scores
    of the classes of one of these, from in_features / div_value^(i + 1) features.

    Args:
        in_features: number of input features.
        n_classes: number of classes, sorted by falling frequency.
        cutoffs: the first class of each cluster but the first.
        div_value: the factor by which each cluster has fewer features than the one before.
        head_bias: whether ``head`` has a bias.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        x ``(N, in_features)`` and target ``(N,)``, or without N. The result is a pair: ``output``, the log-probability
        of each target, and ``loss``, the mean of -output.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        *,
        dtype: Dtype = None,
    ) -> None:
        listed = list(cutoffs)
        if not listed or listed != sorted(set(listed)) or listed[0] < 1 or listed[-1] > n_classes - 1:
            raise ValueError(
                f"[AdaptiveLogSoftmaxWithLoss] cutoffs must increase, from at least 1 to less than "
                f"n_classes={n_classes}; got {listed}."
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*listed, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = listed[0]
        self.n_clusters = len(listed)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, dtype=dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(Linear(in_features, hidden, False, dtype=dtype), Linear(hidden, classes, False, dtype=dtype))
            )

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for linear in (self.head, *(part for pair in self.tail for part in pair)):  # type: ignore[attr-defined]
            linear.reset_parameters()

    def log_prob(self, x: Any) -> Any:
        """Return the log-probabilities (N, n_classes) of all classes."""
        head = ops.log_softmax(self.head(x), -1)
        parts = [ops.narrow(head, -1, 0, self.shortlist_size)]
        for i, cluster in enumerate(self.tail):
            parts.append(ops.log_softmax(cluster(x), -1) + ops.narrow(head, -1, self.shortlist_size + i, 1))
        return ops.concat(parts, -1)

    def predict(self, x: Any) -> Any:
        """Return the most probable class of each input."""
        return ops.argmax(self.log_prob(x), -1)

    def forward(self, x: Array, target: Array) -> ASMoutput:
        if x.shape[:-1] != target.shape or x.ndim not in (1, 2) or x.shape[-1] != self.in_features:
            raise ShapeError(
                f"[AdaptiveLogSoftmaxWithLoss] x and target must have shapes (N, {self.in_features}) and (N,), or lack "
                f"N; got {x.shape} and {target.shape}."
            )
        label = labels_below(ops.cast(ops.expand_dims(target, -1), int64), self.n_classes)
        output = ops.squeeze(ops.take_along_axis(self.log_prob(x), label, -1), -1)
        return ASMoutput(output, -ops.mean(output))
