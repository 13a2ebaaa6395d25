"""The iterator of a DataLoader: one pass over the data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Self

from runnel.data.progress import Progress
from runnel.data.workers.pool import Pool


class Epoch:
    """Gives batches and counts them. ``pool`` are the workers that prepare them, if processes do; they end with the
    epoch unless ``keeps_pool``."""

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
        """End threads and processes that have prepared batches ahead."""
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
