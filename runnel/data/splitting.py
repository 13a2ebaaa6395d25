"""A data set cut into parts at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from runnel.core.errors import ArgumentError
from runnel.data.datasets import Dataset, Subset
from runnel.data.sampling import permutation
from runnel.tensor.random import Generator

SampleT = TypeVar("SampleT")


def random_split(
    dataset: Dataset[SampleT], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[SampleT]]:
    """``dataset`` in parts of ``lengths`` samples, chosen at random by ``generator`` (by default, the default one); or
    of shares that sum to 1, where what rounding leaves goes to the first parts one by one. ArgumentError for lengths
    that do not sum to the whole."""
    size: int = len(dataset)  # type: ignore[arg-type]
    counts = _counts(size, lengths)
    order = permutation(size, generator).tolist()
    parts: list[Subset[SampleT]] = []
    for count in counts:
        begin = sum(len(part) for part in parts)
        parts.append(Subset(dataset, order[begin : begin + count]))
    return parts


def _counts(size: int, lengths: Sequence[Any]) -> list[int]:
    if any(isinstance(n, float) for n in lengths) and math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9:
        if any(not 0 <= share <= 1 for share in lengths):
            raise ArgumentError(f"[random_split] shares are from 0 to 1; received {list(lengths)}.")
        counts = [math.floor(size * share) for share in lengths]
        for i in range(size - sum(counts)):
            counts[i % len(counts)] += 1
        return counts
    if any(n < 0 for n in lengths) or sum(lengths) != size:
        raise ArgumentError(
            f"[random_split] lengths sum to the {size} samples of the data set, or to 1 as shares; received "
            f"{list(lengths)}."
        )
    return [int(n) for n in lengths]
