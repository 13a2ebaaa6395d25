"""The calls of a program in order: kernel, block of each thread, and predicted cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from runnel.compiler.plan_ir.calls import Call
from runnel.compiler.plan_ir.plan import Plan
from runnel.compiler.plan_ir.regions import GUESSED, AnyRegion, Repeat, While, sequence
from runnel.compiler.plan_ir.work import Block
from runnel.core.records import asdict, record
from runnel.inspection import tables


@record
class Step:
    """One call: its domain of ``rows`` × ``columns``, a block of it (i0, i1, j0, j1) for each thread, its cost. In a
    loop it is executed several ``times``."""

    index: int
    kernel: str
    ops: tuple[str, ...]
    rows: int
    columns: int
    blocks: tuple[Block | None, ...]
    waits: int  # executions of a barrier before it in a run
    times: int
    seconds: float  # predicted, each time, on one thread
    flops: float  # each time
    bytes: int
    where: str  # the user's source line

    @property
    def barrier(self) -> bool:
        """Whether the threads wait for one another before it."""
        return self.waits > 0

    @property
    def split(self) -> str:
        """The partition of the call: ``rows/2``, ``columns/4``, or the thread that does all."""
        busy = [(t, b) for t, b in enumerate(self.blocks) if b is not None]
        if len(busy) < 2:
            return f"thread {busy[0][0]}" if busy else "nobody"
        by_rows = any(b[:2] != (0, self.rows) for _, b in busy)
        return f"{'rows' if by_rows else 'columns'}/{len(busy)}"


class Schedule(Sequence[Step]):
    """The steps of a plan; ``str()`` is a table."""

    def __init__(self, plan: Plan) -> None:
        self.threads = plan.threads
        parts = zip(plan.calls, plan.blocks, _waits(plan), strict=True)
        self._steps = [_step(i, call, blocks, waits) for i, (call, blocks, waits) in enumerate(parts)]

    @property
    def seconds(self) -> float:
        """The predicted time of all steps on one thread."""
        return sum(step.seconds * step.times for step in self._steps)

    @property
    def flops(self) -> float:
        return sum(step.flops * step.times for step in self._steps)

    @property
    def barriers(self) -> int:
        return sum(step.waits for step in self._steps) if self.threads > 1 else 0

    def as_json(self) -> list[dict[str, Any]]:
        return [{**asdict(step), "barrier": step.barrier} for step in self._steps]

    def __getitem__(self, index: Any) -> Any:
        return self._steps[index]

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    def __str__(self) -> str:
        heads = ("#", "kernel", "times", "points", "split", "barrier", "µs", "flops", "bytes", "ops", "line")
        rows = [
            (
                str(s.index), s.kernel, str(s.times), f"{s.rows}×{s.columns}", s.split, "wait" if s.barrier else "",
                tables.microseconds(s.seconds), tables.count(s.flops), tables.size(s.bytes),
                shortened(s.ops), tables.line(s.where),
            )
            for s in self._steps
        ]  # fmt: skip
        return tables.table(heads, rows, left=("kernel", "split", "barrier", "ops", "line"))


def shortened(ops: Sequence[str], most: int = 4) -> str:
    """Return the first few names, and how many more there are."""
    more = f" +{len(ops) - most}" if len(ops) > most else ""
    return " ".join(ops[:most]) + more


def ops_of(call: Call) -> tuple[str, ...]:
    """Return the names of the ops that a call computes."""
    return tuple(node.op.name if node.op is not None else "copy" for node in call.nodes)


def line_of(call: Call) -> str:
    """Return the user's source line of a call: that of the first of its nodes that has one."""
    return next((node.where for node in call.nodes if node.where), "")


def _waits(plan: Plan) -> list[int]:
    """For each call the executions of barriers before it in a run; trip counts of unknown loops are guessed."""
    waits = [0] * len(plan.calls)

    def walk(begin: int, end: int, regions: Sequence[AnyRegion], first: int, later: int) -> None:
        """``first`` and ``later``: executions in first iterations of the loop around, and in others."""
        for item in sequence(begin, end, regions):
            if isinstance(item, int):
                waits[item] += plan.barriers[item] * first + plan.again[item] * later
                continue
            waits[item.begin] += item.barrier * first + item.again * later
            runs = first + later
            if isinstance(item, Repeat):
                walk(item.begin, item.end, item.inner, runs, runs * (item.count - 1))
            elif isinstance(item, While):
                walk(item.begin, item.end, item.inner, 0, runs * GUESSED)
                waits[item.begin] += runs * GUESSED
            else:
                walk(item.begin, item.end, item.inner, runs, 0)

    walk(0, len(plan.calls), plan.regions, 1, 0)
    return waits


def _step(index: int, call: Call, blocks: Sequence[Block | None], waits: int) -> Step:
    return Step(
        index, call.kernel.name, ops_of(call), call.rows, call.columns, tuple(blocks), waits, call.times,
        call.seconds, call.flops, call.bytes_moved, line_of(call),
    )  # fmt: skip
