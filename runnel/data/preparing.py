"""Iterate over one epoch: batches are prepared on request, or ahead of time by threads or processes."""

from __future__ import annotations

import collections
import contextlib
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from runnel.core.errors import WorkerError
from runnel.data.fetching import Noted, Source, Stream
from runnel.data.progress import Progress
from runnel.data.workers.pool import Failed, Pool, Worker
from runnel.data.workers.process import Ended


def in_turn(source: Source, requests: Iterator[Any], first: int, epoch_key: int) -> Iterator[Any]:
    """Yield each batch on request."""
    for number, numbers in enumerate(requests, first):
        yield _fetched(source, epoch_key, numbers, number)


def _fetched(source: Source, epoch_key: int, numbers: Any, number: int) -> Any:
    with Noted(number) as observer:
        return source.fetch(epoch_key, numbers, observer)


def in_sequence(source: Source, first: int, epoch_key: int) -> Iterator[Any]:
    """Yield the batches of an iterable data set after the ``first`` ones."""
    stream = Stream(source, epoch_key)
    for number in itertools.count():
        try:
            with Noted(number) as observer:
                batch = stream.batch(observer, skipped=number < first)
        except StopIteration:
            return
        if number >= first:
            yield batch


def on_threads(
    source: Source, requests: Iterator[Any], first: int, epoch_key: int, count: int, ahead: int, timeout: float
) -> Iterator[Any]:
    """Yield batches that ``count`` threads prepare, at most ``ahead`` of them.

    WorkerError for a batch that takes longer than ``timeout`` seconds (0: no limit).
    """
    workers = ThreadPoolExecutor(count, thread_name_prefix="DataLoader")
    pending: collections.deque[Future[Any]] = collections.deque()
    is_stuck = False
    asked = first
    try:
        for number in itertools.count(first):
            while len(pending) < ahead and (numbers := next(requests, None)) is not None:
                pending.append(workers.submit(_fetched, source, epoch_key, numbers, asked))
                asked += 1
            if not pending:
                return
            try:
                batch = pending.popleft().result(timeout or None)
            except TimeoutError as error:
                is_stuck = True
                raise WorkerError(f"[DataLoader] batch {number} did not come within {timeout:g} s.") from error
            yield batch
    finally:
        workers.shutdown(wait=not is_stuck, cancel_futures=True)


def in_processes(
    pool: Pool, requests: Iterator[Any], first: int, epoch_key: int, ahead: int, timeout: float
) -> Iterator[Any]:
    """Batches that the workers of a pool prepare, whichever has least to do, ``ahead`` at most."""
    answers: dict[int, Any] = {}
    pool.begin(epoch_key)
    asked = first
    for number in itertools.count(first):
        while asked - number < ahead and (numbers := next(requests, None)) is not None:
            pool.ask(min(pool.workers, key=lambda worker: worker.outstanding), asked, numbers)
            asked += 1
        if asked == number:
            return
        yield _answer(pool, number, answers, timeout)


def in_processes_in_sequence(pool: Pool, first: int, epoch_key: int, ahead: int, timeout: float) -> Iterator[Any]:
    """Yield batches of an iterable data set from workers in turn; each has a copy of the data set.

    A worker drops out when its copy ends. The ``first`` batches are skipped.
    """
    answers: dict[int, Any] = {}
    pool.begin(epoch_key)
    turns = itertools.cycle(pool.workers)
    active = set(pool.workers)
    asked_of: collections.deque[Worker] = collections.deque()
    asked = answered = given = 0
    while active:
        while len(asked_of) < ahead:
            worker = next(worker for worker in turns if worker in active)
            asked_of.append(worker)
            pool.ask(worker, asked, None, is_skipped=asked < first)
            asked += 1
        batch = _answer(pool, answered, answers, timeout)
        answered += 1
        worker = asked_of.popleft()
        if isinstance(batch, Ended):
            active.discard(worker)
            continue
        given += 1
        if given > first:
            yield batch


def _answer(pool: Pool, number: int, answers: dict[int, Any], timeout: float) -> Any:
    pool.wait(number, answers, timeout)
    batch = answers.pop(number)
    if isinstance(batch, Failed):
        raise batch.error
    return batch


class Epoch:
    """An iterator that counts batches.

    ``pool`` has the worker processes that prepare them, if any; they end with the epoch unless ``keeps_pool``.
    """

    def __init__(self, batches: Iterator[Any], progress: Progress, pool: Pool | None, keeps_pool: bool) -> None:
        self._batches = batches
        self._progress = progress
        self._pool = pool
        self._keeps_pool = keeps_pool
        self._is_broken = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            batch = next(self._batches)
        except StopIteration:
            self._progress.is_done = not self._is_broken
            self.close()
            raise
        except BaseException:  # Ctrl-C as well: workers in the middle of something cannot be gone on with
            self._is_broken = True
            self.close()
            raise
        self._progress.position += 1
        return batch

    def close(self) -> None:
        """End the threads and processes that prepare batches ahead."""
        close: Callable[[], None] | None = getattr(self._batches, "close", None)
        if close is not None:
            close()
        pool, self._pool = self._pool, None
        if pool is None:
            return
        pool.is_busy = False
        if self._is_broken or not self._keeps_pool:
            pool.close(at_once=self._is_broken)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()
