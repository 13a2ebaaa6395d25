"""Fetch one batch of a data set: read samples and combine them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, Self

from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError
from runnel.data.collating import default_collate
from runnel.data.randomness import reading, start_sample

WHOLE: Final = -2  # in place of a sample's number: all of a batch


class Observer(Protocol):
    """Receives the stages of fetching."""

    def sample(self, number: int) -> None:
        """Note that a sample is read next."""

    def collating(self) -> None:
        """Note that samples are combined next."""


def doing(batch: int, sample: int | None) -> str:
    """Return a phrase for messages: the sample of a batch that is read; for None, that samples are combined."""
    if sample is None:
        return f"putting batch {batch} together (collate_fn)"
    if sample == WHOLE:
        return f"reading the samples of batch {batch}, all at once (the data set's collated or __getitems__)"
    return f"reading sample {sample} of batch {batch} (the data set's __getitem__ or __iter__)"


class Noted:
    """Adds the sample and the batch to errors raised in this process while batch ``number`` is made."""

    def __init__(self, number: int) -> None:
        self._batch = number
        self._sample: int | None = None

    def sample(self, number: int) -> None:
        self._sample = number

    def collating(self) -> None:
        self._sample = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            error.add_note(f"[DataLoader] raised in {doing(self._batch, self._sample)}.")


class Source(NamedTuple):
    """The source of batches.

    ``batch_size`` and ``drop_last`` apply to an iterable data set, which is not batched if ``is_batched`` is False.
    Otherwise each request names its samples.
    """

    dataset: Any
    collate_fn: Callable[[Any], Any]
    is_batched: bool
    batch_size: int | None = None
    drop_last: bool = False

    def fetch(self, epoch_key: int, numbers: Any, observer: Observer) -> Any:
        """Return the batch of samples ``numbers``; a single sample if the loader has no batches."""
        try:
            return self._fetched(epoch_key, numbers, observer)
        except StopIteration as error:
            raise _no_end() from error

    def _fetched(self, epoch_key: int, numbers: Any, observer: Observer) -> Any:
        if not self.is_batched:
            with reading(epoch_key, [numbers]):
                observer.sample(_shown(numbers))
                sample = self.dataset[numbers]
                observer.collating()
                return self.collate_fn(sample)
        if not hasattr(numbers, "__len__"):
            raise ArgumentError(f"[DataLoader] batch_sampler must yield lists of indices; got {short_repr(numbers)}.")
        with reading(epoch_key, numbers):
            collated = getattr(self.dataset, "collated", None)
            if collated is not None and self.collate_fn is default_collate:
                observer.sample(WHOLE)
                return collated(numbers)
            samples = self._samples(numbers, observer)
            observer.collating()
            return self.collate_fn(samples)

    def _samples(self, numbers: Sequence[Any], observer: Observer) -> Any:
        several = getattr(self.dataset, "__getitems__", None)
        if several is not None:
            observer.sample(WHOLE)
            return several(numbers)
        dataset, samples = self.dataset, []
        for number in numbers:
            start_sample(number)
            observer.sample(_shown(number))
            samples.append(dataset[number])
        return samples


class Stream:
    """The batches of an iterable data set in order. Its samples are counted from ``first``."""

    def __init__(self, source: Source, epoch_key: int, first: int = 0) -> None:
        self._source = source
        self._epoch_key = epoch_key
        self._next = first
        self._samples: Iterator[Any] | None = None

    def batch(self, observer: Observer, skipped: bool = False) -> Any:
        """Return the next batch, or None without combining it if ``skipped``. StopIteration after the last one."""
        size = self._source.batch_size if self._source.is_batched else 1
        samples = list(islice(self._read(observer), size))
        if not samples or (self._source.drop_last and self._source.is_batched and len(samples) < (size or 1)):
            raise StopIteration
        if skipped:
            return None
        observer.collating()
        with reading(self._epoch_key, [self._next]):
            try:
                return self._source.collate_fn(samples if self._source.is_batched else samples[0])
            except StopIteration as error:
                raise _no_end() from error

    def _read(self, observer: Observer) -> Iterator[Any]:
        """Yield the samples, each with its own random numbers while it is read."""
        while True:
            with reading(self._epoch_key, [self._next]):
                observer.sample(self._next)
                try:
                    if self._samples is None:
                        self._samples = iter(self._source.dataset)
                    sample = next(self._samples)
                except StopIteration:
                    return
            self._next += 1
            yield sample


def _no_end() -> RuntimeError:
    """Return the error for a StopIteration that would be taken for the end of the data (PEP 479)."""
    return RuntimeError("[DataLoader] the data set or collate_fn raised StopIteration.")


def _shown(number: Any) -> int:
    """Return a sample's number for messages; -1 for other keys."""
    try:
        return int(number) if abs(int(number)) < 1 << 62 else -1
    except (TypeError, ValueError):
        return -1
