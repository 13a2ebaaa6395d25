"""A program measured: each of its calls alone on one thread, and the whole as it is.

Everything runs on memory of its own with made-up numbers, so that neither Variables nor a run in progress notice. A
call is repeated, with what fits of its data in cache: the best that it can do.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from runnel.core.errors import ShapeError
from runnel.inspection import tables
from runnel.inspection.schedule import line_of
from runnel.lowering.places import Place
from runnel.lowering.program import Program
from runnel.runtime import memory
from runnel.runtime.launch import RECORD_WORDS, Launch

_PER_RUN: Final = 1e-4  # seconds of predicted work in one timed run: the clock and the launch cost less than 1 % of it
_PATTERNS: Final = (0xA5, 0x5A)


@dataclass(frozen=True, slots=True)
class CallTime:
    """The best time of one call, on one thread."""

    index: int
    kernel: str
    seconds: float
    predicted: float
    flops: float
    bytes: int
    where: str

    @property
    def gflops(self) -> float:
        return self.flops / self.seconds / 1e9

    @property
    def gbytes(self) -> float:
        return self.bytes / self.seconds / 1e9


@dataclass(frozen=True, slots=True)
class Measurement:
    """``seconds`` is the best time of the whole program on its ``threads``; ``arena_touched`` how far into the arena a
    run writes, in bytes."""

    calls: tuple[CallTime, ...]
    seconds: float
    threads: int
    arena_touched: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        rows = [
            (
                str(c.index), c.kernel, tables.microseconds(c.seconds), tables.microseconds(c.predicted),
                f"{c.gflops:.1f}", f"{c.gbytes:.1f}", tables.line(c.where),
            )
            for c in self.calls
        ]  # fmt: skip
        heads = ("#", "kernel", "µs", "predicted", "GF/s", "GB/s", "line")
        alone = sum(c.seconds for c in self.calls)
        return (
            tables.table(heads, rows, left=("kernel", "line"))
            + f"\nall calls alone on one thread: {tables.microseconds(alone)} µs; the program on {self.threads} "
            + f"thread{'s' if self.threads > 1 else ''}: {tables.microseconds(self.seconds)} µs"
        )


def measure(program: Program, seconds: float = 0.01) -> Measurement:
    """Time every call, and the whole program, each for about ``seconds``."""
    bench = _Bench(program)
    touched = bench.touched()
    whole = _best(bench.whole.run, seconds)
    calls = []
    for index, call in enumerate(program.plan.calls):
        repeats = int(min(max(_PER_RUN / call.seconds, 1), 1000))
        best = _best(bench.alone(index, repeats).run, seconds) / repeats
        calls.append(CallTime(index, call.kernel.name, best, call.seconds, call.flops, call.bytes_moved, line_of(call)))
    return Measurement(tuple(calls), whole, program.plan.threads, touched)


class _Bench:
    """Memory of its own for a program, and launches on it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        plan = program.plan
        self.arena = memory.allocate(program.arena.nbytes)
        places = (*plan.inputs, *plan.variables.values(), *plan.outputs)
        self._blocks = [_filled(place) for place in places]
        addresses = [self.arena.address, program.constants.address, *(block.address for block in self._blocks)]
        self._bases = (ctypes.c_int64 * plan.slots)(*addresses)
        self.whole = self._launch(program.records)

    def alone(self, index: int, repeats: int) -> Launch:
        """One call, all of it, by one thread, ``repeats`` times."""
        call = self.program.plan.calls[index]
        record = self.program.record(index, (0, call.rows, 0, call.columns))
        return self._launch([np.array([record] * repeats + [(0,) * RECORD_WORDS], np.int64)])

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

    def _launch(self, records: list[np.ndarray]) -> Launch:
        return Launch(records, ctypes.addressof(self._bases), self.program.scratch_bytes)


def _filled(place: Place) -> memory.Storage:
    """Memory for an input, Variable or output: floats of ordinary size, integers 0, which as an index is in range."""
    if place.strided:
        raise ShapeError(f"[measure] input '{place.label}' is not dense; a compiled function's inputs are.")
    block = memory.allocate(max(place.nbytes, 1))
    array = block.ndarray((place.size,), place.dtype.numpy, writeable=True)
    array[:] = 0
    if place.dtype.is_float:
        array[:] = np.random.default_rng(place.size).uniform(0.5, 1.5, place.size).astype(place.dtype.numpy)
    return block


def _best(run: Callable[[], int], seconds: float) -> float:
    """The shortest of the runs that fit into ``seconds``; at least three."""
    best, spent, runs = float("inf"), 0.0, 0
    while runs < 3 or (spent < seconds and runs < 100_000):
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best
