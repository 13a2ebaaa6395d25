"""The team: worker threads that wait in generated code for their part of a program.

A process has one team, which runs one program at a time; it grows to the largest number of threads requested. Workers
are Python's daemon threads inside one foreign call, so they hold no GIL. A forked child starts without workers.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading
import time
from functools import partial
from typing import Final

import numpy as np

from runnel.backends.cpu import driver
from runnel.backends.host import interrupts, layout, locks, memory, threads

# Longer waits yield: on a busy machine the awaited thread may be queued after this one on the same CPU.
SPIN_SECONDS: Final = 5e-6

_STOP_SECONDS: Final = 1.0


class Team:
    """The control block, the workers and their scratch memory."""

    def __init__(self) -> None:
        self._entry: Final = driver.entry_points()
        self._control: Final = memory.allocate(layout.MAILBOXES + layout.LINE * threads.LIMIT)
        self.address: Final = self._control.address
        self._worker = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(self._entry[driver.rn_worker])
        self._stop = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(self._entry[driver.rn_stop])
        self._workers: list[threading.Thread] = []
        self._scratch: dict[int, memory.Storage] = {}
        self._changing = locks.lock()  # held, and never waited for, while workers are started or ended
        self._closed = False
        self.pauses_per_second: Final = self._measure_pause()
        self._words: Final = self._control.ndarray((layout.MAILBOXES // 8,), np.int64, writeable=True)
        self._clear()

    @property
    def size(self) -> int:
        """The number of threads, including the caller's."""
        return int(self._words[layout.SIZE // 8])

    def grow(self, size: int) -> bool:
        """Start workers until the team has ``size`` threads (at most ``threads.LIMIT``); whether it has them.

        False while another frame, possibly of this thread, changes the team, when the system refuses threads, and while
        the interpreter shuts down.
        """
        if not self._closed:
            # Ctrl-C between starting and counting a worker would make two workers share a mailbox.
            with contextlib.suppress(RuntimeError):
                interrupts.uninterrupted(partial(self._start_workers, size))
        return self.size >= size

    def _start_workers(self, size: int) -> None:
        if not self._changing.acquire(blocking=False):
            return
        try:
            # With more threads than CPUs, spinning keeps the awaited thread from running.
            crowded = size > threads.affinity_count()
            self._set_spins(SPIN_SECONDS / 10 if crowded else SPIN_SECONDS)
            while self.size < size and not self._closed:
                mailbox = self.address + layout.MAILBOXES + layout.LINE * self.size
                ctypes.memset(mailbox, 0, layout.LINE)
                name = f"runnel-{self.size}"
                worker = threading.Thread(target=_work, args=(self, mailbox), name=name, daemon=True)
                worker.start()
                self._workers.append(worker)
                self._set_size(self.size + 1)
        finally:
            self._changing.release()

    def scratch(self, slot: int, nbytes: int) -> memory.Storage:
        """Return the scratch memory of worker ``slot``, shared by all programs: the team runs one at a time."""
        storage = self._scratch.get(slot)
        if storage is None or storage.nbytes < nbytes:
            storage = self._scratch[slot] = memory.allocate(max(nbytes, layout.THREAD_SCRATCH))
        return storage

    def stop(self) -> None:
        """End the workers, unless a program is running: the process can end without them."""
        if not self._changing.acquire(timeout=_STOP_SECONDS):
            return
        try:
            if self.size > 1 and self._stop(self.address, self.size):
                for worker in self._workers:
                    worker.join(_STOP_SECONDS)
                self._workers.clear()
        finally:
            self._changing.release()

    def close(self) -> None:
        """End the workers permanently: afterwards callers do the work of all threads."""
        self._closed = True
        self.stop()

    def after_fork(self) -> None:
        """Reset the team in the child of a fork, which has no workers."""
        self._workers = []
        self._clear()

    def run_worker(self, mailbox: int) -> None:
        """Run a worker until the team ends."""
        self._worker(self.address, mailbox)

    def _clear(self) -> None:
        ctypes.memset(self.address, 0, self._control.nbytes)
        self._set_size(1)
        self._set_spins(SPIN_SECONDS)

    def _set_size(self, size: int) -> None:
        self._words[layout.SIZE // 8] = size

    def _set_spins(self, seconds: float) -> None:
        self._words[layout.SPINS // 8] = max(1, int(seconds * self.pauses_per_second))

    def _measure_pause(self) -> float:
        """Measure pause instructions per second: 4 to 150 cycles each, depending on the processor."""
        pause = ctypes.PYFUNCTYPE(None, ctypes.c_int64)(self._entry[driver.rn_pause])
        shortest = 1.0
        for _ in range(3):
            start = time.perf_counter()
            pause(1000)
            shortest = min(shortest, time.perf_counter() - start)
        return 1000 / shortest


def _work(team: Team, mailbox: int) -> None:
    # This frame keeps the team's memory alive if the process ends while the worker is parked.
    team.run_worker(mailbox)


_TEAMS: Final[dict[str, Team]] = {}  # at most one


def current() -> Team:
    """Return the process's team."""
    team = _TEAMS.get("process")
    if team is None:
        team = _TEAMS.setdefault("process", Team())  # atomic: if two threads get here first, one team is dropped
    return team


def _close() -> None:
    for team in list(_TEAMS.values()):
        team.close()


def _after_fork() -> None:
    for team in list(_TEAMS.values()):
        team.after_fork()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
