"""Losses of margins, distances, distributions and several labels as modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from runnel import ops
from runnel.nn.linear import Linear
from runnel.nn.losses import Loss, NLLLoss, WeightedLoss
from runnel.nn.rare import losses


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
        return losses.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """x where the target is 1, max(0, margin - x) where it is -1."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)

    def forward(self, x: Any, target: Any) -> Any:
        return losses.hinge_embedding_loss(x, target, self.margin, self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1, for the cosine between vectors."""

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return losses.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class SoftMarginLoss(Loss):
    """log(1 + exp(-target·x)) for targets 1 and -1."""

    def forward(self, x: Any, target: Any) -> Any:
        return losses.soft_margin_loss(x, target, self.reduction)


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
        return losses.triplet_margin_loss(anchor, positive, negative, *options)


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
        return losses.triplet_margin_with_distance_loss(
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
        return losses.multi_margin_loss(x, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(Loss):
    """Σ max(0, 1 - x[y] + x[i]) / C over the labels y and all other classes i."""

    def forward(self, x: Any, target: Any) -> Any:
        return losses.multilabel_margin_loss(x, target, self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """The mean over classes of the binary cross-entropy of sigmoid(x) with targets of 0 and 1."""

    def forward(self, x: Any, target: Any) -> Any:
        return losses.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)


class GaussianNLLLoss(Loss):
    """(log var + (x - target)²/var) / 2; called with x, target and var."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, x: Any, target: Any, var: Any) -> Any:
        return losses.gaussian_nll_loss(x, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(Loss):
    """exp(x) - target·x, or x - target·log(x + eps) without ``log_input``."""

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, x: Any, target: Any) -> Any:
        return losses.poisson_nll_loss(x, target, self.log_input, self.full, self.eps, self.reduction)


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
        return losses.linear_cross_entropy(
            x, ops.reshape(self.linear.weight, (*outputs, -1)), target, linear_bias=bias, weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
        )  # fmt: skip
