"""Report the stage a worker is in through shared memory, so that a hanging worker can be named."""

from __future__ import annotations

import mmap
import time
from typing import Any, Final

from runnel.core.records import record
from runnel.data.fetching import doing
from runnel.data.workers.blocks import mapped, new_block

STARTING: Final = 0
IDLE: Final = 1
SAMPLE: Final = 2
COLLATING: Final = 3
SENDING: Final = 4
_SIZE: Final = mmap.PAGESIZE


class Stage:
    """A stage of work: which, since when, in which batch and on which sample."""

    def __init__(self, mapping: mmap.mmap) -> None:
        self._mapping = mapping
        self._words = memoryview(mapping).cast("q")  # stage, begun in ns, batch, sample

    @classmethod
    def new(cls) -> tuple[int, Stage]:
        """A new page, and the handle to pass on."""
        handle, mapping = new_block(_SIZE)
        return handle, cls(mapping)

    @classmethod
    def of(cls, handle: int) -> Stage:
        """The page of another process."""
        return cls(mapped(handle))

    def close(self) -> None:
        """Give the page back."""
        self._words.release()
        self._mapping.close()

    def enter(self, stage: int, batch: int | None = None) -> None:
        """Another stage begins, perhaps of another batch."""
        self._words[1] = time.monotonic_ns()
        self._words[0] = stage
        if batch is not None:
            self._words[2] = batch

    def sample(self, number: int) -> None:
        """Sample ``number`` begins."""
        self._words[1] = time.monotonic_ns()
        self._words[0] = SAMPLE
        self._words[3] = number

    @property
    def is_idle(self) -> bool:
        """Whether it waits for work."""
        return self._words[0] == IDLE

    def seconds(self) -> float:
        """How long this stage has lasted."""
        return (time.monotonic_ns() - self._words[1]) / 1e9

    def describe(self) -> str:
        """Behind "it was": "reading sample 7 of batch 0"."""
        stage, _, batch, sample = self._words[:4].tolist()
        return {
            STARTING: "starting (imports, worker_init_fn)",
            IDLE: "waiting for work",
            SAMPLE: doing(batch, sample),
            COLLATING: doing(batch, None),
            SENDING: f"sending batch {batch}",
        }[stage]


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
