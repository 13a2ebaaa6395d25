"""The worker processes of a loader on the parent's side: requests, answers, and supervision."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import selectors
import signal
import socket
import time
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.core.errors import ArgumentError, WorkerError
from runnel.data.fetching import Source
from runnel.data.workers.batches import Parcel, Reader
from runnel.data.workers.channel import Channel, Failure, received
from runnel.data.workers.process import Answer, Begin, Prepare, Setup, run
from runnel.data.workers.shared_memory import Stage
from runnel.tensor.methods import ArrayMethods

_MOST_ITEMS: Final = 64  # of a container that is looked into; of longer ones the length is compared
_MOST_OBJECTS: Final = 1000
_WHOLE: Final = (
    ArrayMethods, np.ndarray, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, type,
)  # fmt: skip
_PLAIN: Final = (int, float, complex, str, bytes, type(None))


class Snapshot:
    """The attributes of objects, recursively: numbers and strings by value, everything else by identity.

    Elements of arrays and of long containers are not compared.
    """

    def __init__(self, *things: Any) -> None:
        self._parts: list[Any] = []  # which also keeps them, so that no other object gets their identity
        self._visited: set[int] = set()
        for thing in things:
            self._visit(thing)

    def _visit(self, thing: Any) -> None:
        self._parts.append(thing)
        if isinstance(thing, (*_PLAIN, *_WHOLE)) or id(thing) in self._visited or len(self._visited) >= _MOST_OBJECTS:
            return
        self._visited.add(id(thing))
        if isinstance(thing, Mapping):
            self._items(thing, [part for item in thing.items() for part in item] if len(thing) <= _MOST_ITEMS else [])
        elif isinstance(thing, list | tuple):
            self._items(thing, thing if len(thing) <= _MOST_ITEMS else ())
        elif isinstance(attributes := getattr(thing, "__dict__", None), dict):
            self._items(attributes, [part for item in list(attributes.items()) for part in item])

    def _items(self, container: Any, items: Any) -> None:
        self._parts.append(len(container))
        for item in items:
            self._visit(item)

    def equals(self, other: Snapshot) -> bool:
        """Return True if both have the same objects with the same parts."""
        return len(self._parts) == len(other._parts) and all(map(_same, self._parts, other._parts))


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and isinstance(one, _PLAIN) and one == other)


_LOOK_EVERY: Final = 0.5  # seconds between looks at workers that say nothing
_WARN_AFTER: Final = 60.0  # seconds without a batch, where no timeout is given
_MOST_MAPPED: Final = 256  # blocks: each has a handle, of which a process usually may have 1024
_GRACE: Final = 0.5  # seconds that a worker has to end by itself


class Worker:
    """One worker process."""

    def __init__(self, setup: Setup, context: Any) -> None:
        self.number = setup.number
        self.outstanding = 0  # batches asked for and not answered
        self.reader = Reader(max(_MOST_MAPPED // setup.workers, 4))
        self.stage: Stage | None = None
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        self.process = context.Process(target=run, args=(setup, theirs), name=f"DataLoader-{self.number}", daemon=True)
        try:
            self._start(context)
        except BaseException:
            self.channel.close()
            raise
        finally:
            theirs.close()

    def _start(self, context: Any) -> None:
        """Start the process with Ctrl-C blocked from its first moment."""
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with warnings.catch_warnings():
                # from Python 3.12 on: this process has threads, and forks are prepared for them
                warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
                self.process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ArgumentError(
                f"[DataLoader] the data set, collate_fn or worker_init_fn cannot be sent to a worker process: {error}. "
                "Define them at the top of a module, or pass multiprocessing_context='fork' or 'thread'; it is "
                f"{context.get_start_method()!r}."
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def __str__(self) -> str:
        return f"worker {self.number} (process {self.process.pid})"

    def answers(self) -> list[Answer]:
        """Return the answers since the last call."""
        answers = []
        for content in self.channel.messages():
            if not content:
                self.stage = Stage.of(self.channel.handles.popleft())
            else:
                answers.append(pickle.loads(content))
        return answers

    @property
    def doing(self) -> str:
        """Current stage, or the last one if it has ended."""
        return "starting" if self.stage is None else self.stage.describe()

    def died(self) -> WorkerError:
        """Return the error for a worker that has ended."""
        self.process.join(_GRACE)
        code = self.process.exitcode
        if code is not None and code < 0:
            names = {s.value: s.name for s in signal.Signals}
            how = f"was killed by {names.get(-code, f'signal {-code}')}"
            if -code == signal.SIGKILL:
                how += " (perhaps by the system, for want of memory)"
        else:
            how = "has closed its connection" if code is None else f"ended with exit code {code}"
        hint = ""
        if self.stage is None and code:
            hint = (
                " A program that starts processes by 'spawn' or 'forkserver' is imported by them: it begins its work "
                "below `if __name__ == '__main__':`."
            )
        return WorkerError(f"[DataLoader] {self} {how}; it was {self.doing}.{hint}")


class Failed(NamedTuple):
    """An error in a batch's place."""

    error: Exception


def _default() -> str | None:
    """Return the start method if none was chosen: "fork".

    CPython 3.14's default, "forkserver", can send neither lambdas nor data sets of a notebook, and imports everything
    again.
    """
    chosen = multiprocessing.get_start_method(allow_none=True)
    return "fork" if chosen is None and "fork" in multiprocessing.get_all_start_methods() else chosen


class Pool:
    """The workers of a loader, used by one epoch at a time."""

    def __init__(
        self,
        source: Source,
        count: int,
        seed: int,
        *,
        is_stream: bool,
        worker_init_fn: Callable[[int], None] | None,
        context: Any,
    ) -> None:
        self.is_busy = False
        self.epoch = 0
        self._copied = Snapshot(*source, worker_init_fn)
        self._owner = os.getpid()
        self._selector = selectors.DefaultSelector()
        self.workers: list[Worker] = []
        chosen = context if hasattr(context, "Process") else multiprocessing.get_context(context or _default())
        try:
            for number in range(count):
                setup = Setup(number, count, seed, source, worker_init_fn, is_stream, self._owner)
                worker = Worker(setup, chosen)
                self.workers.append(worker)
                self._selector.register(worker.channel, selectors.EVENT_READ, worker)
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """True if this process can use the workers."""
        return bool(self.workers) and self._owner == os.getpid()

    def has_copies_of(self, source: Source, worker_init_fn: Callable[[int], None] | None) -> bool:
        """Return True if the workers' copies equal ``source``, as far as attributes tell."""
        return self._copied.equals(Snapshot(*source, worker_init_fn))

    def begin(self, epoch_key: int) -> None:
        """Start a new epoch."""
        self.epoch += 1
        for worker in self.workers:
            worker.channel.post(pickle.dumps(Begin(epoch_key)))

    def ask(self, worker: Worker, batch: int, numbers: Any, is_skipped: bool = False) -> None:
        """Request a batch from a worker."""
        worker.outstanding += 1
        request = Prepare(self.epoch, batch, numbers, is_skipped, worker.reader.freed())
        worker.channel.post(pickle.dumps(request, pickle.HIGHEST_PROTOCOL))

    def wait(self, batch: int, answers: dict[int, Any], timeout: float) -> None:
        """Collect answers of this epoch until ``batch`` has one: a batch, None if skipped, Ended or Failed.

        WorkerError when a worker has died, or after ``timeout`` seconds (0: never).
        """
        begun = time.monotonic()
        warned = False
        while batch not in answers:
            if not self._collect(answers):
                self._look_after_workers()
            waited = time.monotonic() - begun
            if timeout and waited >= timeout and batch not in answers:
                raise WorkerError(f"[DataLoader] batch {batch} did not come within {timeout:g} s: {self._report()}.")
            if not timeout and waited >= _WARN_AFTER and not warned:
                warned = True
                message = f"[DataLoader] batch {batch} has not come for {waited:.0f} s: {self._report()}."
                warnings.warn(message, RuntimeWarning, stacklevel=5)

    def _collect(self, answers: dict[int, Any]) -> bool:
        """Wait a while for messages and take them; return True if there were any."""
        for worker in self.workers:
            worker.channel.flush()
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.channel.has_unsent else 0)
            if self._selector.get_key(worker.channel).events != events:
                self._selector.modify(worker.channel, events, worker)
        ready = self._selector.select(_LOOK_EVERY)
        for key, _ in ready:
            worker = key.data
            for answer in worker.answers():
                self._take(worker, answer, answers)
            if not worker.channel.is_open:
                raise worker.died()
        return bool(ready)

    def _take(self, worker: Worker, answer: Answer, answers: dict[int, Any]) -> None:
        worker.outstanding -= 1
        content = answer.content
        if not isinstance(content, Parcel):
            if answer.epoch == self.epoch:
                place = Failed(received(str(worker), content)) if isinstance(content, Failure) else content
                answers[answer.batch] = place
            return
        handle = worker.channel.handles.popleft() if content.is_new else None
        if answer.epoch == self.epoch:
            answers[answer.batch] = worker.reader.unpack(content, handle)
        else:
            worker.reader.discard(content, handle)

    def _look_after_workers(self) -> None:
        for worker in self.workers:
            if not worker.process.is_alive():
                raise worker.died()

    def _report(self) -> str:
        """Describe what each worker is doing, busy workers first."""
        order = sorted(self.workers, key=lambda w: w.stage is not None and w.stage.is_idle)
        since = [f" for {w.stage.seconds():.1f} s" if w.stage is not None else "" for w in order]
        return "; ".join(f"{w} has been {w.doing}{s}" for w, s in zip(order, since, strict=True))

    def close(self, at_once: bool = False) -> None:
        """End the workers: idle ones by themselves, the others by signals."""
        workers, self.workers = self.workers, []
        if self._owner != os.getpid():
            return
        self._selector.close()
        for worker in workers:
            worker.channel.close()
            if at_once:
                worker.process.kill()
        deadline = time.monotonic() + _GRACE
        for worker in workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.exitcode is None:
                worker.process.kill()
                worker.process.join()
            worker.process.close()
            if worker.stage is not None:
                worker.stage.close()
                worker.stage = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()
