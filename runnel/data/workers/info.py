"""What code in a worker can ask about it."""

from __future__ import annotations

from typing import Any, Final

from runnel.core.records import record


@record
class WorkerInfo:
    """A worker process: its number ``id`` of ``num_workers``, the ``seed`` of its generators, and its copy of the
    ``dataset``."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Here:
    info: WorkerInfo | None = None


HERE: Final = _Here()


def get_worker_info() -> WorkerInfo | None:
    """The worker process that this code runs in; None outside of one. An ``IterableDataset`` asks in ``__iter__`` which
    share of the samples it should give: each worker has a copy of it, and all of them give batches by turns."""
    return HERE.info
