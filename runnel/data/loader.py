"""``DataLoader``: the batches of a data set, in an order that depends only on the seed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from runnel.core.errors import ArgumentError
from runnel.data import preparing
from runnel.data.collating import default_collate, default_convert
from runnel.data.datasets import IterableDataset
from runnel.data.fetching import Source
from runnel.data.preparing import Epoch
from runnel.data.progress import Order, Progress, checked
from runnel.data.randomness import new_key
from runnel.data.sampling import BatchSampler, RandomSampler, SequentialSampler
from runnel.data.workers.pool import Pool
from runnel.tensor.random import Generator

_CONTEXTS: Final = ("thread", "fork", "spawn", "forkserver")


class DataLoader:
    """The batches of a data set: ``for x, y in DataLoader(dataset, batch_size=64, shuffle=True): ...``.

    Each ``for`` reads the data once, in a new order.

    Args:
        dataset: samples by number, or an IterableDataset.
        batch_size: number of samples in a batch; None yields the samples themselves, converted by
            :func:`~runnel.data.collating.default_convert`.
        shuffle: use a random order; the default is the data set's order.
        sampler: sample numbers in order, instead of ``shuffle``.
        batch_sampler: lists of numbers, instead of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: number of processes that prepare batches ahead; 0 prepares each batch on request. Order and batches
            are the same. Batches are passed through shared memory.
        collate_fn: combines a list of samples into a batch; :func:`~runnel.data.collating.default_collate` by default.
        drop_last: drop the last batch if it is smaller.
        timeout: seconds to wait for a batch before a WorkerError says what the workers are doing; 0 waits forever, and
            warns after a minute.
        worker_init_fn: called in each worker with its number before it starts.
        multiprocessing_context: how workers start: "fork", "spawn" or "forkserver", a context of ``multiprocessing``,
            or "thread" for threads of this process. The default is the argument of
            ``multiprocessing.set_start_method``, else "fork".
        generator: source of the random order and the samples' random numbers; the default generator by default
            (``rn.manual_seed``). Each epoch takes one key of it, and one for the order.
        prefetch_factor: number of batches that each worker prepares ahead (2).
        persistent_workers: keep the processes from epoch to epoch, unless the data set's attributes, ``collate_fn`` or
            ``worker_init_fn`` change: then new ones start. Changes of array elements are not noticed.
        pin_memory, pin_memory_device, in_order: no effect: there is one memory, and batches always come in order.

    ArgumentError for arguments that exclude each other. Iteration raises the errors of ``__getitem__`` and
    ``collate_fn``, with the worker's traceback as their cause, and WorkerError if a worker dies or is too late.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Any] | None = None,
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
        in_order: bool = True,
    ) -> None:
        in_sequence = isinstance(dataset, IterableDataset)
        _require_number("num_workers", num_workers, 0)
        _require_number("prefetch_factor", 2 if prefetch_factor is None else prefetch_factor, 1)
        _check_workers(num_workers, multiprocessing_context, timeout, persistent_workers, in_sequence)
        if in_sequence and (shuffle or sampler is not None or batch_sampler is not None):
            raise ArgumentError(
                "[DataLoader] an IterableDataset comes in its own order, one sample after the other; leave shuffle, "
                "sampler and batch_sampler out."
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
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        self.batch_size = None if batch_sampler is not None else batch_size
        self.sampler: Any = sampler
        if sampler is None and not in_sequence:
            self.sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.batch_sampler: Any = batch_sampler
        if batch_sampler is None and batch_size is not None and not in_sequence:
            self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.collate_fn: Callable[[Any], Any] = collate_fn or (default_collate if self._is_batched else default_convert)
        self._in_sequence = in_sequence
        self._order = Order(generator, sampler, batch_sampler, getattr(batch_sampler, "sampler", None))
        self._pool: Pool | None = None
        self._epochs = 0  # that have begun
        self._progress: Progress | None = None
        self._resumed: dict[str, Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        resumed, self._resumed = self._resumed, None
        if resumed is None:
            progress = Progress(self._epochs, self._order)
            epoch_key, requests = self._drawn()
        else:
            progress = Progress(resumed["epoch"], self._order)
            epoch_key, requests = self._drawn_again(resumed, progress)
        self._epochs = progress.epoch + 1
        self._progress = progress
        first = progress.position
        if self.num_workers and self.multiprocessing_context != "thread":
            pool = self._workers(epoch_key)
            pool.is_busy = True
            batches = self._from_processes(pool, requests, first, epoch_key)
            return Epoch(batches, progress, pool, pool is self._pool)
        if self._in_sequence:
            batches = preparing.in_sequence(self._source, first, epoch_key)
        elif self.num_workers:
            ahead = self._ahead
            batches = preparing.on_threads(
                self._source, requests, first, epoch_key, self.num_workers, ahead, self.timeout
            )
        else:
            batches = preparing.in_turn(self._source, requests, first, epoch_key)
        return Epoch(batches, progress, None, False)

    def __len__(self) -> int:
        """Return the number of batches; TypeError if the data set or the sampler has no length."""
        if not self._in_sequence:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        count: int = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pool": None}  # a copy starts its own workers

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the latest epoch, as ints, lists and dicts.

        It has the number of the epoch, the number of batches taken, and the states of the generators and samplers that
        determine the order. Batches that workers have prepared ahead do not count. The state of the default generator
        is from the start of the epoch; save its current state with ``rn.get_rng_state()``.
        """
        if self._resumed is not None:
            return self._resumed
        progress = self._progress
        if progress is None or progress.is_done:
            progress = Progress(self._epochs, self._order)
        return progress.state(self._order, self._fits())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next ``for`` continue where an equal loader was when ``state_dict`` was called.

        The same batches follow, bitwise identical, with any number of workers. StateError if the loader differs.
        """
        self._resumed = checked(state, self._order, self._fits())

    @property
    def _is_batched(self) -> bool:
        return self.batch_sampler is not None or self.batch_size is not None

    @property
    def _source(self) -> Source:
        """Source of the batches, with the current data set and collate_fn."""
        return Source(self.dataset, self.collate_fn, self._is_batched, self.batch_size, self.drop_last)

    @property
    def _ahead(self) -> int:
        """Number of batches prepared ahead."""
        return self.num_workers * (self.prefetch_factor or 2)

    def _fits(self) -> dict[str, Any]:
        """Return the settings that must be equal for a position to have the same meaning."""
        size = len(self.dataset) if hasattr(self.dataset, "__len__") else None
        fits = {"batch_size": self.batch_size, "drop_last": self.drop_last, "samples": size}
        return fits | {"streams": max(self.num_workers, 1)} if self._in_sequence else fits

    def _drawn(self) -> tuple[int, Iterator[Any]]:
        """Return the key of a new epoch, and the sample numbers of each batch."""
        epoch_key = new_key(self.generator)
        if self._in_sequence:
            return epoch_key, iter(())
        return epoch_key, iter(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def _drawn_again(self, state: dict[str, Any], progress: Progress) -> tuple[int, Iterator[Any]]:
        """Return the key of an interrupted epoch, and the sample numbers of its remaining batches."""
        resumed = Progress.default_state()
        progress.load(state)
        self._order.set_generators(progress.at_start)
        self._order.set_samplers(progress.samplers)
        Progress.set_default_state(progress.default_at_start)
        try:
            epoch_key, requests = self._drawn()
            begun = self._order.generators()
            for _ in itertools.islice(requests, 0 if self._in_sequence else progress.position):
                pass
        finally:
            Progress.set_default_state(resumed)
        if self._order.generators() == begun:  # all was drawn at the start, so later draws of others count too
            self._order.set_generators(state["generators"])
        return epoch_key, requests

    def _workers(self, epoch_key: int) -> Pool:
        """Processes for an epoch: new ones, unless there are some to use again."""
        pool = self._pool
        if pool is not None and pool.is_open and not pool.is_busy:
            if pool.has_copies_of(self._source, self.worker_init_fn):
                return pool
            pool.close()
        pool = Pool(
            self._source,
            self.num_workers,
            epoch_key >> 1,
            is_stream=self._in_sequence,
            worker_init_fn=self.worker_init_fn,
            context=self.multiprocessing_context,
        )
        if self.persistent_workers and (self._pool is None or not self._pool.is_open):
            self._pool = pool
        return pool

    def _from_processes(self, pool: Pool, requests: Iterator[Any], first: int, epoch_key: int) -> Iterator[Any]:
        if self._in_sequence:
            return preparing.in_processes_in_sequence(pool, first, epoch_key, self._ahead, self.timeout)
        return preparing.in_processes(pool, requests, first, epoch_key, self._ahead, self.timeout)


def _check_workers(count: int, context: Any, timeout: float, persistent: bool, in_sequence: bool) -> None:
    if isinstance(context, str) and context not in _CONTEXTS:
        raise ArgumentError(
            f"[DataLoader] multiprocessing_context must be one of {', '.join(_CONTEXTS)}, or a context; got "
            f"{context!r}."
        )
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout < 0:
        raise ArgumentError(f"[DataLoader] timeout must be a number of seconds, 0 or more; got {timeout!r}.")
    if persistent and not count:
        raise ArgumentError("[DataLoader] persistent_workers needs num_workers of 1 or more.")
    if in_sequence and count and context == "thread":
        raise ArgumentError("[DataLoader] threads cannot share an IterableDataset; use processes, or num_workers=0.")


def _require_number(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ArgumentError(f"[DataLoader] {name} must be an int of {least} or more; got {value!r}.")
