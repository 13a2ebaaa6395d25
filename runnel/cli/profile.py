"""``runnel profile``: run a script and report the time of its compiled functions, kernel by kernel."""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

from runnel.backends.host import threads
from runnel.compile.profiling import Profiled, Recording, recorded
from runnel.inspection import measure, tables
from runnel.inspection.inspection import inspected
from runnel.inspection.measure import Measurement

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
