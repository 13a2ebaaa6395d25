"""Losses as modules, with PyTorch's names and arguments."""

from __future__ import annotations

from typing import Any, ClassVar

from runnel import ops
from runnel.nn.module import Module
from runnel.ops.losses import IGNORED
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
