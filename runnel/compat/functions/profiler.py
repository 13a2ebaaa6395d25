"""``torch.profiler``: measure how long the marked sections of a program take.

``runnel profile`` and ``program.measure()`` time the kernels of compiled functions.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any


class Stretch:
    """The times of all sections with one name, in microseconds."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.count = 0
        self.cpu_time_total = 0.0
        self.starts: list[tuple[float, float]] = []  # when each began, and how long it took

    def add(self, start: float, duration: float) -> None:
        self.count += 1
        self.cpu_time_total += duration
        self.starts.append((start, duration))

    @property
    def cpu_time(self) -> float:
        """Mean time."""
        return self.cpu_time_total / self.count

    @property
    def self_cpu_time_total(self) -> float:
        """Total time; nothing inside a section is timed."""
        return self.cpu_time_total


class Averages(list[Stretch]):
    """Sections by name."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """Return a text table with a row per section, the longest first."""
        rows = sorted(self, key=lambda s: -s.cpu_time_total)[: None if row_limit < 0 else row_limit]
        width = max([len("Name"), *(len(s.key) for s in rows)])
        lines = [f"{'Name':<{width}}  {'CPU total':>12}  {'CPU time avg':>12}  {'# of Calls':>10}"]
        lines += [f"{s.key:<{width}}  {s.cpu_time_total:>10.1f}us  {s.cpu_time:>10.1f}us  {s.count:>10}" for s in rows]
        return "\n".join(lines)

    def total_average(self) -> Stretch:
        """Return all sections as one."""
        total = Stretch("Total")
        for stretch in self:
            for start, duration in stretch.starts:
                total.add(start, duration)
        return total


_RUNNING: list[profile] = []


class ProfilerActivity(Enum):
    """Activities that PyTorch can record."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """The action that a schedule returns for a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class profile:
    """Time the sections marked by :class:`record_function` inside the block; ``key_averages()`` returns them."""

    def __init__(
        self, *args: Any, schedule: Any = None, on_trace_ready: Callable[[Any], Any] | None = None, **options: Any
    ) -> None:
        self._ready = on_trace_ready
        self._schedule = schedule
        self._stretches: dict[str, Stretch] = {}
        self.step_num = 0

    def start(self) -> None:
        _RUNNING.append(self)

    def stop(self) -> None:
        _RUNNING.remove(self)
        if self._ready is not None and self._schedule is None:
            self._ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def step(self) -> None:
        """Mark the end of a training step."""
        action = None if self._schedule is None else self._schedule(self.step_num)
        self.step_num += 1
        if action is ProfilerAction.RECORD_AND_SAVE and self._ready is not None:
            self._ready(self)

    def note(self, name: str, start: float, duration: float) -> None:
        self._stretches.setdefault(name, Stretch(name)).add(start, duration)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **options: Any) -> Averages:
        """Return the sections by name."""
        return Averages(self._stretches.values())

    def events(self) -> Averages:
        """Return the sections by name."""
        return self.key_averages()

    def export_chrome_trace(self, path: str) -> None:
        """Write the sections as JSON for chrome://tracing and Perfetto."""
        events = [
            {"name": s.key, "ph": "X", "ts": start, "dur": duration, "pid": 0, "tid": 0}
            for s in self._stretches.values()
            for start, duration in s.starts
        ]
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


class record_function:
    """A named section, as a context manager or a decorator."""

    def __init__(self, name: str, args: Any = None) -> None:
        self.name = name

    def __enter__(self) -> record_function:
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error: Any) -> None:
        duration = time.perf_counter() - self._start
        for running in _RUNNING:
            running.note(self.name, self._start * 1e6, duration * 1e6)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return call


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, **options: Any
) -> Callable[[int], ProfilerAction]:
    """Return a function that chooses the steps to record: after ``skip_first``, cycles of ``wait``, ``warmup`` and
    ``active`` steps."""

    def action(step: int) -> ProfilerAction:
        cycle, place = divmod(step - skip_first, wait + warmup + active)
        if step < skip_first or (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name: str, *args: Any, **options: Any) -> Callable[[profile], None]:
    """Return a function for ``on_trace_ready`` that writes the sections to a file in ``dir_name``."""

    def write(run: profile) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        run.export_chrome_trace(str(folder / f"{time.time_ns()}.pt.trace.json"))

    return write
