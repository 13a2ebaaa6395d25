"""Metrics of regression: errors of predicted numbers."""

from __future__ import annotations

import math

import numpy as np

from runnel.train.metrics.metric import Metric, quotient


class _OfDifferences(Metric):
    """A mean over all elements of a function of output - target."""

    def initial(self) -> dict[str, np.ndarray]:
        return {"sum": np.zeros(()), "count": np.zeros((), np.int64)}

    def of(self, difference: np.ndarray) -> np.ndarray:
        """The function."""
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
