"""``DataLoader``: the batches of a data set, in an order that follows from the seed alone."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

from runnel.core.errors import ArgumentError
from runnel.core.surface import offered
from runnel.data.collating import default_collate, default_convert
from runnel.data.datasets import IterableDataset
from runnel.data.sampling import BatchSampler, RandomSampler, SequentialSampler
from runnel.tensor.random import Generator

Batches = Iterator[Any]


@offered("data")
class DataLoader:
    """The batches of a data set: ``for x, y in DataLoader(dataset, batch_size=64, shuffle=True): ...``. Each ``for``
    goes through the data once, in an order of its own.

    Args:
        dataset: samples by number, or an IterableDataset.
        batch_size: how many samples a batch has; None gives the samples themselves, each as
            :func:`~runnel.data.collating.default_convert` makes it.
        shuffle: in random order; by default in that of the data set.
        sampler: the numbers of the samples in their order, in place of ``shuffle``.
        batch_sampler: lists of numbers, in place of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: how many threads prepare batches ahead; 0 prepares each when it is asked for. The order is the
            same. Code in Python gains from it where it waits or computes in NumPy or here.
        collate_fn: makes a batch of a list of samples; by default :func:`~runnel.data.collating.default_collate`.
        pin_memory: accepted and without effect, as there is one memory; so are ``timeout``, ``worker_init_fn``,
            ``multiprocessing_context``, ``persistent_workers`` and ``pin_memory_device``.
        drop_last: leave the last batch out where it is shorter.
        generator: where the random order comes from, by default the default generator (``rn.manual_seed``).
        prefetch_factor: how many batches each worker prepares ahead.

    ArgumentError for arguments that exclude one another.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
    ) -> None:
        in_sequence = isinstance(dataset, IterableDataset)
        _require_number("num_workers", num_workers, 0)
        _require_number("prefetch_factor", 2 if prefetch_factor is None else prefetch_factor, 1)
        if in_sequence and (shuffle or sampler is not None or batch_sampler is not None or num_workers):
            raise ArgumentError(
                "[DataLoader] an IterableDataset comes in its own order, one sample after the other; leave shuffle, "
                "sampler, batch_sampler and num_workers out."
            )
        if sampler is not None and shuffle:
            raise ArgumentError("[DataLoader] sampler and shuffle both choose the order; pass one of them.")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ArgumentError(
                "[DataLoader] batch_sampler chooses the batches; leave batch_size, shuffle, sampler and drop_last out."
            )
        if batch_size is None and drop_last and batch_sampler is None:
            raise ArgumentError("[DataLoader] without batch_size there is no last batch to drop.")
        if batch_size is not None:
            _require_number("batch_size", batch_size, 1)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.drop_last = drop_last
        self.generator = generator
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.batch_size = None if batch_sampler is not None else batch_size
        self.sampler: Any = sampler
        if sampler is None and not in_sequence:
            self.sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.batch_sampler: Any = batch_sampler
        if batch_sampler is None and batch_size is not None and not in_sequence:
            self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        is_batched = self.batch_sampler is not None or batch_size is not None
        self.collate_fn: Callable[[Any], Any] = collate_fn or (default_collate if is_batched else default_convert)

    def __iter__(self) -> Batches:
        if isinstance(self.dataset, IterableDataset):
            return self._in_sequence(iter(self.dataset))
        if self.batch_sampler is None:
            return self._prepared(iter(self.sampler), lambda number: self.collate_fn(self.dataset[number]))
        return self._prepared(iter(self.batch_sampler), self._batch)

    def __len__(self) -> int:
        """The number of batches. TypeError where the data set or the sampler has no length."""
        if not isinstance(self.dataset, IterableDataset):
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        count: int = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def _batch(self, numbers: Sequence[int]) -> Any:
        """The batch of the samples ``numbers``."""
        collated = getattr(self.dataset, "collated", None)
        if collated is not None and self.collate_fn is default_collate:
            return collated(numbers)
        several = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(several(numbers) if several is not None else [self.dataset[i] for i in numbers])

    def _in_sequence(self, samples: Iterator[Any]) -> Batches:
        """The batches of an IterableDataset."""
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        while batch := list(islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def _prepared(self, keys: Iterator[Any], prepare: Callable[[Any], Any]) -> Batches:
        """What ``prepare`` makes of each key, in their order; ahead of time where there are workers."""
        if not self.num_workers:
            yield from map(prepare, keys)
            return
        ahead = self.num_workers * (self.prefetch_factor or 2)
        workers = ThreadPoolExecutor(self.num_workers, thread_name_prefix="DataLoader")
        pending: collections.deque[Future[Any]] = collections.deque()
        try:
            for key in keys:
                pending.append(workers.submit(prepare, key))
                if len(pending) >= ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            workers.shutdown(wait=True, cancel_futures=True)


def _require_number(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ArgumentError(f"[DataLoader] {name} is an int of {least} or more; received {value!r}.")
