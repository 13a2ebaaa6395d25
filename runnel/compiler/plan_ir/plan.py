"""The plan of a program: everything about it but its memory addresses and machine code."""

from __future__ import annotations

from typing import Final

from runnel.compiler.plan_ir.calls import Allocation, Call
from runnel.compiler.plan_ir.regions import AnyRegion
from runnel.compiler.plan_ir.work import Block
from runnel.core.errors import AxisError
from runnel.core.records import field, record
from runnel.graph.graph import Graph
from runnel.graph.node import Value

ALIGN: Final = 64  # bytes: of offsets, and of the sizes in lifetimes


@record
class Life:
    """The lifetime of a place in the arena, from the first call that writes it to the last that accesses it."""

    allocation: Allocation
    first: int
    last: int

    @property
    def nbytes(self) -> int:
        return -(-max(self.allocation.nbytes, 1) // ALIGN) * ALIGN


@record
class ArenaPlan:
    """The arena has ``peak`` bytes; no layout needs less than ``lower_bound``."""

    lives: tuple[Life, ...]
    peak: int
    lower_bound: int
    peak_call: int

    def alive_at(self, call: int) -> list[Life]:
        """Return the allocations that are alive at a call, largest first."""
        alive = [life for life in self.lives if life.first <= call <= life.last]
        return sorted(alive, key=lambda life: -life.nbytes)


@record
class Bounded:
    """``indices``, read by ``node``, must be in [0, extent) or equal ``allowed``; ``code`` is the program's status if
    one is not."""

    node: Value
    indices: Value
    extent: int
    allowed: int | None
    code: int

    def error(self) -> AxisError | ValueError:
        """Return the error of an index out of range, or of a fact that does not hold."""
        name = self.node.op.name if self.node.op else "?"
        where = f"; the op stands at {self.node.where}" if self.node.where else ""
        message = self.node.attrs.get("message")
        if message is not None:
            return ValueError(f"{message}{where}. Nothing was changed.")
        return AxisError(
            f"[{name}] an index of shape {self.indices.aval.shape} lies outside [0, {self.extent}){where}. "
            "Nothing was changed."
        )


@record(frozen=False, eq=False)
class Plan:
    """Everything about a program but its memory addresses and machine code."""

    graph: Graph
    calls: list[Call]
    blocks: list[list[Block | None]]  # for each call, the block of each thread
    barriers: list[bool]  # whether there is a barrier before each call, in a loop before that of its first iteration
    threads: int
    arena: ArenaPlan
    inputs: list[Allocation]
    variables: dict[Value, Allocation]
    outputs: list[Allocation]
    output_of: list[int]  # the number of the output place of each result
    constants: list[Allocation] = field(default_factory=list)
    bounded: list[Bounded] = field(default_factory=list)  # bounds checks; a status is the code of one of these
    regions: list[AnyRegion] = field(default_factory=list)  # the loops and branches of the calls
    again: list[bool] = field(default_factory=list)  # barriers of a loop's later iterations

    @property
    def slots(self) -> int:
        return 2 + len(self.inputs) + len(self.variables) + len(self.outputs)
