"""Map-style and iterable data sets: rows of tensors, arrays with transforms, concatenations, subsets, random splits."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from runnel.core.errors import ArgumentError, ShapeError
from runnel.data.randomness import batch_draws
from runnel.data.sampling import permutation
from runnel.data.transforms.base import takes_batches
from runnel.tensor.creation import asarray
from runnel.tensor.random import Generator

SampleT = TypeVar("SampleT", covariant=True)


class Dataset(Generic[SampleT]):
    """Samples by number. A subclass defines ``__getitem__(index)``, and ``__len__()`` if a sampler needs it.

    It can also define ``collated(indices)``, which returns the samples as one batch.
    :class:`~runnel.data.loader.DataLoader` calls it instead of reading single samples unless it has a ``collate_fn``.
    """

    def __getitem__(self, index: Any) -> SampleT:
        raise NotImplementedError(f"[{type(self).__name__}] a Dataset defines __getitem__(index).")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[SampleT]):
    """Samples in a fixed order. A subclass defines ``__iter__()``."""

    def __iter__(self) -> Iterator[SampleT]:
        raise NotImplementedError(f"[{type(self).__name__}] an IterableDataset defines __iter__().")

    def __add__(self, other: Dataset[Any]) -> ChainDataset[Any]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """The rows of tensors: sample i is the tuple of ``tensor[i]``. All must have the same number of rows."""

    def __init__(self, *tensors: Any) -> None:
        if not tensors:
            raise ArgumentError("[TensorDataset] there are no tensors; pass one at least.")
        if any(not t.ndim or len(t) != len(tensors[0]) for t in tensors):
            shapes = ", ".join(str(t.shape) for t in tensors)
            raise ShapeError(f"[TensorDataset] tensors must have the same number of rows; got shapes {shapes}.")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])

    def collated(self, indices: Sequence[int]) -> list[Any]:
        """Return the rows ``indices`` of each tensor."""
        rows = np.asarray(indices, np.int64)
        return [t[rows] for t in self.tensors]


class StackDataset(Dataset[Any]):
    """Data sets in parallel: sample i is the tuple (or, for keyword arguments, the dict) of their samples i."""

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if bool(args) == bool(kwargs):
            raise ArgumentError("[StackDataset] pass data sets, either all of them by name or none.")
        self.datasets: Any = kwargs or args
        lengths = [_length(d) for d in (*args, *kwargs.values())]
        if len(set(lengths)) > 1:
            raise ShapeError(f"[StackDataset] data sets must have the same number of samples; got {lengths}.")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[SampleT]):
    """Concatenated data sets."""

    def __init__(self, datasets: Iterable[Dataset[SampleT]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError("[ConcatDataset] there are no data sets; pass one at least.")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise ArgumentError("[ConcatDataset] an IterableDataset has no samples by number; use ChainDataset.")
        self.cumulative_sizes = list(itertools.accumulate(map(_length, self.datasets)))

    def __getitem__(self, index: Any) -> SampleT:
        place = _index("ConcatDataset", index, len(self))
        number = bisect.bisect_right(self.cumulative_sizes, place)
        return self.datasets[number][place - (self.cumulative_sizes[number - 1] if number else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[SampleT]):
    """Concatenated IterableDatasets."""

    def __init__(self, datasets: Iterable[Dataset[SampleT]]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[SampleT]:
        for dataset in self.datasets:
            yield from dataset  # type: ignore[misc]

    def __len__(self) -> int:
        return sum(map(_length, self.datasets))


class Subset(Dataset[SampleT]):
    """The samples of a data set with numbers ``indices``, in this order."""

    def __init__(self, dataset: Dataset[SampleT], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> SampleT:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def collated(self) -> Any:
        """Function from numbers to a batch, if the data set has one."""
        theirs = getattr(self.dataset, "collated", None)
        return None if theirs is None else lambda indices: theirs([self.indices[i] for i in indices])


def _length(dataset: Any) -> int:
    return len(dataset)


def _index(name: str, index: Any, length: int) -> int:
    place = operator.index(index)
    if not -length <= place < length:
        raise IndexError(f"[{name}] sample {place} of {length} was asked for.")
    return place % length


class ArrayDataset(Dataset[Any]):
    """Pairs (``transform(inputs[i])``, ``target_transform(targets[i])``) of NumPy arrays, also memory-mapped ones.

    If ``transform`` consists only of :class:`~runnel.data.transforms.base.Transform`, a
    :class:`~runnel.data.loader.DataLoader` reads whole batches, with the same values and random numbers in a fraction
    of the time.

    Args:
        inputs, targets: arrays with the same number of rows, else ShapeError.
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
        """Function from numbers to a batch, if no function needs single samples."""
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


def random_split(
    dataset: Dataset[SampleT], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[SampleT]]:
    """Split ``dataset`` at random into parts of ``lengths`` samples, or of shares that sum to 1.

    Samples left by rounding shares go to the first parts one by one. ``generator`` is the default one by default.
    ArgumentError for lengths that do not sum to the whole.
    """
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
            raise ArgumentError(f"[random_split] shares must be from 0 to 1; got {list(lengths)}.")
        counts = [math.floor(size * share) for share in lengths]
        for i in range(size - sum(counts)):
            counts[i % len(counts)] += 1
        return counts
    if any(n < 0 for n in lengths) or sum(lengths) != size:
        raise ArgumentError(
            f"[random_split] lengths must sum to the {size} samples of the data set, or to 1 as shares; got "
            f"{list(lengths)}."
        )
    return [int(n) for n in lengths]
