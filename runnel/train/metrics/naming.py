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
OTHER_FIGURES: Final = ("epoch", "loss", "lr", "step")  # names that logs have without metrics


def named_metrics(metrics: Mapping[str, Any] | Iterable[Any] | None) -> dict[str, Metric]:
    """Metrics by name: of a mapping, or of a sequence of metrics, and of names of metrics. ArgumentError for others."""
    if metrics is None:
        return {}
    if isinstance(metrics, str | Metric):
        metrics = [metrics]
    if isinstance(metrics, Mapping):
        named = [(str(name), _metric(metric)) for name, metric in metrics.items()]
    else:
        named = [(metric.name, metric) for metric in map(_metric, metrics)]
    result: dict[str, Metric] = {}
    for name, metric in named:
        if name in result or name in OTHER_FIGURES or name.startswith("val_"):
            what = "two metrics are" if name in result else "no metric can be"
            raise ArgumentError(f"[Trainer] {what} called '{name}'; pass a dict with a name for each of them.")
        result[name] = metric
    return result


def _metric(metric: Any) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str) and metric in BY_NAME:
        return BY_NAME[metric]()
    raise ArgumentError(f"[Trainer] a metric is a Metric, or one of {', '.join(BY_NAME)}; received {metric!r}.")
