"""Losses as modules, with the arguments of PyTorch's modules of the same names."""

from __future__ import annotations

from typing import Any, ClassVar

from runnel import ops
from runnel.nn.module import Module
from runnel.ops.losses import IGNORED
from runnel.tensor.variable import Variable


class Loss(Module):
    reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none")

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in self.reductions:
            *first, last = map(repr, self.reductions)
            known = f"{', '.join(first)} or {last}"
            raise ValueError(f"[{type(self).__name__}] reduction is {known}; received {reduction!r}.")
        self.reduction = reduction

    def extra_repr(self) -> str:
        return "" if self.reduction == "mean" else f"reduction={self.reduction!r}"


class MSELoss(Loss):
    """(x - target)²."""

    def forward(self, x: Any, target: Any) -> Any:
        return ops.mse_loss(x, target, self.reduction)


class L1Loss(Loss):
    """|x - target|."""

    def forward(self, x: Any, target: Any) -> Any:
        return ops.l1_loss(x, target, self.reduction)


class SmoothL1Loss(Loss):
    """Squared below ``beta``, straight above."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, x: Any, target: Any) -> Any:
        return ops.smooth_l1_loss(x, target, self.reduction, self.beta)


class HuberLoss(Loss):
    """Squared up to ``delta``, straight above."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, x: Any, target: Any) -> Any:
        return ops.huber_loss(x, target, self.reduction, self.delta)


class WeightedLoss(Loss):
    weight: Variable | None

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class NLLLoss(WeightedLoss):
    """-x at the label's class, for log-probabilities x of shape (N, C, ...)."""

    def __init__(self, weight: Any = None, ignore_index: int = IGNORED, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, x: Any, target: Any) -> Any:
        return ops.nll_loss(x, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(WeightedLoss):
    """The cross-entropy of softmax(x), for logits x of shape (N, C, ...) and labels or probabilities."""

    def __init__(
        self, weight: Any = None, ignore_index: int = IGNORED, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, x: Any, target: Any) -> Any:
        return ops.cross_entropy(x, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class BCELoss(WeightedLoss):
    """Binary cross-entropy of probabilities."""

    def forward(self, x: Any, target: Any) -> Any:
        return ops.binary_cross_entropy(x, target, self.weight, self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """Binary cross-entropy of sigmoid(x)."""

    pos_weight: Variable | None

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, x: Any, target: Any) -> Any:
        return ops.binary_cross_entropy_with_logits(x, target, self.weight, self.reduction, self.pos_weight)
