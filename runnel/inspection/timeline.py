"""One step of a program as a timeline of its threads, for viewers of trace events (chrome://tracing, Perfetto).

The format is Google's "Trace Event Format": complete events ("X") with times in microseconds. The calls are measured
one by one; a call of a loop is one bar for all its iterations.
"""

from __future__ import annotations

from typing import Any

from runnel.compiler.plan_ir.plan import Plan
from runnel.inspection.measure import Measurement


def events(plan: Plan, measured: Measurement, process: int = 0) -> list[dict[str, Any]]:
    """The bars of one program, as process number ``process``."""
    name = {"name": "process_name", "ph": "M", "pid": process, "args": {"name": plan.graph.name}}
    bars: list[dict[str, Any]] = [name]
    now = [0.0] * plan.threads
    for call, blocks, barrier in zip(measured.calls, plan.blocks, plan.barriers, strict=True):
        if barrier:
            now = [max(now)] * plan.threads
        for thread, block in enumerate(blocks):
            if block is None:
                continue
            bars.append({
                "name": " ".join(call.ops) or call.kernel, "ph": "X", "pid": process, "tid": thread,
                "ts": now[thread] * 1e6, "dur": call.total * 1e6,
                "args": {
                    "kernel": call.kernel, "block": list(block), "times": call.times, "line": call.where,
                    "GF/s": round(call.gflops, 2), "GB/s": round(call.gbytes, 2), "share": round(call.share, 3),
                },
            })  # fmt: skip
            now[thread] += call.total
    return bars
