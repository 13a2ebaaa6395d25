"""One side of ``everyday.py``: makes the step of a workload, then measures it as often as it is told to.

The side prints ``{"first_s": …}`` after the first call, and ``{"ms": …}``, the best call, for each number of
seconds that it reads. An exception becomes ``{"error": …}``. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

Step = Callable[[], Any]
clock = time.process_time if os.environ.get("WORKLOADS_CLOCK") == "cpu" else time.perf_counter


def timed(step: Step) -> float:
    start = clock()
    step()
    return clock() - start


def best(step: Step, seconds: float) -> float:
    """Return the quickest of at least two calls, in seconds, after one that warms the caches."""
    step()
    end, quickest, count = clock() + seconds, float("inf"), 0
    while count < 2 or clock() < end:
        quickest, count = min(quickest, timed(step)), count + 1
    return quickest


def serve(workloads: Mapping[str, Callable[[], Step]], finish: Callable[[Any], Any] = lambda result: result) -> None:
    """Serve the workload that the command line names; ``finish`` waits for what a step has started."""

    def say(**line: Any) -> None:
        print(json.dumps(line), flush=True)

    name = sys.argv[1]
    if name not in workloads:
        say(absent=True)
        return
    try:
        step = workloads[name]()
        say(first_s=timed(lambda: finish(step())))
        for line in sys.stdin:
            say(ms=1e3 * best(lambda: finish(step()), float(line)))
    except Exception as error:
        say(error=f"{type(error).__name__}: {error}"[:300])
