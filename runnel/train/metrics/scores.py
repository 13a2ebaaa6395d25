"""Metrics of scores and likelihoods: areas under curves, perplexity."""

from __future__ import annotations

import math

import numpy as np

from runnel.core.errors import ArgumentError
from runnel.train.metrics.classification import rows_of_scores
from runnel.train.metrics.metric import Metric, quotient, whole_labels


class AUROC(Metric):
    """The area under the curve of true positives over false positives: the probability that a sample of the class gets
    a greater score than one that is not of it, ties counted half (the statistic U of H. Mann and D. Whitney, 1947, over
    the number of pairs). Of more than two classes, the mean over all of them, each against the rest. nan where a class
    has all samples or none.

    ``output`` has the shape of ``target``, scores of class 1; or another axis, ``axis``, for the classes. All scores
    are kept until ``reset()``.
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
                raise ArgumentError(f"[AUROC] labels of one score are 0 and 1; received {wrong[0]}.")
        else:
            scores, right = rows_of_scores("AUROC", output, target, self.axis, None)
        before = self.sums["scores"]
        if len(before) and before.shape[1] != scores.shape[1]:
            raise ArgumentError(
                f"[AUROC] batches have one number of classes; received {scores.shape[1]} after {before.shape[1]}."
            )
        self.sums["scores"] = np.concatenate([before, scores]) if len(before) else scores
        self.sums["labels"] = np.concatenate([self.sums["labels"], right])

    def compute(self) -> float:
        scores, right = self.sums["scores"], self.sums["labels"]
        if scores.shape[1] <= 2:
            return area(scores[:, -1], right == 1) if len(scores) else math.nan
        return float(np.mean([area(scores[:, label], right == label) for label in range(scores.shape[1])]))


def area(scores: np.ndarray, positive: np.ndarray) -> float:
    """The area under the curve, by the ranks of the positive samples among all."""
    count = int(np.count_nonzero(positive))
    others = len(positive) - count
    if not count or not others or np.isnan(scores).any():
        return math.nan
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # the mean rank of equal scores, counted from 1
    above = float(ranks[place[positive]].sum()) - count * (count + 1) / 2
    return above / (count * others)


class Perplexity(Metric):
    """exp of the mean of -log p, where p is what the softmax of the logits gives the right label.

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
