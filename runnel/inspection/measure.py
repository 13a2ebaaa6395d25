"""Measurements of a program, call by call and as a whole, compared with the cost model and the machine's rates.

Everything runs on separate memory with synthetic data, so that measuring does not affect Variables and runs in
progress. A call is repeated with warm caches, and its best time is reported. :func:`events` shows a step as a timeline
of its threads in Google's "Trace Event Format" (chrome://tracing, Perfetto).
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from runnel.backends.base import Launch
from runnel.backends.commands import COMMAND_WORDS
from runnel.backends.host import memory
from runnel.compiler.plan_ir.calls import Allocation, Call, MemorySpace
from runnel.compiler.plan_ir.plan import Plan
from runnel.compiler.plan_ir.regions import is_unbounded
from runnel.compiler.program import Program
from runnel.core.errors import ShapeError
from runnel.core.records import asdict, record, replace
from runnel.inspection import tables
from runnel.inspection.machine import rates
from runnel.inspection.schedule import line_of, ops_of, shortened

_PATTERNS = (0xA5, 0x5A)


class Bench:
    """Memory for a program, and launches on it. ``last_inputs`` is the memory of the last inputs, if they are
    computed."""

    def __init__(self, program: Program, last_inputs: Sequence[memory.Storage] = ()) -> None:
        self.program = program
        plan = program.plan
        self.arena = program.backend.allocate(program.arena_bytes)
        self.arena.ndarray((self.arena.nbytes // 4,), np.float32, writeable=True)[:] = 1.0
        own = len(plan.inputs) - len(last_inputs)
        self.inputs = [*(filled(allocation) for allocation in plan.inputs[:own]), *last_inputs]
        self.variables = [filled(allocation) for allocation in plan.variables.values()]
        self.outputs = [filled(allocation) for allocation in plan.outputs]
        self.blocks = [*self.inputs, *self.variables, *self.outputs]
        self._block_of = dict(zip((*plan.inputs, *plan.variables.values(), *plan.outputs), self.blocks, strict=True))
        addresses = [self.arena.address, program.constants.address, *(block.address for block in self.blocks)]
        self._bases = (ctypes.c_int64 * plan.slots)(*addresses)
        self.whole = program.loaded.launch(ctypes.addressof(self._bases))

    def call(self, index: int, repeats: int) -> Launch:
        """One call on all threads of the program, ``repeats`` times; in a loop the first iteration."""
        blocks = list(self.program.plan.blocks[index])
        while len(blocks) > 1 and blocks[-1] is None:
            blocks.pop()
        commands = []
        for block in blocks:
            rows = [] if block is None else [self.program.command(index, block)] * repeats
            commands.append(np.array([*rows, (0,) * COMMAND_WORDS], np.int64))
        return self.program.loaded.launch(ctypes.addressof(self._bases), commands)

    def restorer(self, call: Call) -> Callable[[], None] | None:
        """Return a function that restores the values that ``call`` both reads and writes: repeated, they would grow or
        vanish."""
        written = {a.allocation for a in call.accesses if a.writes and a.allocation.space is not MemorySpace.SCRATCH}
        changing = written & {
            a.allocation for b, a in zip(call.kernel.buffers, call.accesses, strict=True) if b.mode in ("in", "inout")
        }
        if not changing:
            return None
        saved = [(address, allocation.nbytes, ctypes.string_at(address, allocation.nbytes)) for allocation in changing
                 for address in [self._address(allocation)]]  # fmt: skip

        def restore() -> None:
            for address, nbytes, content in saved:
                ctypes.memmove(address, content, nbytes)

        return restore

    def touched(self) -> int:
        """One past the last byte of the arena that a run writes to."""
        bytes_ = self.arena.ndarray((self.arena.nbytes,), np.uint8, writeable=True)
        changed = np.zeros(self.arena.nbytes, np.bool_)
        for pattern in _PATTERNS:
            bytes_[:] = pattern
            self.whole.run()
            changed |= bytes_ != pattern
        written = np.flatnonzero(changed)
        return int(written[-1]) + 1 if len(written) else 0

    def _address(self, allocation: Allocation) -> int:
        return (
            self.arena.address + allocation.offset
            if allocation.space is MemorySpace.ARENA
            else self._block_of[allocation].address
        )


def filled(allocation: Allocation) -> memory.Storage:
    """Memory for an input, Variable or output: floats of ordinary magnitude, integers 0, which are valid indices."""
    if allocation.strided:
        raise ShapeError(f"[measure] input '{allocation.label}' is not dense; a compiled function's inputs are.")
    block = memory.allocate(max(allocation.nbytes, 1))
    array = block.ndarray((allocation.size,), allocation.dtype.numpy, writeable=True)
    array[:] = 0
    if allocation.dtype.is_float:
        array[:] = (
            np.random.default_rng(allocation.size).uniform(0.5, 1.5, allocation.size).astype(allocation.dtype.numpy)
        )
    return block


def best(run: Callable[[], int], seconds: float, before: Callable[[], None] | None = None) -> float:
    """Return the time of the fastest run within ``seconds``, of at least three; ``before`` each, an untimed call."""
    shortest, spent, runs = float("inf"), 0.0, 0
    while runs < 3 or (spent < seconds and runs < 100_000):
        if before is not None:
            before()
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        shortest, spent, runs = min(shortest, took), spent + took, runs + 1
    return shortest


_PER_RUN: Final = 1e-4  # seconds of predicted work in one timed run, for which clock and launch are negligible
_CHANGING: Final = 8  # most repeats where values are restored between runs


@record
class CallTime:
    """The best time of one call on ``threads`` threads. ``share`` is the part of the machine's peak, in multiply-adds
    or in bandwidth, as ``bound`` says, that the call reaches. A run executes it ``times`` times."""

    index: int
    kernel: str
    ops: tuple[str, ...]
    times: int
    threads: int
    seconds: float
    predicted: float
    flops: float
    bytes: int
    share: float
    bound: str  # "flops" | "memory"
    where: str

    @property
    def total(self) -> float:
        """Seconds in a run of the program."""
        return self.seconds * self.times

    @property
    def gflops(self) -> float:
        return self.flops / self.seconds / 1e9

    @property
    def gbytes(self) -> float:
        return self.bytes / self.seconds / 1e9

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "gflops": self.gflops, "gbytes": self.gbytes, "total": self.total}


@record
class Measurement:
    """``seconds`` is the best time of the whole program on its ``threads``, ``arena_touched`` the end of the part of
    the arena that a run writes, in bytes; both None for a program with a loop that might not end with synthetic data.
    ``hoisted_constants`` is the measurement of the program of its hoisted constants."""

    calls: tuple[CallTime, ...]
    seconds: float | None
    threads: int
    arena_touched: int | None
    hoisted_constants: Measurement | None = None

    @property
    def total(self) -> float:
        """Seconds of all calls, times their executions in a run."""
        return sum(c.total for c in self.calls)

    @property
    def predicted(self) -> float:
        return sum(c.predicted * c.times for c in self.calls)

    def slowest(self, most: int | None = None) -> Measurement:
        """Return the same with the ``most`` slowest calls, slowest first."""
        calls = sorted(self.calls, key=lambda c: -c.total)[:most]
        return replace(self, calls=tuple(calls))

    def as_json(self) -> dict[str, Any]:
        return {
            "calls": [c.as_json() for c in self.calls],
            "seconds": self.seconds,
            "total": self.total,
            "predicted": self.predicted,
            "threads": self.threads,
            "arena_touched": self.arena_touched,
            "hoisted_constants": None if self.hoisted_constants is None else self.hoisted_constants.as_json(),
        }

    def table(self, most: int | None = None) -> str:
        """Return the calls in order, or the ``most`` slowest."""
        rows = [
            (
                str(c.index), c.kernel, str(c.times), str(c.threads), tables.microseconds(c.seconds),
                tables.microseconds(c.predicted), f"{c.gflops:.1f}", f"{c.gbytes:.1f}", f"{100 * c.share:.0f}%",
                c.bound, shortened(c.ops), tables.line(c.where),
            )
            for c in (self.calls if most is None else self.slowest(most).calls)
        ]  # fmt: skip
        heads = ("#", "kernel", "times", "threads", "µs", "predicted", "GF/s", "GB/s", "peak", "of", "ops", "line")
        return tables.table(heads, rows, left=("kernel", "of", "ops", "line"))

    @property
    def summary(self) -> str:
        whole = "not run on made-up numbers" if self.seconds is None else f"{tables.microseconds(self.seconds)} µs"
        return (
            f"all calls one after another: {tables.microseconds(self.total)} µs, predicted "
            f"{tables.microseconds(self.predicted)} µs; the program on {self.threads} "
            f"thread{'s' if self.threads > 1 else ''}: {whole}"
        )

    def __str__(self) -> str:
        text = f"{self.table()}\n{self.summary}"
        if self.hoisted_constants is None:
            return text
        return f"before, when Variables have changed:\n{tables.indented(str(self.hoisted_constants))}{text}"


def measure(program: Program, seconds: float = 0.01, hoisted_constants: Program | None = None) -> Measurement:
    """Time every call, and the whole program, each for about ``seconds``; first its ``hoisted_constants``."""
    if hoisted_constants is None:
        return _measured(Bench(program), seconds)
    before = Bench(hoisted_constants)
    first = _measured(before, seconds)
    prepared = [before.outputs[i] for i in hoisted_constants.plan.output_of]
    return replace(_measured(Bench(program, prepared), seconds), hoisted_constants=first)


def _measured(bench: Bench, seconds: float) -> Measurement:
    plan = bench.program.plan
    touched = whole = None
    if not is_unbounded(plan.regions):
        touched = bench.touched()
        whole = best(bench.whole.run, seconds)
    calls = tuple(_call(bench, index, call, seconds) for index, call in enumerate(plan.calls))
    return Measurement(calls, whole, plan.threads, touched)


def _call(bench: Bench, index: int, call: Call, seconds: float) -> CallTime:
    blocks = [block for block in bench.program.plan.blocks[index] if block is not None]
    predicted = max(call.predict(rates(len(blocks)), block).seconds for block in blocks)
    before = bench.restorer(call)
    repeats = int(min(max(_PER_RUN / predicted, 1), 1000 if before is None else _CHANGING))
    took = best(bench.call(index, repeats).run, seconds, before) / repeats
    work = call.work()
    products = min(work.flops, call.flops)
    others = min(call.flops - products, work.units)
    read, written = call.traffic(work)
    machine = rates(len(blocks))
    reads, writes = machine.rates(read + written)
    shares = {
        "flops": (products + 2 * others) / machine.flops / took,  # an addition counts as a multiply-add
        "memory": (read / reads + written / writes) / took,
    }
    bound = max(shares, key=lambda limit: shares[limit])
    return CallTime(
        index, call.kernel.name, ops_of(call), call.times, len(blocks), took, predicted, products + others,
        read + written, shares[bound], bound, line_of(call),
    )  # fmt: skip


def events(plan: Plan, measured: Measurement, process: int = 0) -> list[dict[str, Any]]:
    """Return the bars of one program, as process number ``process``."""
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
