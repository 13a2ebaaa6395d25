"""The machine's peak: the rate of fused multiply-adds in registers, on some number of threads."""

from __future__ import annotations

import ctypes
import time

import numpy as np

from runnel.backends.cpu.codegen import build
from runnel.backends.cpu.codegen.text import vector
from runnel.backends.cpu.launch import Launch
from runnel.backends.cpu.target import InstructionSet, in_force
from runnel.backends.host import memory
from runnel.core.dtypes import DType, float32

CHAINS = 12  # independent sums: enough to hide the latency of the addition, few enough for every register file


def symbol(dtype: DType) -> str:
    """Return the name of the kernel for ``dtype``."""
    return f"rn_peak_{dtype.name}"


def flops(target: InstructionSet, dtype: DType, steps: int) -> int:
    """Return the floating-point operations of a call for ``steps`` rows."""
    return 2 * CHAINS * (target.vector_bytes // dtype.itemsize) * steps


def emit_module(target: InstructionSet, dtype: DType) -> str:
    """Return the LLVM text: a kernel (docs/internals/design.md, "The kernel ABI") whose rows are steps of all chains at
    once. It reads and writes one vector of the thread's scratch, so that nothing is optimized away."""
    lanes = target.vector_bytes // dtype.itemsize
    kind = vector(dtype, lanes)
    name = f"llvm.fma.v{lanes}f{dtype.itemsize * 8}"
    chains = range(CHAINS)
    phis = "\n".join(f"  %s{c} = phi {kind} [ %x, %entry ], [ %n{c}, %again ]" for c in chains)
    fmas = "\n".join(f"  %n{c} = call {kind} @{name}({kind} %x, {kind} %x, {kind} %s{c})" for c in chains)
    stores = "\n".join(f"  store volatile {kind} %n{c}, ptr %scratch, align 64" for c in chains)
    return f"""declare {kind} @{name}({kind}, {kind}, {kind})
define void @{symbol(dtype)}(ptr %thread, ptr %args, i64 %i0, i64 %i1, i64 %j0, i64 %j1) {{
entry:
  %word = getelementptr i64, ptr %thread, i64 1
  %scratch = load ptr, ptr %word, align 8
  store volatile {kind} zeroinitializer, ptr %scratch, align 64
  %x = load volatile {kind}, ptr %scratch, align 64
  br label %again
again:
  %i = phi i64 [ %i0, %entry ], [ %next, %again ]
{phis}
{fmas}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %i1
  br i1 %more, label %again, label %done
done:
{stores}
  ret void
}}
"""


_STEPS = 20_000  # in one timed run: a fraction of a millisecond


class Peak:
    """The best rate so far, in GF/s. Measure it again next to each measurement it is compared with: clocks change."""

    def __init__(self, threads: int, dtype: DType = float32) -> None:
        self.threads = threads
        self.gflops = 0.0
        target = in_force()
        self._flops = threads * flops(target, dtype, _STEPS)
        self._function = build.addresses([(symbol(dtype), emit_module(target, dtype))])[0]
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
