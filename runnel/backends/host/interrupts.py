"""Ctrl-C while the main thread is in machine code: a watcher thread is notified and asks the program to stop.

Python's C handler of signals only sets a flag, which the main thread checks when it returns from the program; but it
also writes the signal's number to a descriptor (``signal.set_wakeup_fd``) immediately. During a long program that is a
socket of the watcher. So signal handlers run before or after a program and never see partial results: if the program
was stopped and the handler raises, no state was changed; if the handler does not raise, the program is run again.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Final, Protocol

from runnel.backends.host.layout import INTERRUPTED

_NONE: Final = -1  # no descriptor


class Watcher:
    """Calls ``ask`` on SIGINT. One per process."""

    def __init__(self) -> None:
        # Both ends live as long as the thread below, whose frame refers to this object.
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._descriptor: Final = self._writer.fileno()
        self._previous = _NONE
        self.ask: Callable[[], None] | None = None
        threading.Thread(target=self._watch, name="signals of runnel", daemon=True).start()

    def during(self, run: Callable[[], int], ask: Callable[[], None]) -> int:
        """Call ``run()`` from the main thread; SIGINT calls ``ask``."""
        outer, self.ask = self.ask, ask
        previous = signal.set_wakeup_fd(self._descriptor, warn_on_full_buffer=False)
        try:
            self._previous = previous if previous != self._descriptor else _NONE
            return run()
        finally:
            signal.set_wakeup_fd(self._previous)
            self.ask = outer

    def after_fork(self) -> None:
        """Disconnect the child of a fork from the watcher of its parent, if the parent was watching."""
        with contextlib.suppress(ValueError):
            descriptor = signal.set_wakeup_fd(_NONE)
            if descriptor not in (_NONE, self._descriptor):
                signal.set_wakeup_fd(descriptor)

    def _watch(self) -> None:
        while True:
            signals = self._reader.recv(64)
            previous = self._previous
            if previous != _NONE and sys.platform != "win32":  # there, an event loop notices at its next iteration
                with contextlib.suppress(OSError):
                    os.write(previous, signals)
            ask = self.ask
            if signal.SIGINT in signals and ask is not None:
                ask()


_WATCHERS: Final[dict[str, Watcher]] = {}  # at most one
_ENDING: Final[list[bool]] = []  # not empty once the interpreter shuts down: a thread started then hangs it


class Stoppable(Protocol):
    """A program whose runs can be stopped from another thread."""

    def run(self) -> int:
        """Run it; the status is INTERRUPTED if it was stopped."""

    def interrupt(self) -> None:
        """Stop the run in progress, or else the next one."""


class Interruptible:
    """A launch whose runs Ctrl-C stops. Any thread may run it; Python handles signals in the main one."""

    __slots__ = ("_launch",)

    def __init__(self, launch: Stoppable) -> None:
        self._launch = launch

    def run(self) -> int:
        """Run the program; its status is 0, a kernel's fault, or a request that stopped it."""
        while True:
            watcher = _watcher() if threading.current_thread() is threading.main_thread() else None
            if watcher is not None:
                status = watcher.during(self._launch.run, self._launch.interrupt)
            else:
                status = self._launch.run()
            # Interrupted, and no exception: the signal's handler did not raise, or the request belongs to an earlier
            # run, which had ended when the watcher was notified.
            if status != INTERRUPTED:
                return status


def uninterrupted(work: Callable[[], None]) -> None:
    """Run ``work`` where no signal handler can interrupt it: on a thread other than the main one."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    errors: list[BaseException] = []

    def safely() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=safely, name="work of runnel")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def _watcher() -> Watcher | None:
    """Return the process's watcher; None if none can be started."""
    watcher = _WATCHERS.get("process")
    if watcher is None and not _ENDING:
        with contextlib.suppress(RuntimeError):  # the system gives no more threads
            watcher = _WATCHERS["process"] = Watcher()
    return watcher


def _end() -> None:
    _ENDING.append(True)


def _after_fork() -> None:
    for watcher in list(_WATCHERS.values()):
        watcher.after_fork()
    _WATCHERS.clear()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
