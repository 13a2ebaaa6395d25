"""Shared memory: unnamed blocks that end with their last process, and a page that reports a worker's stage."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from runnel.core.records import record
from runnel.data.fetching import doing

ALIGNMENT: Final = 64  # bytes, a cache line


def new_block(size: int) -> tuple[int, mmap.mmap]:
    """Return a handle to pass on and the mapping of a new block of zeros.

    Pages are reserved at once, because a process that runs out of them when it writes is killed; MemoryError if there
    is not enough memory.
    """
    handle = _unnamed_file()
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)
        else:
            os.ftruncate(handle, size)
        return handle, mmap.mmap(handle, size)
    except OSError as error:
        os.close(handle)
        raise MemoryError(f"no shared memory of {size} bytes for a batch: {error.strerror}") from None
    except BaseException:
        os.close(handle)
        raise


def mapped(handle: int) -> mmap.mmap:
    """Map the block of a handle that another process passed on, and close the handle."""
    try:
        return mmap.mmap(handle, os.fstat(handle).st_size)
    finally:
        os.close(handle)


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("runnel-batch", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Lease:
    """The use of a block: arrays made from it keep it alive, and ``on_end`` is called when the last of them is gone."""

    def __init__(self, mapping: mmap.mmap, on_end: Callable[[], None]) -> None:
        self._whole = np.frombuffer(mapping, np.uint8)  # holds the mapping
        self._on_end = on_end

    @property
    def __array_interface__(self) -> dict[str, object]:
        # not the array's own interface, so that arrays made from it keep this object
        address, _ = self._whole.__array_interface__["data"]
        return {"version": 3, "shape": self._whole.shape, "typestr": "|u1", "data": (address, False)}

    def __del__(self) -> None:
        self._on_end()


def aligned(offset: int) -> int:
    """Round up to a multiple of the alignment."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def array_at(memory: np.ndarray, offset: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return the array at ``offset`` in the bytes ``memory``, which it keeps alive."""
    size = math.prod(shape) * dtype.itemsize
    return memory[offset : offset + size].view(dtype).reshape(shape)


STARTING: Final = 0
IDLE: Final = 1
SAMPLE: Final = 2
COLLATING: Final = 3
SENDING: Final = 4
_SIZE: Final = mmap.PAGESIZE


class Stage:
    """A stage of work: what, since when, in which batch and on which sample."""

    def __init__(self, mapping: mmap.mmap) -> None:
        self._mapping = mapping
        self._words = memoryview(mapping).cast("q")  # stage, begun in ns, batch, sample

    @classmethod
    def new(cls) -> tuple[int, Stage]:
        """Return a new page and the handle to pass on."""
        handle, mapping = new_block(_SIZE)
        return handle, cls(mapping)

    @classmethod
    def of(cls, handle: int) -> Stage:
        """Map the page of another process."""
        return cls(mapped(handle))

    def close(self) -> None:
        self._words.release()
        self._mapping.close()

    def enter(self, stage: int, batch: int | None = None) -> None:
        """Start another stage, and another batch if given."""
        self._words[1] = time.monotonic_ns()
        self._words[0] = stage
        if batch is not None:
            self._words[2] = batch

    def sample(self, number: int) -> None:
        """Start sample ``number``."""
        self._words[1] = time.monotonic_ns()
        self._words[0] = SAMPLE
        self._words[3] = number

    @property
    def is_idle(self) -> bool:
        """True if the worker waits for work."""
        return self._words[0] == IDLE

    def seconds(self) -> float:
        """Return the duration of this stage so far."""
        return (time.monotonic_ns() - self._words[1]) / 1e9

    def describe(self) -> str:
        """Return a phrase for messages: "reading sample 7 of batch 0"."""
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
    """A worker process: its number ``id`` of ``num_workers``, the ``seed`` of its generators, and its ``dataset``."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Here:
    info: WorkerInfo | None = None


HERE: Final = _Here()


def get_worker_info() -> WorkerInfo | None:
    """Return the worker process that runs this code; None outside a worker.

    Call it in ``__iter__`` of an ``IterableDataset`` to choose the worker's share of the samples: each worker has a
    copy of the data set, and batches are taken from them in turn.
    """
    return HERE.info
