"""The machine's peak: the rate of fused multiply-adds in registers, on some number of threads."""

from __future__ import annotations

import ctypes
import time

import numpy as np

from runnel.backends.cpu.codegen import build, peak
from runnel.backends.cpu.launch import Launch
from runnel.backends.cpu.target import in_force
from runnel.backends.host import memory
from runnel.core.dtypes import DType, float32

_STEPS = 20_000  # in one timed run: a fraction of a millisecond


class Peak:
    """The best rate so far, in GF/s. Measure it again next to each measurement it is compared with: clocks change."""

    def __init__(self, threads: int, dtype: DType = float32) -> None:
        self.threads = threads
        self.gflops = 0.0
        target = in_force()
        self._flops = threads * peak.flops(target, dtype, _STEPS)
        self._function = build.addresses([(peak.symbol(dtype), peak.emit_module(target, dtype))])[0]
        record = [[self._function, 0, 0, _STEPS, 0, 0, 0, 0], [0] * 8]
        self._bases = memory.allocate(64)
        self._launch = Launch([np.array(record, np.int64) for _ in range(threads)], self._bases.address)
        ctypes.memset(self._bases.address, 0, 64)

    def measure(self, seconds: float) -> float:
        """Run for ``seconds``, at least once, and return the best rate so far."""
        end = time.perf_counter() + seconds
        while True:
            start = time.perf_counter()
            self._launch.run()
            now = time.perf_counter()
            self.gflops = max(self.gflops, self._flops / (now - start) / 1e9)
            if now >= end:
                return self.gflops
