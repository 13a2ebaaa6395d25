"""How long a call should take: its work and its bytes, by the rates of a machine.

Plans are made with :data:`PLANNED`, so that they are the same on every machine; reports use rates that were measured.
"""

from __future__ import annotations

import bisect
import math
from typing import Final

from runnel.compiler.cost.work import Work
from runnel.core.records import record


@record
class Machine:
    """Rates, each of ``threads`` threads together. ``flops``: float32 operations of fused multiply-adds in a second.
    ``levels``: bytes that a program goes through again and again, and at how many a second it reads and writes then.
    ``call``: seconds to begin a kernel."""

    flops: float
    levels: tuple[tuple[int, float, float], ...]
    threads: int = 1
    call: float = 8e-9

    def rates(self, footprint: float) -> tuple[float, float]:
        """Bytes read and written a second among ``footprint`` bytes, between levels in proportion to logarithms."""
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
    """Seconds that arithmetic alone would take, and moving bytes alone."""

    arithmetic: float
    memory: float
    call: float

    @property
    def seconds(self) -> float:
        return self.call + math.hypot(self.arithmetic, self.memory)


def predict(work: Work, read: float, written: float, machine: Machine) -> Prediction:
    """What a block takes on one thread of ``machine``, each of whose threads is as busy."""
    threads = machine.threads
    reads, writes = machine.rates((read + written) * threads)
    arithmetic = (work.units * 2 + work.flops / PRODUCTS) * threads / machine.flops
    return Prediction(arithmetic, (read / reads + written / writes) * threads, machine.call)


PRODUCTS: Final = 0.92  # of the machine's rate is what the best products reach
PLANNED: Final = Machine(
    flops=90e9,
    levels=((1 << 14, 90e9, 200e9), (1 << 18, 60e9, 80e9), (1 << 22, 45e9, 45e9), (1 << 26, 18e9, 9e9)),
)  # an ordinary core of a shared server of 2021
