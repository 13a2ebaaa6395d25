"""``runnel profile``: run a script and report the time of its compiled functions, kernel by kernel."""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runnel.backends.host import locks, objects, threads
from runnel.compile.compiled import Compiled
from runnel.compile.executable import Executable
from runnel.core import switches
from runnel.core.records import field, record
from runnel.inspection import measure, tables
from runnel.inspection.inspection import inspected
from runnel.inspection.measure import Measurement
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


EXAMPLES = (
    ("runnel profile train.py --epochs 1", "options after the script belong to the script"),
    ("runnel profile --top 5 train.py", "show the five slowest calls of each program"),
    ("runnel profile --trace step.json train.py", "one step as a timeline, for ui.perfetto.dev"),
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--top", type=int, default=20, help="calls of each program to show, the slowest (0: all)")
    command.add_argument("--seconds", type=float, default=0.01, help="how long to measure each call")
    command.add_argument("--json", action="store_true", help="JSON, as the last line")
    command.add_argument("--trace", type=Path, help="a file for one step as a timeline (Perfetto, chrome://tracing)")
    command.add_argument("script", help="a Python file, run as __main__")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own arguments")


def run(arguments: argparse.Namespace) -> int:
    with recorded() as recording:
        status = _run(arguments.script, arguments.arguments)
    measured = [(p, _measured(p, arguments.seconds)) for p in recording.programs]
    if arguments.trace is not None:
        _write_trace(arguments.trace, measured)
    if arguments.json:
        print(json.dumps(_as_json(recording, measured)))
    else:
        print(_report(recording, measured, arguments.top))
    return status


def _run(script: str, arguments: list[str]) -> int:
    """Run the script like Python and return its exit status. Print an error that ends it; the report is still made."""
    before = sys.argv, sys.path[:]
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[:] = before
    return 0


def _measured(profiled: Profiled, seconds: float) -> Measurement | None:
    native = profiled.executable.native
    return None if native is None else inspected(native.compiled).measure(seconds)


def _report(recording: Recording, measured: list[tuple[Profiled, Measurement | None]], top: int) -> str:
    rows = [
        (p.name, str(p.calls), _ms(p.seconds), _ms(p.mean), _best(p), str(p.traced), _ms(p.first), _share(p, recording))
        for p, _ in measured
    ]
    heads = ("program", "calls", "ms", "mean", "best", "traced", "ms", "of all")
    text = [
        tables.table(heads, rows, left=("program",)),
        f"all: {_ms(recording.seconds)} ms on {threads.count()} threads; outside compiled functions: "
        f"{_ms(recording.outside)} ms; kernels compiled: {recording.compiled}, from disk: {recording.loaded}",
    ]
    for profiled, measurement in measured:
        text.append("")
        if measurement is None:
            text.append(f"{profiled.name}: runs eagerly, so that its results can be differentiated.")
            continue
        best = f", at best {_best(profiled)} ms a call" if profiled.calls > profiled.traced else ""
        text.append(f"{profiled.name}{best}; alone, on made-up numbers:")
        if measurement.hoisted_constants is not None:
            text.append("  before, when Variables have changed:")
            text.append(tables.indented(_table(measurement.hoisted_constants, top)).rstrip())
        text.append(_table(measurement, top))
    return "\n".join(text)


def _table(measurement: Measurement, top: int) -> str:
    hidden = len(measurement.calls) - top if top > 0 else 0
    more = f"\n… and {hidden} quicker calls" if hidden > 0 else ""
    return f"{measurement.table(top or len(measurement.calls))}{more}\n{measurement.summary}"


def _as_json(recording: Recording, measured: list[tuple[Profiled, Measurement | None]]) -> dict[str, Any]:
    return {
        "seconds": recording.seconds,
        "outside": recording.outside,
        "threads": threads.count(),
        "kernels_compiled": recording.compiled,
        "kernels_loaded": recording.loaded,
        "programs": [
            {
                "name": p.name,
                "calls": p.calls,
                "seconds": p.seconds,
                "best_seconds": p.best if p.calls > p.traced else None,
                "traced": p.traced,
                "first_seconds": p.first,
                "measured": None if m is None else m.as_json(),
            }
            for p, m in measured
        ],
    }


def _write_trace(path: Path, measured: list[tuple[Profiled, Measurement | None]]) -> None:
    events: list[dict[str, Any]] = []
    for number, (profiled, measurement) in enumerate(measured):
        if profiled.executable.native is not None and measurement is not None:
            events += measure.events(profiled.executable.native.plan, measurement, number)
    path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}" if seconds < 1 else f"{seconds * 1e3:.0f}"


def _best(profiled: Profiled) -> str:
    return _ms(profiled.best) if profiled.calls > profiled.traced else "-"


def _share(profiled: Profiled, recording: Recording) -> str:
    return f"{100 * (profiled.seconds + profiled.first) / max(recording.seconds, 1e-9):.0f}%"
