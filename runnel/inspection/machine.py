"""The rates of this machine: bandwidths, and the peak rate of fused multiply-adds in registers.

Measuring them takes a tenth of a second; they are cached with the compiled kernels. Reports compare kernels with them.
Plans do not depend on measurements.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import math
import platform
import time
from typing import Final

import numpy as np

from runnel.backends import context
from runnel.backends.base import Target
from runnel.backends.cpu.codegen import build
from runnel.backends.cpu.codegen.text import vector
from runnel.backends.cpu.launch import Launch
from runnel.backends.cpu.target import InstructionSet, in_force
from runnel.backends.host import memory, objects
from runnel.compiler.lowering.parts import named
from runnel.compiler.plan_ir.cost import Machine
from runnel.core.dtypes import DType, float32
from runnel.core.records import replace
from runnel.loops.ir import Acc, Apply, Buffer, Expr, For, Index, Kernel, Load, RangeBound, Ref, Store, Update, Var
from runnel.loops.scalar import add

CHAINS = 12  # independent sums: enough to hide the latency of the addition, few enough for every register file


def symbol(dtype: DType) -> str:
    """Return the name of the kernel for ``dtype``."""
    return f"rn_peak_{dtype.name}"


def flops(target: InstructionSet, dtype: DType, steps: int) -> int:
    """Return the floating-point operations of a call for ``steps`` rows."""
    return 2 * CHAINS * (target.vector_bytes // dtype.itemsize) * steps


def emit_module(target: InstructionSet, dtype: DType) -> str:
    """Return the LLVM text of a kernel (docs/internals/design.md, "The kernel ABI") whose rows are steps of all chains.

    It reads and writes one vector of the thread's scratch memory, so that LLVM does not optimize the chains away.
    """
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
    """The best rate so far, in GF/s. Clocks change, so measure it again beside each measurement to compare with it."""

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


_FORM: Final = "rates 1"  # of the cache entry
_SIZES: Final = tuple(1 << power for power in (14, 17, 19, 21, 23, 25, 26))  # bytes of the working set of all threads
_STREAMS: Final = 4  # read side by side
_SECONDS: Final = 0.3e-3  # to measure one rate in one round
_ROUNDS: Final = 2
_PEAK_SECONDS: Final = 4e-3
_BETTER: Final = 1.01  # times the cached rate: enough to replace it
_MOVED: Final = 1 << 22  # least bytes in one timed run


def rates(threads: int) -> Machine:
    """Return the rates of ``threads`` threads together, measured at the first use on this machine.

    The rate of arithmetic is measured in each process, since clocks and the load change; the best one counts.
    """
    return _rates(threads, context.current().target)


@functools.cache
def _rates(threads: int, target: Target) -> Machine:
    cache, key = objects.current(), _key(threads, target)
    known = _known(cache.get(key), threads) if cache is not None else None
    if known is None:
        machine = measured(threads)
    else:
        flops = Peak(threads).measure(_PEAK_SECONDS) * 1e9
        if flops <= known.flops * _BETTER:
            return replace(known, flops=max(known.flops, flops))
        machine = replace(known, flops=flops)
    if cache is not None:
        cache.put(key, json.dumps([machine.flops, machine.levels]).encode())
    return machine


def _known(body: bytes | None, threads: int) -> Machine | None:
    """Return the cached rates, if they are valid."""
    try:
        flops, entries = json.loads(body or b"")
        levels = tuple((int(size), float(read), float(write)) for size, read, write in entries)
        machine = Machine(float(flops), levels, threads)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    return machine if levels and all(0 < rate < math.inf for rate in (machine.flops, *sum(levels, ()))) else None


def measured(threads: int) -> Machine:
    """Measure the rates and return the best of each. Smaller working sets count as at least as fast."""
    peak, block = Peak(threads), memory.allocate(max(_SIZES))
    ctypes.memset(block.address, 0, block.nbytes)
    parts = [size // threads // (64 * _STREAMS) * 16 for size in _SIZES]  # float32 of a stream
    times = np.full((2, len(_SIZES)), np.inf)
    for _ in range(_ROUNDS):
        peak.measure(_PEAK_SECONDS)
        for i, part in enumerate(parts):
            read = _best(_read_kernel(), block, threads, [part * n for n in range(_STREAMS)], part * _STREAMS, part)
            copy = _best(_copy_kernel(), block, threads, [0, 2 * part], _STREAMS * part, 2 * part)
            times[:, i] = np.minimum(times[:, i], (read, copy))
    per_byte = times / (4 * _STREAMS * threads * np.array(parts))
    reading, copying = np.minimum.accumulate(per_byte[:, ::-1], axis=1)[:, ::-1]
    writing = np.maximum(2 * copying - reading, 0.2 * copying)
    levels = zip(_SIZES, (1 / reading).tolist(), (1 / writing).tolist(), strict=True)
    return Machine(peak.gflops * 1e9, tuple(levels), threads)


def _key(threads: int, target: Target) -> str:
    identity = (_FORM, platform.node(), platform.machine(), repr(target), threads, build.emitters())
    return hashlib.sha256(repr(identity).encode()).hexdigest()


def _best(kernel: Kernel, block: memory.Storage, threads: int, starts: list[int], step: int, count: int) -> float:
    """Return the seconds of one pass of all threads over separate ``step`` elements in ``count`` iterations."""
    address = build.kernels([kernel])[0]
    arguments = [[word for s in starts for word in (0, 4 * (t * step + s))] for t in range(threads)]
    words = np.array([[*a, *([0, block.nbytes - 64] if len(a) > 4 else [])] for a in arguments], np.int64)
    passes = max(_MOVED // (step * 4 * threads), 1)
    records = []
    for t in range(threads):
        row = [address, words[t].__array_interface__["data"][0], 0, 1, 0, count, 0, 0]
        records.append(np.array([row] * passes + [[0] * 8], np.int64))
    bases = (ctypes.c_int64 * 1)(block.address)
    launch = Launch(records, ctypes.addressof(bases))
    if passes > 1:
        launch.run()
    best, end = float("inf"), time.perf_counter() + _SECONDS
    while True:
        start = time.perf_counter()
        launch.run()
        now = time.perf_counter()
        best = min(best, now - start)
        if now >= end:
            return best / passes


@functools.cache
def _copy_kernel() -> Kernel:
    at, once = Var("at"), Var("once")
    here = Index(((at, 1),))
    body = (Store("b1", here, Load("b0", here, float32)),)
    loop = For(once, RangeBound.I0, RangeBound.I1, "seq", (For(at, RangeBound.J0, RangeBound.J1, "vec", body),))
    return named("rate_copy", (Buffer("b0", float32, "in"), Buffer("b1", float32, "out")), (), (loop,))


@functools.cache
def _read_kernel() -> Kernel:
    """Return a kernel that sums several streams, so that no addition waits for the previous one."""
    at, once = Var("at"), Var("once")
    here = Index(((at, 1),))
    loads: list[Expr] = [Load(f"b{n}", here, float32) for n in range(_STREAMS)]
    value = functools.reduce(lambda x, y: Apply(add, (x, y), float32), loads[1:], loads[0])
    loop = For(at, RangeBound.J0, RangeBound.J1, "vec", (Update("sum", value),))
    store = Store(f"b{_STREAMS}", Index(), Ref("sum", float32))
    body = For(once, RangeBound.I0, RangeBound.I1, "seq", (Acc("sum", "sum", float32), loop, store))
    buffers = (*(Buffer(f"b{n}", float32, "in") for n in range(_STREAMS)), Buffer(f"b{_STREAMS}", float32, "out"))
    return named("rate_read", buffers, (), (body,))
