"""Metrics by Keras's names. The shapes decide how "accuracy" is computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from runnel.core.errors import ArgumentError
from runnel.train.metrics.classification import Accuracy, Precision, Recall, TopK
from runnel.train.metrics.metric import Metric
from runnel.train.metrics.scores import AUROC, MAE, MSE, RMSE


def in_shape(output: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Reshape the target to the output's shape if it has as many elements."""
    return target.reshape(output.shape) if target.size == output.size else target


def class_of(output: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the classes of targets that are class probabilities."""
    return target.argmax(axis=-1)


def labels_of(output: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return labels without a last axis of size 1."""
    return target.reshape(output.shape[:-1])


def by_shape(output: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return targets that are one number a sample, class probabilities or labels, depending on the shapes."""
    if output.ndim == 1 or output.shape[-1] == 1:
        return in_shape(output, target)
    return class_of(output, target) if output.shape == target.shape else labels_of(output, target)


class _Changing:
    """A base of metrics that first brings targets into another shape."""

    change = staticmethod(in_shape)

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        super().add(output, self.change(output, target))  # type: ignore[misc]


class _Binary(_Changing, Accuracy): ...


class _Categorical(_Changing, Accuracy):
    change = staticmethod(class_of)


class _Sparse(_Changing, Accuracy):
    change = staticmethod(labels_of)


class _ByShape(_Changing, Accuracy):
    change = staticmethod(by_shape)


class _Precision(_Changing, Precision): ...


class _Recall(_Changing, Recall): ...


class _MSE(_Changing, MSE): ...


class _MAE(_Changing, MAE): ...


class _RMSE(_Changing, RMSE): ...


class _Area(AUROC):
    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        super().add(output.ravel(), target.ravel())


def named(metrics: Iterable[Any], loss: Any) -> dict[str, Metric]:
    """Return metrics by name; ArgumentError for an unknown one."""
    result: dict[str, Metric] = {}
    for metric in metrics:
        if isinstance(metric, Metric):
            result[metric.name] = metric
            continue
        make = BY_NAME.get(metric) if isinstance(metric, str) else None
        if metric in ("accuracy", "acc"):
            result[metric] = _accuracy(loss)
        elif make is None:
            raise ArgumentError(f"[compile] there is no metric {metric!r}; there are accuracy, {', '.join(BY_NAME)}.")
        else:
            result[metric] = make()
    return result


def _accuracy(loss: Any) -> Metric:
    return _ByShape(axis=-1, threshold=0.0 if getattr(loss, "from_logits", False) else 0.5)


BY_NAME: dict[str, Any] = {
    "binary_accuracy": lambda: _Binary(threshold=0.5),
    "categorical_accuracy": lambda: _Categorical(axis=-1),
    "sparse_categorical_accuracy": lambda: _Sparse(axis=-1),
    "sparse_top_k_categorical_accuracy": lambda: TopK(5, axis=-1),
    "precision": lambda: _Precision("binary", classes=2, threshold=0.5),
    "recall": lambda: _Recall("binary", classes=2, threshold=0.5),
    "auc": _Area,
    "mse": _MSE,
    "mean_squared_error": _MSE,
    "mae": _MAE,
    "mean_absolute_error": _MAE,
    "root_mean_squared_error": _RMSE,
}
