"""Metrics of classification: accuracies and quotients of counts in a confusion matrix."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from runnel.core.errors import ArgumentError, ShapeError
from runnel.train.metrics.metric import Metric, labels, quotient, whole_labels

AVERAGES: Final = ("binary", "macro", "micro", "weighted", None)


class Accuracy(Metric):
    """The share of correct labels.

    Args:
        axis: the axis of ``output`` with a score for each class, if it has one axis more than ``target``.
        threshold: floats above it mean class 1, if ``output`` has the shape of ``target``: 0 for logits, 0.5 for
            probabilities.
        ignore_index: a label of ``target`` that is not counted.
    """

    name = "accuracy"

    def __init__(self, axis: int = 1, threshold: float = 0.0, ignore_index: int | None = None) -> None:
        self.axis = axis
        self.threshold = threshold
        self.ignore_index = ignore_index
        super().__init__()

    def initial(self) -> dict[str, np.ndarray]:
        return {"right": np.zeros((), np.int64), "count": np.zeros((), np.int64)}

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        predicted, right = labels("Accuracy", output, target, self.axis, self.threshold, self.ignore_index)
        self.sums["right"] += np.count_nonzero(predicted == right)
        self.sums["count"] += right.size

    def compute(self) -> float:
        return quotient(self.sums["right"], self.sums["count"])


class TopK(Metric):
    """The share of samples whose label is among the ``k`` classes with the highest scores.

    Among equal scores the smaller class comes first, so ``TopK(1)`` is :class:`Accuracy`.

    Args:
        k: number of classes that count.
        axis: the axis of ``output`` with a score for each class; ``target`` has the other axes.
        ignore_index: a label of ``target`` that is not counted.
    """

    name = "top_k"

    def __init__(self, k: int = 5, axis: int = 1, ignore_index: int | None = None) -> None:
        if k < 1:
            raise ArgumentError(f"[TopK] k must be 1 or more; got {k}.")
        self.k = k
        self.axis = axis
        self.ignore_index = ignore_index
        super().__init__()

    def initial(self) -> dict[str, np.ndarray]:
        return {"right": np.zeros((), np.int64), "count": np.zeros((), np.int64)}

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        scores, right = rows_of_scores("TopK", output, target, self.axis, self.ignore_index)
        own = scores[np.arange(len(right)), right][:, None]
        earlier = np.arange(scores.shape[1]) < right[:, None]
        before = np.count_nonzero((scores > own) | ((scores == own) & earlier), axis=1)
        self.sums["right"] += np.count_nonzero(before < self.k)
        self.sums["count"] += right.size

    def compute(self) -> float:
        return quotient(self.sums["right"], self.sums["count"])


class ConfusionMatrix(Metric):
    """Counts of predicted labels (columns) for each correct label (rows), int64.

    Args:
        classes: number of labels; by default as many as have occurred.
        axis, threshold, ignore_index: as for :class:`Accuracy`.
    """

    name = "confusion_matrix"

    def __init__(
        self, classes: int | None = None, axis: int = 1, threshold: float = 0.0, ignore_index: int | None = None
    ) -> None:
        self.classes = classes
        self.axis = axis
        self.threshold = threshold
        self.ignore_index = ignore_index
        super().__init__()

    def initial(self) -> dict[str, np.ndarray]:
        return {"counts": np.zeros((self.classes or 0,) * 2, np.int64)}

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        kind = type(self).__name__
        predicted, right = labels(kind, output, target, self.axis, self.threshold, self.ignore_index)
        if not right.size:
            return
        lowest, highest = min(predicted.min(), right.min()), int(max(predicted.max(), right.max()))
        if lowest < 0 or (self.classes is not None and highest >= self.classes):
            wrong = lowest if lowest < 0 else highest
            bound = "" if self.classes is None else f" and below {self.classes}"
            raise ArgumentError(f"[{kind}] labels must be 0 or more{bound}; got {wrong}.")
        counts = self.sums["counts"]
        size = max(len(counts), highest + 1)
        grown = np.bincount(right * size + predicted, minlength=size * size).reshape(size, size)
        grown[: len(counts), : len(counts)] += counts
        self.sums["counts"] = grown.astype(np.int64)

    def compute(self) -> Any:
        return self.sums["counts"].copy()


class _OfCounts(ConfusionMatrix):
    """A quotient of counts for each class, and its average over classes."""

    def __init__(
        self,
        average: str | None = "macro",
        classes: int | None = None,
        axis: int = 1,
        threshold: float = 0.0,
        ignore_index: int | None = None,
    ) -> None:
        if average not in AVERAGES:
            raise ArgumentError(
                f"[{type(self).__name__}] average must be one of {', '.join(map(repr, AVERAGES))}; got {average!r}."
            )
        self.average = average
        super().__init__(classes, axis, threshold, ignore_index)

    def share(self, hits: Any, predicted: Any, right: Any) -> Any:
        """Return the quotient of counts of hits, predictions and correct labels; 0 for 0/0."""
        raise NotImplementedError

    def compute(self) -> Any:
        counts = self.sums["counts"]
        hits, predicted, right = np.diag(counts), counts.sum(axis=0), counts.sum(axis=1)
        if self.average == "binary":
            if len(counts) > 2:
                raise ArgumentError(
                    f"[{type(self).__name__}] average='binary' needs labels 0 and 1; got labels up to "
                    f"{len(counts) - 1}. Pass average='macro', 'micro' or 'weighted'."
                )
            return float(self.share(hits, predicted, right)[1]) if len(counts) == 2 else 0.0
        if self.average == "micro":
            return float(self.share(hits.sum(), predicted.sum(), right.sum()))
        met = predicted + right > 0
        shares = self.share(hits, predicted, right)
        if self.average is None:
            return shares
        if self.average == "weighted":
            return quotient((shares * right).sum(), right.sum())
        return quotient(shares[met].sum(), np.count_nonzero(met))


def _safe(part: Any, whole: Any) -> Any:
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > 0)


class Precision(_OfCounts):
    """The share of samples predicted as a class that belong to it: tp / (tp + fp); 0 if none was predicted.

    Args:
        average: over classes: "macro" is the mean over the classes that occur, "weighted" is weighted by numbers of
            correct labels, "micro" counts all together, "binary" is the value of class 1, and None returns the value of
            each class.
        classes, axis, threshold, ignore_index: as for :class:`ConfusionMatrix`.
    """

    name = "precision"

    def share(self, hits: Any, predicted: Any, right: Any) -> Any:
        return _safe(hits, predicted)


class Recall(_OfCounts):
    """The share of samples of a class that were predicted as it: tp / (tp + fn); 0 if the class has none.

    It takes the same arguments as :class:`Precision`.
    """

    name = "recall"

    def share(self, hits: Any, predicted: Any, right: Any) -> Any:
        return _safe(hits, right)


class F1(_OfCounts):
    """The harmonic mean of precision and recall: 2·tp / (2·tp + fp + fn); 0 for 0/0.

    It takes the same arguments as :class:`Precision`.
    """

    name = "f1"

    def share(self, hits: Any, predicted: Any, right: Any) -> Any:
        return _safe(2 * hits, predicted + right)


def rows_of_scores(
    metric: str, output: np.ndarray, target: np.ndarray, axis: int, ignore_index: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores as float64 (samples, classes) and correct labels as a vector, without ignored ones."""
    has_axis = output.ndim == target.ndim + 1 and -output.ndim <= axis < output.ndim
    if not has_axis or np.moveaxis(output, axis, -1).shape[:-1] != target.shape:
        raise ShapeError(
            f"[{metric}] output must have the axes of target and one more, for the classes (axis={axis}); got "
            f"{output.shape} and {target.shape}."
        )
    scores = np.moveaxis(output, axis, -1).reshape(-1, output.shape[axis]).astype(np.float64)
    right = whole_labels(metric, target)
    if ignore_index is not None:
        counted = right != ignore_index
        scores, right = scores[counted], right[counted]
    if right.size and (right.min() < 0 or right.max() >= scores.shape[1]):
        wrong = right.min() if right.min() < 0 else right.max()
        raise ArgumentError(f"[{metric}] labels must be in [0, {scores.shape[1]}); got {wrong}.")
    return scores, right
