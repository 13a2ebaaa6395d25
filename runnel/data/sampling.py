"""Samplers: the order of samples, batches of indices, and the share of each of several processes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from runnel import ops
from runnel.core.errors import ArgumentError
from runnel.tensor.random import Generator, next_key

NumberT = TypeVar("NumberT", covariant=True)


class Sampler(Generic[NumberT]):
    """An order of samples. A subclass defines ``__iter__()``, and ``__len__()`` if it is known."""

    def __iter__(self) -> Iterator[NumberT]:
        raise NotImplementedError(f"[{type(self).__name__}] a Sampler defines __iter__().")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, …"""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """``num_samples`` numbers in random order, by default all.

    Each pass over the data is a permutation, or with ``replacement`` independent draws. The order depends only on the
    state of ``generator``, the default generator by default (:func:`runnel.manual_seed`).
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if num_samples is not None and num_samples < 0:
            raise ArgumentError(f"[RandomSampler] num_samples must be 0 or more; got {num_samples}.")
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """Number of samples in one pass."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, count = len(self.data_source), self.num_samples
        if not size and count:
            raise ArgumentError(f"[RandomSampler] {count} samples are asked of a data set without any.")
        # all is drawn now: what others draw while the numbers are taken changes nothing
        if self.replacement:
            return iter((drawn(count, self.generator) * size).astype(np.int64).tolist())
        key = next_key(self.generator, None)
        passes = -(-count // size) if size else 0
        orders = (_order(size, key if i == 0 else ops.fold_in(key, i)) for i in range(passes))
        return itertools.islice(itertools.chain.from_iterable(order.tolist() for order in orders), count)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The numbers ``indices`` in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in permutation(len(self.indices), self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """``num_samples`` numbers, i with a probability proportional to ``weights[i]``.

    Without ``replacement`` each number occurs at most once (P. Efraimidis, P. Spirakis, "Weighted random sampling with
    a reservoir", 2006).
    """

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        self.weights = np.asarray(weights, np.float64)
        if self.weights.ndim != 1 or not np.all(np.isfinite(self.weights)) or np.any(self.weights < 0):
            raise ArgumentError("[WeightedRandomSampler] weights are a vector of numbers that are 0 or more.")
        possible = int(np.count_nonzero(self.weights))
        if num_samples <= 0 or not possible or (not replacement and num_samples > possible):
            raise ArgumentError(
                f"[WeightedRandomSampler] num_samples is 1 or more, and without replacement at most {possible}, the "
                f"number of weights that are not 0; got {num_samples}."
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        if self.replacement:
            ends = np.cumsum(self.weights)
            chosen = np.searchsorted(ends, drawn(self.num_samples, self.generator) * ends[-1], side="right")
        else:
            shares = np.divide(1, self.weights, where=self.weights > 0, out=np.full(len(self.weights), np.inf))
            chosen = np.argsort(-np.log1p(-drawn(len(shares), self.generator)) * shares, kind="stable")
        return iter(chosen[: self.num_samples].tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` numbers of a sampler; the last may be shorter, or with ``drop_last`` is dropped."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        if isinstance(batch_size, bool) or batch_size < 1:
            raise ArgumentError(f"[BatchSampler] batch_size must be 1 or more; got {batch_size!r}.")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        return self._batches(iter(self.sampler))  # which may draw at random, now and not with the first batch

    def _batches(self, numbers: Iterator[int]) -> Iterator[list[int]]:
        batch: list[int] = []
        for number in numbers:
            batch.append(number)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count: int = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else math.ceil(count / self.batch_size)


def permutation(size: int, generator: Generator | None) -> np.ndarray:
    """Return the integers below ``size`` in random order: int64."""
    return _order(size, next_key(generator, None))


def drawn(count: int, generator: Generator | None) -> np.ndarray:
    """Draw uniform float64 numbers from [0, 1)."""
    return (_words(count, next_key(generator, None)) >> np.uint64(11)) * 2.0**-53


def _order(size: int, key: Any) -> np.ndarray:
    return np.argsort(_words(size, key), kind="stable")


def _words(count: int, key: Any) -> np.ndarray:
    """Draw random uint64 numbers."""
    high, low = ops.random_bits(key, (2, count)).numpy().astype(np.uint64)
    return (high << np.uint64(32)) | low


class DistributedSampler(Sampler[int]):
    """The sample numbers of process ``rank`` of ``num_replicas``.

    They are the items rank, rank + num_replicas, … of an order that is the same in all processes. All take the same
    number: the first samples are repeated if there are too few, or with ``drop_last`` the last are dropped.

    Args:
        dataset: an object with a length.
        num_replicas, rank: the number of processes, and the number of this one.
        shuffle: use a random order that depends on ``seed`` and the epoch (:meth:`set_epoch`).
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise ArgumentError("[DistributedSampler] no other processes are known here: pass num_replicas and rank.")
        if not 0 <= rank < num_replicas:
            raise ArgumentError(f"[DistributedSampler] rank must be less than num_replicas={num_replicas}; got {rank}.")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of another epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        size = len(self.dataset)
        return size // self.num_replicas if self.drop_last else -(-size // self.num_replicas)

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        order = permutation(size, Generator(self.seed + self.epoch)).tolist() if self.shuffle else range(size)
        count = len(self) * self.num_replicas
        whole = itertools.islice(itertools.cycle(order), count)
        return itertools.islice(whole, self.rank, None, self.num_replicas)

    def state_dict(self) -> dict[str, int]:
        """Return the epoch, for ``DataLoader.state_dict``."""
        return {"epoch": self.epoch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved epoch."""
        self.epoch = int(state["epoch"])
