"""The calls of a program in order, with blocks of threads and predicted costs, and its kernels.

The loops, LLVM text and machine code of kernels are generated on demand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from runnel.backends.base import Target
from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import build, nest
from runnel.compiler.plan_ir.calls import Call
from runnel.compiler.plan_ir.cost import Block
from runnel.compiler.plan_ir.plan import GUESSED, AnyRegion, Plan, Repeat, While, sequence
from runnel.core.records import asdict, record
from runnel.inspection import tables
from runnel.loops import printer
from runnel.loops.ir import Kernel


@record
class Step:
    """One call: its domain of ``rows`` × ``columns``, a block (i0, i1, j0, j1) for each thread, and its cost.

    A run executes it ``times`` times, which is more than 1 in a loop.
    """

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
        """True if the threads wait for each other before the call."""
        return self.waits > 0

    @property
    def split(self) -> str:
        """The partition of the call: ``rows/2``, ``columns/4``, or the only thread that computes."""
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
    """Return the first few names, and the number of the others."""
    more = f" +{len(ops) - most}" if len(ops) > most else ""
    return " ".join(ops[:most]) + more


def ops_of(call: Call) -> tuple[str, ...]:
    """Return the names of the ops that a call computes."""
    return tuple(node.op.name if node.op is not None else "copy" for node in call.nodes)


def line_of(call: Call) -> str:
    """Return the source line of the first node of a call that has one."""
    return next((node.where for node in call.nodes if node.where), "")


def _waits(plan: Plan) -> list[int]:
    """Return for each call how many barriers before it a run executes. Unknown trip counts are guessed."""
    waits = [0] * len(plan.calls)

    def walk(begin: int, end: int, regions: Sequence[AnyRegion], first: int, later: int) -> None:
        """Count for regions that run ``first`` times in first iterations of the outer loop, and ``later`` in others."""
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


VARIABLE: Final = target.SWITCH.variable  # the environment variable that selects a target
NAMES: Final = tuple(row.name for row in target.TARGETS)


def in_force() -> Target:
    """Return the target of new programs, by the processor and the switches."""
    return target.in_force()


def runnable() -> tuple[str, ...]:
    """Return the names of the targets that this processor can run, best first."""
    return tuple(row.name for row in target.TARGETS if row.runs_here)


class KernelReport:
    """One kernel, and how often a run calls it."""

    def __init__(self, kernel: Kernel, calls: int) -> None:
        self.kernel = kernel
        self.calls = calls

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def loops(self) -> str:
        """The loop IR."""
        return printer.text(self.kernel)

    @property
    def llvm(self) -> str:
        """The LLVM module, for the target in force."""
        return nest.emit_kernel(self.kernel, target.in_force())

    @property
    def assembly(self) -> str:
        """The assembly of :attr:`llvm`."""
        return build.assembly(self.llvm)

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "calls": self.calls, "loops": printer.as_json(self.kernel)}

    def __str__(self) -> str:
        return self.loops

    def __repr__(self) -> str:
        return f"<kernel {self.name}, called {self.calls} times>"


class KernelsReport(Sequence[KernelReport]):
    """The kernels in the order of their first calls."""

    def __init__(self, calls: Sequence[Call]) -> None:
        times = Counter(call.kernel.name for call in calls)
        kernels = {call.kernel.name: call.kernel for call in calls}
        self._reports = [KernelReport(kernel, times[name]) for name, kernel in kernels.items()]

    def find(self, name: str) -> KernelReport:
        """Return the kernel called ``name``, or the only one with that prefix."""
        matches = [r for r in self._reports if r.name == name] or [r for r in self._reports if r.name.startswith(name)]
        if len(matches) != 1:
            how = "No" if not matches else "More than one"
            raise ValueError(f"{how} kernel is called '{name}'; there are {', '.join(r.name for r in self._reports)}.")
        return matches[0]

    def as_json(self) -> list[dict[str, Any]]:
        return [report.as_json() for report in self._reports]

    def __getitem__(self, index: Any) -> Any:
        return self._reports[index]

    def __len__(self) -> int:
        return len(self._reports)

    def __iter__(self) -> Iterator[KernelReport]:
        return iter(self._reports)

    def __str__(self) -> str:
        rows = [(r.name, str(r.calls), _buffers(r.kernel)) for r in self._reports]
        return tables.table(("kernel", "calls", "buffers"), rows, left=("kernel", "buffers"))


def _buffers(kernel: Kernel) -> str:
    return ", ".join(f"{b.mode} {b.dtype.name}" for b in kernel.buffers)
