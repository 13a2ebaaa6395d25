"""The memory of a program: what was planned, what was allocated, and who holds the arena when it is fullest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from runnel.core.avals import Shape
from runnel.graph.graph import Node
from runnel.inspection import tables
from runnel.inspection.schedule import line_of
from runnel.lowering.memory import Life
from runnel.lowering.places import Call, Place
from runnel.lowering.plan import Plan
from runnel.lowering.program import Program


@dataclass(frozen=True, slots=True)
class Holder:
    """A value in the arena, from the call that makes it (``first``) to the ``last`` that reads it."""

    op: str
    shape: Shape
    dtype: str
    bytes: int
    offset: int
    first: int
    last: int
    where: str


class MemoryReport:
    """Bytes by kind. ``peak`` is the arena's size, which no layout could bring below ``lower_bound``; ``measured`` what
    the program has allocated for it."""

    def __init__(self, plan: Plan, program: Program) -> None:
        self._plan = plan
        self.peak = plan.arena.peak
        self.lower_bound = plan.arena.lower_bound
        self.peak_call = plan.arena.peak_call
        self.inputs = _total(plan.inputs)
        self.variables = _total(plan.variables.values())
        self.outputs = _total(plan.outputs)
        self.constants = max((p.offset + p.nbytes for p in plan.constants), default=0)
        self.measured = program.arena.nbytes
        self.measured_constants = program.constants.nbytes

    @property
    def total(self) -> int:
        """All bytes a run touches, by plan."""
        return self.peak + self.constants + self.inputs + self.variables + self.outputs

    @property
    def alive(self) -> list[Holder]:
        """Who is alive when the arena is fullest, largest first."""
        return [_holder(life, self._plan.calls) for life in self._plan.arena.alive_at(self.peak_call)]

    @property
    def holders(self) -> list[Holder]:
        """Every value of the arena, in the order of their making."""
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


def _total(places: Iterable[Place]) -> int:
    return sum(place.nbytes for place in places)


def _holder(life: Life, calls: list[Call]) -> Holder:
    place, call = life.place, calls[life.first]
    node = _value_of(place, call)
    shape = node.aval.shape if node is not None else (place.size,)
    where = node.where if node is not None and node.where else line_of(call)
    return Holder(
        place.label, shape, place.dtype.name, life.nbytes, place.offset, life.first, life.last, where
    )  # fmt: skip


def _value_of(place: Place, call: Call) -> Node | None:
    """The node that a place holds: one of its maker's, with its size, its dtype and preferably its name."""
    fitting = [n for n in call.nodes if n.aval.size == place.size and n.aval.dtype is place.dtype]
    named = [n for n in fitting if n.op is not None and n.op.name == place.label]
    for found in (named, fitting):
        if found:
            return found[-1]
    return None
