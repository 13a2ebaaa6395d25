"""Metrics by Keras' names; what "accuracy" means follows from shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from runnel.core.errors import ArgumentError
from runnel.train.metrics.classification import Accuracy, Precision, Recall, TopK
from runnel.train.metrics.metric import Metric
from runnel.train.metrics.scores import AUROC, MAE, MSE, RMSE


def in_shape(output: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The target in the shape of the output, where it has as many elements."""
    return target.reshape(output.shape) if target.size == output.size else target


class _Binary(Accuracy):
    """Outputs of one number a sample, whatever the shape of the target."""

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        super().add(output, in_shape(output, target))


class _Categorical(Accuracy):
    """Targets that are probabilities of classes, as the output."""

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        super().add(output, target.argmax(axis=-1))


class _Sparse(Accuracy):
    """Targets that are labels, perhaps with an axis of length 1 behind."""

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        super().add(output, target.reshape(output.shape[:-1]))


class _ByShape(Accuracy):
    """Of one number a sample, of probabilities of classes, or of labels: as the shapes say."""

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        if output.ndim == 1 or output.shape[-1] == 1:
            super().add(output, in_shape(output, target))
        elif output.shape == target.shape:
            super().add(output, target.argmax(axis=-1))
        else:
            super().add(output, target.reshape(output.shape[:-1]))


class _BinaryPrecision(Precision):
    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        super().add(output, in_shape(output, target))


class _BinaryRecall(Recall):
    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        super().add(output, in_shape(output, target))


class _Area(AUROC):
    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        super().add(output.ravel(), target.ravel())


class _Shaped:
    """Errors of numbers, with targets in the shape of the output."""

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        super().add(output, in_shape(output, target))  # type: ignore[misc]


class _MSE(_Shaped, MSE):
    pass


class _MAE(_Shaped, MAE):
    pass


class _RMSE(_Shaped, RMSE):
    pass


def named(metrics: Iterable[Any], loss: Any) -> dict[str, Metric]:
    """Metrics by name. ArgumentError for an unknown one."""
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
    "precision": lambda: _BinaryPrecision("binary", classes=2, threshold=0.5),
    "recall": lambda: _BinaryRecall("binary", classes=2, threshold=0.5),
    "auc": _Area,
    "mse": _MSE,
    "mean_squared_error": _MSE,
    "mae": _MAE,
    "mean_absolute_error": _MAE,
    "root_mean_squared_error": _RMSE,
}
