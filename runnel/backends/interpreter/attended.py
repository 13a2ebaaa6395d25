"""Work that no signal handler breaks into, done by another thread while the main thread waits, and lends a hand.

Python handles signals on the main thread, between any two bytecodes. What must not be left half done is therefore done
elsewhere. Functions of the user's that the work calls run on the main thread all the same (:func:`on_callers_thread`).
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
    """A call that the main thread is to make; it raises nothing."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.result: Any = None
        self.done: Final = threading.Event()

    def run(self) -> None:
        if not self.done.is_set():
            self.result = self.call()
            self.done.set()


class _Attendant:
    """The thread that waits. A signal may break in anywhere, so that a task is taken from the list when it is done."""

    def __init__(self) -> None:
        self.tasks: Final[deque[_Task]] = deque()
        self.wake: Final[SimpleQueue[None]] = SimpleQueue()

    def serve(self) -> None:
        with contextlib.suppress(Empty):  # another thread may be the one that gets the signal: look now and then
            self.wake.get(timeout=_LOOK)
        while self.tasks:
            self.tasks[0].run()
            self.tasks.popleft()


class _Worker(threading.local):
    attendant: _Attendant | None = None


_WORKER: Final = _Worker()


def attended(work: Callable[[], int], stop: Callable[[], None]) -> int:
    """``work()``, on another thread. What a signal handler raises here meanwhile comes out when it has ended; ``stop``
    is called first."""
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
            attendant.wake.put(None)  # look again: whatever was to be done may not be done yet
    thread.join()
    if raised is not None:
        raise raised
    if errors:
        raise errors[0]
    return results[0]


def on_callers_thread(call: Callable[[], Any]) -> Any:
    """``call()``, which raises nothing, on the thread that asked for the work."""
    attendant = _WORKER.attendant
    if attendant is None:
        return call()
    task = _Task(call)
    attendant.tasks.append(task)
    attendant.wake.put(None)
    task.done.wait()
    return task.result
