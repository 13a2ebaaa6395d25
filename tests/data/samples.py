"""A data set whose samples hold everything, and its batches: for the processes of a test as well."""

from __future__ import annotations

from typing import Any

import numpy as np

import runnel as rn
from runnel.data import DataLoader, Dataset, sample_rng


class Samples(Dataset[Any]):
    """Arrays, numbers and strings, with random numbers of every source that follows from the sample."""

    def __init__(self, count: int = 23) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return {
            "array": np.full((2, 3), index, np.float32),
            "draw": sample_rng().integers(1 << 40),
            "again": sample_rng().random(),
            "tensor": rn.rand(2) + index,
            "name": f"sample {index}",
            "label": index,
        }


def plain(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {key: plain(value) for key, value in batch.items()}
    return batch.tolist() if hasattr(batch, "tolist") else batch


def batches(workers: int, data: Any = None, **options: Any) -> list[Any]:
    rn.manual_seed(7)
    options = {"batch_size": 4, "shuffle": True} | options
    return [plain(b) for b in DataLoader(Samples() if data is None else data, num_workers=workers, **options)]
