"""The calls of a program in order: which kernel, on what block of points for each thread, and what it should cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runnel.inspection import tables
from runnel.lowering.partition import Block
from runnel.lowering.places import Call
from runnel.lowering.plan import Plan


@dataclass(frozen=True, slots=True)
class Step:
    """One call: its domain of ``rows`` × ``columns``, a block of it (i0, i1, j0, j1) for each thread, its cost."""

    index: int
    kernel: str
    ops: tuple[str, ...]
    rows: int
    columns: int
    blocks: tuple[Block | None, ...]
    barrier: bool  # whether the threads wait for one another before it
    seconds: float  # predicted, on one thread
    flops: float
    bytes: int
    where: str  # the user's line

    @property
    def split(self) -> str:
        """How the call is shared: ``rows/2``, ``columns/4``, or the thread that does it all."""
        busy = [(t, b) for t, b in enumerate(self.blocks) if b is not None]
        if len(busy) < 2:
            return f"thread {busy[0][0]}" if busy else "nobody"
        by_rows = any(b[:2] != (0, self.rows) for _, b in busy)
        return f"{'rows' if by_rows else 'columns'}/{len(busy)}"


class Schedule(Sequence[Step]):
    """The steps of a plan; ``str()`` is a table."""

    def __init__(self, plan: Plan) -> None:
        self.threads = plan.threads
        parts = zip(plan.calls, plan.blocks, plan.barriers, strict=True)
        self._steps = [_step(i, call, blocks, barrier) for i, (call, blocks, barrier) in enumerate(parts)]

    @property
    def seconds(self) -> float:
        """The predicted time of all steps on one thread."""
        return sum(step.seconds for step in self._steps)

    @property
    def flops(self) -> float:
        return sum(step.flops for step in self._steps)

    @property
    def barriers(self) -> int:
        return sum(step.barrier for step in self._steps) if self.threads > 1 else 0

    def as_json(self) -> list[dict[str, Any]]:
        return [asdict(step) for step in self._steps]

    def __getitem__(self, index: Any) -> Any:
        return self._steps[index]

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    def __str__(self) -> str:
        heads = ("#", "kernel", "points", "split", "barrier", "µs", "flops", "bytes", "ops", "line")
        rows = [
            (
                str(s.index), s.kernel, f"{s.rows}×{s.columns}", s.split, "wait" if s.barrier else "",
                tables.microseconds(s.seconds), tables.count(s.flops), tables.size(s.bytes),
                shortened(s.ops), tables.line(s.where),
            )
            for s in self._steps
        ]  # fmt: skip
        return tables.table(heads, rows, left=("kernel", "split", "barrier", "ops", "line"))


def shortened(ops: Sequence[str], most: int = 4) -> str:
    """The first few names, and how many more there are."""
    more = f" +{len(ops) - most}" if len(ops) > most else ""
    return " ".join(ops[:most]) + more


def line_of(call: Call) -> str:
    """The user's line that a call stands for: that of the first of its nodes which has one."""
    return next((node.where for node in call.nodes if node.where), "")


def _step(index: int, call: Call, blocks: Sequence[Block | None], barrier: bool) -> Step:
    ops = tuple(node.op.name if node.op is not None else "copy" for node in call.nodes)
    return Step(
        index, call.kernel.name, ops, call.rows, call.columns, tuple(blocks), barrier,
        call.seconds, call.flops, call.bytes_moved, line_of(call),
    )  # fmt: skip
