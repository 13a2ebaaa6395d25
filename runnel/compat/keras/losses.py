"""Losses under Keras's names: functions of (target, output) that return the mean over the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel import ops
from runnel.compile.boundary import set_observed
from runnel.core.dtypes import int64
from runnel.core.errors import ArgumentError
from runnel.nn import functional as F

set_observed(__name__, True)

_EPSILON = 1e-7  # how near to 0 and 1 probabilities may be


class Loss:
    """A loss: ``loss(target, output)``; a subclass defines ``call``."""

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return self.call(y_true, y_pred)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        raise NotImplementedError(f"[{type(self).__name__}] a Loss defines call(y_true, y_pred).")


class _OfProbabilities(Loss):
    """A loss of probabilities; with ``from_logits`` the output has not been through softmax or sigmoid."""

    def __init__(self, from_logits: bool = False) -> None:
        self.from_logits = from_logits

    def logarithms(self, y_pred: Any) -> Any:
        """Return the log probabilities of each class."""
        if self.from_logits:
            return ops.log_softmax(y_pred, -1)
        return ops.log(ops.clip(y_pred / ops.sum(y_pred, axis=-1, keepdims=True), _EPSILON, 1 - _EPSILON))


class SparseCategoricalCrossentropy(_OfProbabilities):
    """The mean of -log p of the true class, a label; classes are the last axis of the output."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        labels = ops.cast(y_true, int64).reshape(tuple(y_pred.shape[:-1]))
        picked = ops.take_along_axis(self.logarithms(y_pred), labels.reshape((*labels.shape, 1)), axis=-1)
        return -ops.mean(picked)


class CategoricalCrossentropy(_OfProbabilities):
    """The mean of -Σ q·log p, where q are the true probabilities of each class."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return -ops.mean(ops.sum(ops.cast(y_true, y_pred.dtype) * self.logarithms(y_pred), axis=-1))


class BinaryCrossentropy(_OfProbabilities):
    """The mean of -(q·log p + (1 - q)·log(1 - p))."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        target = ops.cast(y_true, y_pred.dtype).reshape(tuple(y_pred.shape))
        if self.from_logits:
            return F.binary_cross_entropy_with_logits(y_pred, target)
        p = ops.clip(y_pred, _EPSILON, 1 - _EPSILON)
        return -ops.mean(target * ops.log(p) + (1 - target) * ops.log(1 - p))


class MeanSquaredError(Loss):
    """The mean of (target - output)²."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return F.mse_loss(y_pred, _like(y_true, y_pred))


class MeanAbsoluteError(Loss):
    """The mean of |target - output|."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return F.l1_loss(y_pred, _like(y_true, y_pred))


class Huber(Loss):
    """Squares of small differences and absolute values of large ones."""

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return F.huber_loss(y_pred, _like(y_true, y_pred), delta=self.delta)


def _like(y_true: Any, y_pred: Any) -> Any:
    return ops.cast(y_true, y_pred.dtype).reshape(tuple(y_pred.shape))


BY_NAME: dict[str, type[Loss]] = {
    "sparse_categorical_crossentropy": SparseCategoricalCrossentropy,
    "categorical_crossentropy": CategoricalCrossentropy,
    "binary_crossentropy": BinaryCrossentropy,
    "mean_squared_error": MeanSquaredError,
    "mse": MeanSquaredError,
    "mean_absolute_error": MeanAbsoluteError,
    "mae": MeanAbsoluteError,
    "huber": Huber,
}


def get(loss: Any) -> Callable[[Any, Any], Any]:
    """Return a loss by its name; functions of (target, output) are returned unchanged."""
    if callable(loss):
        result: Callable[[Any, Any], Any] = loss
        return result
    if loss not in BY_NAME:
        raise ArgumentError(f"[compile] there is no loss {loss!r}; there are {', '.join(BY_NAME)}.")
    return BY_NAME[loss]()
