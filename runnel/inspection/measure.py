"""Measurements of a program, call by call and as a whole, compared with the cost model and the machine's rates.

Everything runs on separate memory with synthetic data, so that Variables and runs in progress are not affected. A call
is repeated with warm caches, and its best time is reported.
"""

from __future__ import annotations

from typing import Any, Final

from runnel.compiler.plan_ir.calls import Call
from runnel.compiler.plan_ir.regions import is_unbounded
from runnel.compiler.program import Program
from runnel.core.records import asdict, record, replace
from runnel.inspection import tables
from runnel.inspection.bench import Bench, best
from runnel.inspection.machine import rates
from runnel.inspection.schedule import line_of, ops_of, shortened

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
        """The same with the ``most`` slowest calls, slowest first."""
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
        """The calls in order, or the ``most`` slowest."""
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
