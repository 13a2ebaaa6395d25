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

from runnel.backends.base import COMMAND_WORDS, Launch
from runnel.backends.host import memory
from runnel.compiler.plan_ir.calls import Allocation, Call, MemorySpace
from runnel.compiler.plan_ir.plan import Plan, is_unbounded
from runnel.compiler.program import Program
from runnel.core.errors import ShapeError
from runnel.core.records import asdict, record, replace
from runnel.inspection import tables
from runnel.inspection.machine import rates
from runnel.inspection.schedule import line_of, ops_of, shortened

_PATTERNS = (0xA5, 0x5A)


class Bench:
    """Memory for a program, and launches on it. ``last_inputs`` is the memory of the last inputs, if it exists."""

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
        """Return a launch of one call on all threads, ``repeats`` times. In a loop it is the first iteration."""
        blocks = list(self.program.plan.blocks[index])
        while len(blocks) > 1 and blocks[-1] is None:
            blocks.pop()
        commands = []
        for block in blocks:
            rows = [] if block is None else [self.program.command(index, block)] * repeats
            commands.append(np.array([*rows, (0,) * COMMAND_WORDS], np.int64))
        return self.program.loaded.launch(ctypes.addressof(self._bases), commands)

    def restorer(self, call: Call) -> Callable[[], None] | None:
        """Return a function that restores the values that ``call`` reads and writes, which repetition would change."""
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
        """Return the end of the part of the arena that a run writes, in bytes."""
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
    """Allocate memory for an input, Variable or output, with floats near 1 and integers 0, which are valid indices."""
    if allocation.strided:
        raise ShapeError(f"[measure] input '{allocation.label}' must be dense.")
    block = memory.allocate(max(allocation.nbytes, 1))
    array = block.ndarray((allocation.size,), allocation.dtype.numpy, writeable=True)
    array[:] = 0
    if allocation.dtype.is_float:
        array[:] = (
            np.random.default_rng(allocation.size).uniform(0.5, 1.5, allocation.size).astype(allocation.dtype.numpy)
        )
    return block


def best(run: Callable[[], int], seconds: float, before: Callable[[], None] | None = None) -> float:
    """Return the time of the fastest of at least three runs within ``seconds``, with an untimed ``before()`` each."""
    shortest, spent, runs = float("inf"), 0.0, 0
    while runs < 3 or (spent < seconds and runs < 100_000):
        if before is not None:
            before()
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        shortest, spent, runs = min(shortest, took), spent + took, runs + 1
    return shortest


_PER_RUN: Final = 1e-4  # seconds of predicted work in one timed run, so that clock and launch are negligible
_CHANGING: Final = 8  # the largest number of repeats if values are restored between runs


@record
class CallTime:
    """The best time of one call on ``threads`` threads, which a run executes ``times`` times.

    ``share`` is the fraction of the machine's peak that the call reaches, in multiply-adds or bandwidth by ``bound``.
    """

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
        """The seconds in a run of the program."""
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
    """The measurements of a program.

    Attributes:
        calls: the measurements of its calls.
        seconds: the best time of the whole program; None if it has a loop that might not end with synthetic data.
        threads: the number of threads.
        arena_touched: the end of the part of the arena that a run writes, in bytes; None like ``seconds``.
        hoisted_constants: the measurements of the program of its hoisted constants.
    """

    calls: tuple[CallTime, ...]
    seconds: float | None
    threads: int
    arena_touched: int | None
    hoisted_constants: Measurement | None = None

    @property
    def total(self) -> float:
        """The seconds of all calls in a run."""
        return sum(c.total for c in self.calls)

    @property
    def predicted(self) -> float:
        return sum(c.predicted * c.times for c in self.calls)

    def slowest(self, most: int | None = None) -> Measurement:
        """Return the measurement with only the ``most`` slowest calls, slowest first."""
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
        whole = "not run on synthetic data" if self.seconds is None else f"{tables.microseconds(self.seconds)} µs"
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
    """Time every call and the whole program, for about ``seconds`` each, and its ``hoisted_constants`` before them."""
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
    """Return the bars of one program as process number ``process`` of the timeline."""
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
