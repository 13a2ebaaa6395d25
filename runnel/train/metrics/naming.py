"""Metrics by name, and what users pass for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from runnel.core.errors import ArgumentError
from runnel.train.metrics.classification import F1, Accuracy, ConfusionMatrix, Precision, Recall, TopK
from runnel.train.metrics.metric import Metric
from runnel.train.metrics.regression import MAE, MSE, RMSE
from runnel.train.metrics.scores import AUROC, Perplexity

BY_NAME: Final[Mapping[str, type[Metric]]] = {
    kind.name: kind
    for kind in (Accuracy, TopK, Precision, Recall, F1, ConfusionMatrix, AUROC, Perplexity, MSE, RMSE, MAE)
}


def named_metrics(metrics: Mapping[str, Any] | Iterable[Any] | None) -> dict[str, Metric]:
    """Metrics by name: of a mapping, or of a sequence of metrics, and of names of metrics. ArgumentError for others."""
    if metrics is None:
        return {}
    if isinstance(metrics, str | Metric):
        metrics = [metrics]
    if isinstance(metrics, Mapping):
        return {str(name): _metric(metric) for name, metric in metrics.items()}
    result: dict[str, Metric] = {}
    for metric in map(_metric, metrics):
        if metric.name in result:
            raise ArgumentError(
                f"[Trainer] two metrics are called '{metric.name}'; pass a dict with a name for each of them."
            )
        result[metric.name] = metric
    return result


def _metric(metric: Any) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str) and metric in BY_NAME:
        return BY_NAME[metric]()
    raise ArgumentError(f"[Trainer] a metric is a Metric, or one of {', '.join(BY_NAME)}; received {metric!r}.")
