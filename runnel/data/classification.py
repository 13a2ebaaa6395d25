"""A data set for classification: inputs and labels, for training and for testing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np


class Classification(NamedTuple):
    """Inputs (N, ...), float32 where they are numbers and int32 where they are words, and labels int64 (N,)."""

    name: str
    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray

    @property
    def classes(self) -> int:
        return int(self.train_y.max()) + 1

    def batches(self, size: int, generator: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All training examples shuffled, in batches of ``size``; what is left over waits for another epoch."""
        order = generator.permutation(len(self.train_y))
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            yield self.train_x[chosen], self.train_y[chosen]
