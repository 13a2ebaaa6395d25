"""State locks of the interpreter's runs, and work that no signal handler can interrupt.

The locks follow the protocol of ``cpu.locking``. A run takes its locks together, for reading or for writing. It writes
only after its commit point, and only then readers of its Variables wait. Until then they may use the memory of a
Variable; this changes the Variable's version, and the run is refused at the commit point as STALE: nothing has been
written yet.

Python handles signals on the main thread, between any two bytecodes. So another thread does work that must not be left
incomplete, while the main thread waits. User functions that the work calls still run on the main thread
(:func:`on_callers_thread`).
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final

from runnel.backends.host import calls as host, layout
from runnel.backends.host.layout import ANY, STALE

_LOOK: Final = 0.05  # seconds


class _Task:
    """A call for the main thread; it must not raise."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.result: Any = None
        self.done: Final = threading.Event()

    def run(self) -> None:
        if not self.done.is_set():
            self.result = self.call()
            self.done.set()


class _Attendant:
    """The waiting thread. A signal may interrupt it anywhere, so a task is removed from the list after it is done."""

    def __init__(self) -> None:
        self.tasks: Final[deque[_Task]] = deque()
        self.wake: Final[SimpleQueue[None]] = SimpleQueue()

    def serve(self) -> None:
        with contextlib.suppress(Empty):  # another thread may get the signal, so check periodically
            self.wake.get(timeout=_LOOK)
        while self.tasks:
            self.tasks[0].run()
            self.tasks.popleft()


class _Worker(threading.local):
    attendant: _Attendant | None = None


_WORKER: Final = _Worker()


def attended(work: Callable[[], int], stop: Callable[[], None]) -> int:
    """Run ``work()`` on another thread. If a signal handler raises here meanwhile, call ``stop``; the exception
    propagates when the work has ended."""
    attendant = _Attendant()
    results: list[int] = []
    errors: list[BaseException] = []

    def whole() -> None:
        _WORKER.attendant = attendant
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            attendant.wake.put(None)

    thread = threading.Thread(target=whole, name="run of runnel")
    thread.start()
    raised: BaseException | None = None
    while not results and not errors:
        try:
            attendant.serve()
        except BaseException as error:
            raised = error
            stop()
            attendant.wake.put(None)  # check again: a task may be left
    thread.join()
    if raised is not None:
        raise raised
    if errors:
        raise errors[0]
    return results[0]


def on_callers_thread(call: Callable[[], Any]) -> Any:
    """Run ``call()``, which must not raise, on the thread that called :func:`attended`."""
    attendant = _WORKER.attendant
    if attendant is None:
        return call()
    task = _Task(call)
    attendant.tasks.append(task)
    attendant.wake.put(None)
    task.done.wait()
    return task.result


Entries = Sequence[Sequence[int]]


class Keeper:
    """All state locks that runs of the interpreter hold: the number of runs that read, or -1 for one that writes."""

    def __init__(self) -> None:
        self.reopen()

    def take(self, entries: Entries) -> int:
        """Take the locks of ``entries``. Return 0, or STALE, and then none is taken."""
        with self._changed:
            while self._closed or any(self._conflicts(address, exclusive) for address, exclusive, *_ in entries):
                self._changed.wait()
            if not _are_current(entries):
                return STALE
            for address, exclusive, *_ in entries:
                self._holders[address] = -1 if exclusive else self._holders.get(address, 0) + 1
        return 0

    def begin_writing(self, entries: Entries) -> int:
        """Make readers wait. Return 0, or STALE if a Variable has been read since the locks were taken."""
        with self._changed:
            while self._closed:
                self._changed.wait()
            if not _are_current(entries):
                return STALE
            self._writers.update((address, threading.get_ident()) for address, exclusive, *_ in entries if exclusive)
        return 0

    def leave(self, entries: Entries) -> None:
        """Count the writes of a run, and release its locks."""
        with self._changed:
            for address, exclusive, *_ in entries:
                if self._writers.pop(address, None) is not None:
                    _words(address)[layout.WRITES // 8] += 1
                readers = self._holders.pop(address)
                if not exclusive and readers > 1:
                    self._holders[address] = readers - 1
            self._changed.notify_all()

    def _conflicts(self, address: int, exclusive: int) -> bool:
        holders = self._holders.get(address, 0)
        return holders != 0 if exclusive else holders < 0

    def is_written(self, lock: int) -> int:
        return int(lock in self._writers)

    def settle(self, lock: int) -> None:
        if self._writers.get(lock) == threading.get_ident():  # the reader interrupts the run itself
            raise host.refused()
        with self._changed:
            while lock in self._writers:
                self._changed.wait()

    def close(self) -> None:
        with self._changed:
            self._closed += 1

    def open(self) -> None:
        with self._changed:
            self._closed -= 1
            self._changed.notify_all()

    def reopen(self) -> None:
        self._changed = threading.Condition()
        self._holders: dict[int, int] = {}
        self._writers: dict[int, int] = {}  # lock → thread
        self._closed = 0


def _are_current(entries: Entries) -> bool:
    """Return whether every lock has the version and the writes that its entry expects."""
    for address, _, version, writes in entries:
        words = _words(address)
        if words[layout.VERSION // 8] != version or writes not in (ANY, words[layout.WRITES // 8]):
            return False
    return True


def _words(address: int) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * (layout.LINE // 8)).from_address(address)


KEEPER: Final = Keeper()
