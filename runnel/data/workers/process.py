"""The worker process: prepare the batches that the parent requests, and end with the parent."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from runnel.core import switches
from runnel.data.collating import ROOM
from runnel.data.fetching import Source, Stream
from runnel.data.workers import channel, shared_memory
from runnel.data.workers.batches import Parcel, Writer
from runnel.data.workers.channel import Failure, failure
from runnel.data.workers.shared_memory import HERE, Stage, WorkerInfo
from runnel.tensor.random import manual_seed

_STREAMS_APART = 1 << 40  # sample numbers between two workers' streams


class Begin(NamedTuple):
    """The start of an epoch."""

    epoch_key: int


class Prepare(NamedTuple):
    """A request for batch ``batch`` of epoch ``epoch``: of samples ``numbers``, or the next of an iterable data set.

    ``freed`` are blocks that can be reused.
    """

    epoch: int
    batch: int
    numbers: Any
    is_skipped: bool
    freed: list[int]


class Ended(NamedTuple):
    """The answer when an iterable data set has no more batches."""


class Answer(NamedTuple):
    """A batch or its replacement; None for a skipped one."""

    epoch: int
    batch: int
    content: Parcel | Failure | Ended | None


class Setup(NamedTuple):
    """The arguments of a worker."""

    number: int
    workers: int
    seed: int
    source: Source
    worker_init_fn: Callable[[int], None] | None
    is_stream: bool
    parent: int


def run(setup: Setup, end: socket.socket) -> None:
    """Run a worker until its parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's matter, which ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with, args=(setup.parent,), daemon=True).start()
    end.setblocking(True)
    handle, stage = Stage.new()
    channel.send(end, b"", (handle,))
    os.close(handle)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the parent may close its end at any moment
        _Worker(setup, end, stage).run()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, whatever it is doing."""
    try:
        handle = os.pidfd_open(parent) if hasattr(os, "pidfd_open") else -1
    except OSError:
        handle = -1
    while os.getppid() == parent:
        if handle < 0:
            time.sleep(0.5)
        else:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            poll.poll()
            break
    os._exit(1)


class _Worker:
    """Answers requests with batches."""

    def __init__(self, setup: Setup, end: socket.socket, stage: Stage) -> None:
        self._setup = setup
        self._end = end
        self._stage = stage
        self._writer = Writer()
        self._epoch_key = 0
        self._stream: Stream | None = None
        self._startup: Failure | None = None

    def sample(self, number: int) -> None:
        self._stage.sample(number)

    def collating(self) -> None:
        self._stage.enter(shared_memory.COLLATING)

    def run(self) -> None:
        self._start()
        ROOM.allocate = self._writer.allocate
        self._stage.enter(shared_memory.IDLE)
        while (content := channel.receive(self._end)) is not None:
            request = pickle.loads(content)
            if isinstance(request, Begin):
                self._begin(request)
            else:
                self._answer(request)
            self._stage.enter(shared_memory.IDLE)

    def _start(self) -> None:
        setup = self._setup
        switches.num_threads.set(1)
        seed = setup.seed + setup.number
        random.seed(seed)
        np.random.seed(seed % (1 << 32))
        manual_seed(seed)
        HERE.info = WorkerInfo(setup.number, setup.workers, seed, setup.source.dataset)
        try:
            if setup.worker_init_fn is not None:
                setup.worker_init_fn(setup.number)
        except Exception as error:
            self._startup = failure(error, "in worker_init_fn")

    def _begin(self, request: Begin) -> None:
        self._epoch_key = request.epoch_key
        if self._setup.is_stream:
            self._stream = Stream(self._setup.source, request.epoch_key, self._setup.number * _STREAMS_APART)

    def _answer(self, request: Prepare) -> None:
        self._stage.enter(shared_memory.COLLATING, request.batch)
        self._writer.take_back(request.freed)
        self._writer.begin()
        handles: tuple[int, ...] = ()
        content: Parcel | Failure | Ended | None
        if self._startup is not None:
            content = self._startup
        else:
            try:
                batch = self._batch(request)
                self._stage.enter(shared_memory.SENDING)
                content, handles = (None, ()) if request.is_skipped else self._writer.pack(batch)
                del batch
            except StopIteration:
                content = Ended()
            except Exception as error:
                content = failure(error, f"in {self._stage.describe()}")
        answer = pickle.dumps(Answer(request.epoch, request.batch, content), pickle.HIGHEST_PROTOCOL)
        channel.send(self._end, answer, handles)
        self._writer.sent()

    def _batch(self, request: Prepare) -> Any:
        if self._stream is not None:
            return self._stream.batch(self, request.is_skipped)
        return self._setup.source.fetch(self._epoch_key, request.numbers, self)
