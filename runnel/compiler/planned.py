"""The plan of a program: everything about it but its memory addresses and machine code."""

from __future__ import annotations

from runnel.compiler.kernels.allocations import Allocation, Call
from runnel.compiler.kernels.bounds import Bounded
from runnel.compiler.memory.arena import ArenaPlan
from runnel.compiler.schedule.loop_regions import AnyRegion
from runnel.compiler.schedule.partition import Block
from runnel.core.records import field, record
from runnel.graph.graph import Graph
from runnel.graph.node import Value


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
