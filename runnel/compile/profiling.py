"""Profile compiled functions: count and time the calls of each program, without compilation."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from runnel.backends.host import locks, objects
from runnel.compile.compiled import Compiled
from runnel.compile.executable import Executable
from runnel.core import switches
from runnel.core.records import field, record
from runnel.tensor import tracing


@record(frozen=False, eq=False)
class Profiled:
    """One program of a function, or the function as plain Python (``executable.native`` is None). ``first`` is the time
    of calls that ``traced``, ``seconds`` the sum of all others, and ``best`` the shortest, in seconds."""

    name: str
    executable: Executable
    calls: int = 0
    seconds: float = 0.0
    first: float = 0.0
    traced: int = 0
    best: float = float("inf")

    @property
    def mean(self) -> float:
        """The mean time of a call that compiles nothing, in seconds."""
        return self.seconds / (self.calls - self.traced) if self.calls > self.traced else 0.0


@record(frozen=False, eq=False)
class Recording:
    """The calls in a block. ``seconds`` is the time of the whole block."""

    programs: list[Profiled] = field(default_factory=list)
    seconds: float = 0.0
    compiled: int = 0  # kernels
    loaded: int = 0  # kernels, from disk
    _begun: set[Compiled] = field(default_factory=set)
    _last: dict[Compiled, Profiled] = field(default_factory=dict)
    _counted: dict[Executable, int] = field(default_factory=dict)
    _known: dict[Executable, Profiled] = field(default_factory=dict)

    @property
    def outside(self) -> float:
        """The time outside compiled functions, in seconds."""
        return self.seconds - sum(p.seconds + p.first for p in self.programs)

    def begin(self, function: Compiled) -> None:
        """Note the counts of a function before its first call in the block."""
        if function not in self._begun:
            self._begun.add(function)
            for executable in function.executables():
                self._counted.setdefault(executable, executable.counter.calls)

    def add(self, function: Compiled, took: float, *, traced: bool) -> None:
        """Add a call that took ``took`` seconds."""
        program = self._program(function)
        if program is None:
            return
        program.calls += 1
        program.traced += traced
        if traced:
            program.first += took
        else:
            program.seconds += took
            program.best = min(program.best, took)

    def _program(self, function: Compiled) -> Profiled | None:
        """Return the program whose count of calls has changed."""
        last = self._last.get(function)
        if last is not None and self._has_run(last.executable):
            return last
        for executable in function.executables():
            if self._has_run(executable):
                profiled = self._known.get(executable)
                if profiled is None:
                    profiled = self._known[executable] = Profiled(function.name, executable)
                    self.programs.append(profiled)
                self._last[function] = profiled
                return profiled
        return None

    def _has_run(self, executable: Executable) -> bool:
        calls = executable.counter.calls
        before = self._counted.get(executable, 0)
        self._counted[executable] = calls
        return calls != before


class _Here(threading.local):
    """The time of the compiled calls that an eager call in progress on this thread has made, in seconds."""

    within = 0.0


@contextmanager
def recorded() -> Iterator[Recording]:
    """Record the calls of all compiled functions in the block. The time of a call excludes calls that it makes."""
    recording = Recording()
    call = Compiled.__call__
    here = _Here()
    lock = locks.lock()

    def timed(self: Compiled, *args: Any, **kwargs: Any) -> Any:
        active = tracing.ACTIVE
        if active.trace is not None or active.level is not None or switches.eager.value or switches.check_nans.value:
            return call(self, *args, **kwargs)
        with lock:
            recording.begin(self)
        outer, here.within = here.within, 0.0
        traces, start = self.statistics["traces"], time.perf_counter()
        try:
            return call(self, *args, **kwargs)
        finally:
            took = time.perf_counter() - start
            own, here.within = took - here.within, outer + took
            with lock:
                recording.add(self, own, traced=self.statistics["traces"] != traces)

    before = objects.statistics.compiled, objects.statistics.loaded
    start = time.perf_counter()
    Compiled.__call__ = timed  # type: ignore[method-assign]
    try:
        yield recording
    finally:
        Compiled.__call__ = call  # type: ignore[method-assign]
        recording.seconds = time.perf_counter() - start
        recording.compiled = objects.statistics.compiled - before[0]
        recording.loaded = objects.statistics.loaded - before[1]
