"""Measures a step of a peer and prints it as the line of JSON that ``compare.py`` reads. Standard library only."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

SECONDS = float(os.environ.get("SECONDS_PER_CASE", 4))
THREADS = int(os.environ.get("THREADS", len(os.sched_getaffinity(0))))


def measure(step: Callable[[], Any]) -> dict[str, Any]:
    """Return seconds of the first call, and best and median milliseconds of at least five calls over SECONDS.

    ``step`` must return only when its results are computed.
    """
    first = timed(step)
    for _ in range(3):
        step()
    times = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times) < 5:
        times.append(timed(step))
    times.sort()
    return {
        "first_s": round(first, 2),
        "best_ms": round(1e3 * times[0], 4),
        "median_ms": round(1e3 * times[len(times) // 2], 4),
        "runs": len(times),
    }


def timed(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def report(peer: str, case: str, config: str, make_step: Callable[[], Callable[[], Any]]) -> None:
    """Make a step, measure it, and print the line; an exception becomes a line with ``error``."""
    try:
        result = measure(make_step())
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}"[:200]}
    line = {"peer": peer, "case": case, "config": config, "threads": THREADS, **result}
    print(json.dumps(line), flush=True)


def chosen(peer: str, offered: Iterable[str]) -> list[str]:
    """Return the cases of the command line that the script offers; without arguments, all of them.

    Prints a line with ``absent`` for each of the others, which ``compare.py`` shows as a dash.
    """
    every = list(offered)
    asked = sys.argv[1:] or every
    for case in asked:
        if case not in every:
            print(json.dumps({"peer": peer, "case": case, "absent": True}), flush=True)
    return [case for case in asked if case in every]
