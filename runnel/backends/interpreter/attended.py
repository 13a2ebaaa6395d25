"""Work that no signal handler can interrupt, done by another thread while the main thread waits.

Python handles signals on the main thread, between any two bytecodes. Work that must not be left incomplete is therefore
done elsewhere. User functions that the work calls still run on the main thread (:func:`on_callers_thread`).
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Final

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
    """``work()``, on another thread. If a signal handler raises here meanwhile, ``stop`` is called, and the exception
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
    """``call()``, which must not raise, on the thread that called :func:`attended`."""
    attendant = _WORKER.attendant
    if attendant is None:
        return call()
    task = _Task(call)
    attendant.tasks.append(task)
    attendant.wake.put(None)
    task.done.wait()
    return task.result
