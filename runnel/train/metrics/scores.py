"""Metrics of losses and regression, and the lookup of metrics by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from runnel.core.errors import ArgumentError
from runnel.train.metrics.classification import F1, Accuracy, ConfusionMatrix, Precision, Recall, TopK, rows_of_scores
from runnel.train.metrics.metric import Metric, quotient, whole_labels


class AUROC(Metric):
    """The area under the ROC curve: the probability that a positive sample scores higher than a negative one.

    Ties count half (the statistic U of H. Mann and D. Whitney, 1947, divided by the number of pairs). For more than two
    classes it is the mean over each class against the rest. It is NaN if a class has all samples or none.

    ``output`` has the shape of ``target``, with scores of class 1; or another axis, ``axis``, for the classes. All
    scores are kept until ``reset()``.
    """

    name = "auroc"

    def __init__(self, axis: int = 1) -> None:
        self.axis = axis
        super().__init__()

    def initial(self) -> dict[str, np.ndarray]:
        return {"scores": np.zeros((0, 0)), "labels": np.zeros(0, np.int64)}

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        if output.ndim == target.ndim:
            self.require_equal_shapes(output, target)
            scores, right = output.astype(np.float64).reshape(-1, 1), whole_labels("AUROC", target)
            wrong = right[(right < 0) | (right > 1)]
            if wrong.size:
                raise ArgumentError(f"[AUROC] labels of one score must be 0 and 1; got {wrong[0]}.")
        else:
            scores, right = rows_of_scores("AUROC", output, target, self.axis, None)
        before = self.sums["scores"]
        if len(before) and before.shape[1] != scores.shape[1]:
            raise ArgumentError(
                f"[AUROC] batches must have one number of classes; got {scores.shape[1]} after {before.shape[1]}."
            )
        self.sums["scores"] = np.concatenate([before, scores]) if len(before) else scores
        self.sums["labels"] = np.concatenate([self.sums["labels"], right])

    def compute(self) -> float:
        scores, right = self.sums["scores"], self.sums["labels"]
        if scores.shape[1] <= 2:
            return area(scores[:, -1], right == 1) if len(scores) else math.nan
        return float(np.mean([area(scores[:, label], right == label) for label in range(scores.shape[1])]))


def area(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return the area under the curve from the ranks of the positive samples."""
    count = int(np.count_nonzero(positive))
    others = len(positive) - count
    if not count or not others or np.isnan(scores).any():
        return math.nan
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # the mean rank of equal scores, counted from 1
    above = float(ranks[place[positive]].sum()) - count * (count + 1) / 2
    return above / (count * others)


class Perplexity(Metric):
    """exp of the mean of -log p, where p is the softmax probability of the correct label.

    Args:
        axis: the axis of ``output`` with a logit for each class; ``target`` has the other axes.
        ignore_index: a label of ``target`` that is not counted.
    """

    name = "perplexity"

    def __init__(self, axis: int = 1, ignore_index: int | None = None) -> None:
        self.axis = axis
        self.ignore_index = ignore_index
        super().__init__()

    def initial(self) -> dict[str, np.ndarray]:
        return {"sum": np.zeros(()), "count": np.zeros((), np.int64)}

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        logits, right = rows_of_scores("Perplexity", output, target, self.axis, self.ignore_index)
        if not right.size:
            return
        greatest = logits.max(axis=1)
        totals = greatest + np.log(np.exp(logits - greatest[:, None]).sum(axis=1))
        self.sums["sum"] = np.asarray(self.sums["sum"] + (totals - logits[np.arange(len(right)), right]).sum())
        self.sums["count"] += right.size

    def compute(self) -> float:
        mean = quotient(self.sums["sum"], self.sums["count"])
        return math.exp(mean) if mean < 700 else mean * math.inf


class _OfDifferences(Metric):
    """A mean over all elements of a function of output - target."""

    def initial(self) -> dict[str, np.ndarray]:
        return {"sum": np.zeros(()), "count": np.zeros((), np.int64)}

    def of(self, difference: np.ndarray) -> np.ndarray:
        """Return the function of differences."""
        raise NotImplementedError

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        self.require_equal_shapes(output, target)
        difference = output.astype(np.float64) - target.astype(np.float64)
        self.sums["sum"] = np.asarray(self.sums["sum"] + self.of(difference).sum())
        self.sums["count"] += difference.size

    def compute(self) -> float:
        return quotient(self.sums["sum"], self.sums["count"])


class MSE(_OfDifferences):
    """The mean of (output - target)² over all elements."""

    name = "mse"

    def of(self, difference: np.ndarray) -> np.ndarray:
        return difference**2


class RMSE(MSE):
    """The square root of the mean of (output - target)² over all elements."""

    name = "rmse"

    def compute(self) -> float:
        return math.sqrt(super().compute())


class MAE(_OfDifferences):
    """The mean of \\|output - target\\| over all elements."""

    name = "mae"

    def of(self, difference: np.ndarray) -> np.ndarray:
        return np.abs(difference)


BY_NAME: Final[Mapping[str, type[Metric]]] = {
    kind.name: kind
    for kind in (Accuracy, TopK, Precision, Recall, F1, ConfusionMatrix, AUROC, Perplexity, MSE, RMSE, MAE)
}
OTHER_FIGURES: Final = ("epoch", "loss", "lr", "step")  # names that logs have without metrics


def named_metrics(metrics: Mapping[str, Any] | Iterable[Any] | None) -> dict[str, Metric]:
    """Return metrics by name, from a mapping or a sequence of metrics and names; ArgumentError for others."""
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
    raise ArgumentError(f"[Trainer] a metric must be a Metric, or one of {', '.join(BY_NAME)}; got {metric!r}.")
