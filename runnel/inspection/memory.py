"""Reports on the memory of a program: planned and allocated bytes, and the values alive at the arena's peak."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.compiler.plan_ir.calls import Allocation, Call
from runnel.compiler.plan_ir.plan import Life, Plan
from runnel.compiler.program import Program
from runnel.compiler.rematerialization import Fitted, Recomputed, counted
from runnel.core.avals import Shape
from runnel.core.records import asdict, record
from runnel.graph.node import Value
from runnel.inspection import tables
from runnel.inspection.schedule import line_of


@record
class Holder:
    """A value in the arena, from the ``first`` call, which computes it, to the ``last`` call that reads it."""

    op: str
    shape: Shape
    dtype: str
    bytes: int
    offset: int
    first: int
    last: int
    where: str


@record
class Repeated:
    """A value that is recomputed: the bytes that this frees, and the seconds that it takes."""

    op: str
    shape: Shape
    dtype: str
    bytes: int
    seconds: float
    where: str


class MemoryReport:
    """The bytes of a program by kind.

    Attributes:
        peak: the size of the arena.
        lower_bound: a lower bound of the arena's size for every layout.
        measured: the bytes that are allocated for the arena.
        counted: the bytes that a ``budget`` limits: arena and outputs.
        recomputed: the values that are recomputed to meet the budget.
        extra_seconds: the predicted time of recomputing them on one thread.
    """

    def __init__(self, plan: Plan, program: Program, fitted: Fitted | None = None) -> None:
        self._plan = plan
        self.budget = fitted.budget if fitted is not None else None
        self.counted = counted(plan)
        self.extra_seconds = fitted.extra_seconds if fitted is not None else 0.0
        self.recomputed = [_repeated(r) for r in fitted.recomputed] if fitted is not None else []
        self.peak = plan.arena.peak
        self.lower_bound = plan.arena.lower_bound
        self.peak_call = plan.arena.peak_call
        self.inputs = _total(plan.inputs)
        self.variables = _total(plan.variables.values())
        self.outputs = _total(plan.outputs)
        self.constants = max((p.offset + p.nbytes for p in plan.constants), default=0)
        self.measured = program.arena_bytes
        self.measured_constants = program.constants.nbytes

    @property
    def total(self) -> int:
        """All bytes of a run, as planned."""
        return self.peak + self.constants + self.inputs + self.variables + self.outputs

    @property
    def alive(self) -> list[Holder]:
        """The values alive at the arena's peak, largest first."""
        return [_holder(life, self._plan.calls) for life in self._plan.arena.alive_at(self.peak_call)]

    @property
    def holders(self) -> list[Holder]:
        """Every value of the arena, in the order of computation."""
        return [_holder(life, self._plan.calls) for life in sorted(self._plan.arena.lives, key=lambda x: x.first)]

    def as_json(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "lower_bound": self.lower_bound,
            "measured": self.measured,
            "inputs": self.inputs,
            "variables": self.variables,
            "outputs": self.outputs,
            "constants": self.constants,
            "total": self.total,
            "counted": self.counted,
            "budget": self.budget,
            "extra_seconds": self.extra_seconds,
            "recomputed": [asdict(r) for r in self.recomputed],
            "peak_call": self.peak_call,
            "alive": [asdict(holder) for holder in self.alive],
        }

    def __str__(self) -> str:
        kinds = [
            ("arena", self.peak, f"measured {tables.size(self.measured)}, at least {tables.size(self.lower_bound)}"),
            ("variables", self.variables, ""),
            ("inputs", self.inputs, ""),
            ("outputs", self.outputs, ""),
            ("constants", self.constants, ""),
            ("total", self.total, ""),
        ]
        text = tables.table(("memory", "bytes", ""), [(k, tables.size(n), t) for k, n, t in kinds], left=("memory", ""))
        if self.budget is not None:
            text += f"\n\nbudget {tables.size(self.budget)}: arena and outputs are {tables.size(self.counted)}"
        if self.recomputed:
            text += f"\ncomputed again, for {tables.microseconds(self.extra_seconds)} µs more by prediction:\n"
            text += self._recomputed()
        alive = self.alive
        if not alive:
            return text
        rows = [
            (
                h.op, f"{h.dtype}[{','.join(map(str, h.shape))}]", tables.size(h.bytes), f"{h.first}..{h.last}",
                tables.line(h.where),
            )
            for h in alive
        ]  # fmt: skip
        heads = ("alive", "shape", "bytes", "calls", "line")
        who = tables.table(heads, rows, left=("alive", "shape", "line"))
        return f"{text}\n\nat the peak, call {self.peak_call}:\n{who}"

    def _recomputed(self) -> str:
        rows = [
            (
                r.op, f"{r.dtype}[{','.join(map(str, r.shape))}]", tables.size(r.bytes), tables.microseconds(r.seconds),
                tables.line(r.where),
            )
            for r in self.recomputed
        ]  # fmt: skip
        return tables.table(("again", "shape", "bytes", "µs", "line"), rows, left=("again", "shape", "line"))


def _repeated(recomputed: Recomputed) -> Repeated:
    node = recomputed.node
    name = node.op.name if node.op is not None else "value"
    return Repeated(
        name, node.aval.shape, node.aval.dtype.name, recomputed.nbytes, recomputed.seconds, node.where
    )  # fmt: skip


def _total(allocations: Iterable[Allocation]) -> int:
    return sum(allocation.nbytes for allocation in allocations)


def _holder(life: Life, calls: list[Call]) -> Holder:
    allocation, call = life.allocation, calls[life.first]
    node = _value_of(allocation, call)
    shape = node.aval.shape if node is not None else (allocation.size,)
    where = node.where if node is not None and node.where else line_of(call)
    return Holder(
        allocation.label, shape, allocation.dtype.name, life.nbytes, allocation.offset, life.first, life.last, where
    )  # fmt: skip


def _value_of(allocation: Allocation, call: Call) -> Value | None:
    """Return the node of ``call`` that computes a place: one of its size and dtype, preferably with its name."""
    fitting = [n for n in call.nodes if n.aval.size == allocation.size and n.aval.dtype is allocation.dtype]
    named = [n for n in fitting if n.op is not None and n.op.name == allocation.label]
    for nodes in (named, fitting):
        if nodes:
            return nodes[-1]
    return None
