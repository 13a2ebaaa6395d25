"""Inputs and targets as arrays, with transforms: whole batches at once where the transform can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.core.errors import ShapeError
from runnel.data.datasets import Dataset
from runnel.data.randomness import batch_draws
from runnel.data.transforms.base import takes_batches
from runnel.tensor.creation import asarray


class ArrayDataset(Dataset[Any]):
    """Pairs (``transform(inputs[i])``, ``target_transform(targets[i])``) of NumPy arrays, memory-mapped ones as well.

    Where ``transform`` is made of :class:`~runnel.data.transforms.base.Transform` alone, a
    :class:`~runnel.data.loader.DataLoader` takes whole batches, with the same values and random numbers and in a
    fraction of the time.

    Args:
        inputs, targets: arrays with as many rows each, else ShapeError.
        transform, target_transform: functions of one input and of one target.
    """

    def __init__(
        self,
        inputs: np.ndarray,
        targets: np.ndarray,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
    ) -> None:
        if len(inputs) != len(targets):
            raise ShapeError(f"[ArrayDataset] {len(inputs)} inputs and {len(targets)} targets are no pairs.")
        self.inputs = inputs
        self.targets = targets
        self.transform = transform
        self.target_transform = target_transform

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        x, y = self.inputs[index], self.targets[index]
        x = x if self.transform is None else self.transform(x)
        return x, y if self.target_transform is None else self.target_transform(y)

    @property
    def collated(self) -> Callable[[Sequence[int]], list[Any]] | None:
        """Batches by numbers, if there is nothing that takes single samples alone."""
        if self.target_transform is not None:
            return None
        return self._batch if self.transform is None or takes_batches(self.transform) else None

    def _batch(self, indices: Sequence[int]) -> list[Any]:
        rows = np.asarray(indices, np.int64)
        inputs = self.inputs[rows]
        if self.transform is not None:
            inputs = inputs[:, None] if inputs.ndim == 3 else inputs  # images without an axis of channels
            inputs = self.transform.many(inputs, batch_draws(len(rows)))  # type: ignore[attr-defined]
        return [asarray(inputs, copy=False), asarray(np.asarray(self.targets[rows]), copy=False)]
