"""Rates of machines, and the predicted time of a call: its work and its bytes at these rates.

Plans use :data:`PLANNED` and the constants below it, so that they are the same on every machine. Reports use measured
rates.
"""

from __future__ import annotations

import bisect
import math
from typing import Final

from runnel.compiler.plan_ir.work import Work
from runnel.core.records import record


@record
class Machine:
    """Rates of ``threads`` threads together. ``flops``: float32 operations per second of fused multiply-adds.
    ``levels``: sizes of a working set in bytes, each with the bytes per second read and written. ``call``: seconds to
    start a kernel."""

    flops: float
    levels: tuple[tuple[int, float, float], ...]
    threads: int = 1
    call: float = 8e-9

    def rates(self, footprint: float) -> tuple[float, float]:
        """Return bytes read and written per second in a working set of ``footprint`` bytes, interpolated between levels
        in the logarithm."""
        at = bisect.bisect_left(self.levels, footprint, key=lambda level: level[0])
        if at in (0, len(self.levels)):
            _, read, write = self.levels[min(at, len(self.levels) - 1)]
            return read, write
        (low, *before), (high, *after) = self.levels[at - 1], self.levels[at]
        share = (footprint - low) / (high - low)
        read, write = (1 / ((1 - share) / x + share / y) for x, y in zip(before, after, strict=True))
        return read, write


@record
class Prediction:
    """Seconds for arithmetic alone, and for moving bytes alone."""

    arithmetic: float
    memory: float
    call: float

    @property
    def seconds(self) -> float:
        return self.call + math.hypot(self.arithmetic, self.memory)


def predict(work: Work, read: float, written: float, machine: Machine) -> Prediction:
    """The prediction for a block on one thread of ``machine`` while all its threads are equally busy."""
    threads = machine.threads
    reads, writes = machine.rates((read + written) * threads)
    arithmetic = (work.units * 2 + work.flops / PRODUCTS) * threads / machine.flops
    return Prediction(arithmetic, (read / reads + written / writes) * threads, machine.call)


PRODUCTS: Final = 0.92  # the share of the machine's rate that the best products reach
PLANNED: Final = Machine(
    flops=90e9,
    levels=((1 << 14, 90e9, 200e9), (1 << 18, 60e9, 80e9), (1 << 22, 45e9, 45e9), (1 << 26, 18e9, 9e9)),
)  # an ordinary core of a shared server of 2021


ORDINARY_RATE: Final = 40e9  # operations per second
PRODUCT_RATE: Final = 90e9  # the same in products of matrices
HOST_RATE: Final = ORDINARY_RATE / 1000  # the same in host calls
BYTE_RATE: Final = 15e9  # per second
CALL_SECONDS: Final = 30e-9  # seconds to start a kernel
