"""Parts of a plan: calls with the loops among them, and the plan of a node's body."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runnel.compiler.kernels.allocations import Allocation, Call
from runnel.compiler.schedule.loop_regions import AnyRegion
from runnel.core.avals import Shape
from runnel.core.records import field, record
from runnel.graph.graph import Graph
from runnel.graph.node import Value


@record(frozen=False, eq=False)
class Section:
    """Calls in order and the loops among them."""

    calls: list[Call] = field(default_factory=list)
    regions: list[AnyRegion] = field(default_factory=list)

    def add(self, calls: Sequence[Call]) -> None:
        """Append calls, except empty ones."""
        self.calls += [c for c in calls if c.rows and c.columns]

    def join(self, other: Section) -> None:
        """Append ``other``, with its regions renumbered."""
        for region in other.regions:
            region.moved(len(self.calls))
        self.calls += other.calls
        self.regions += other.regions


@record(frozen=False, eq=False)
class BodyPlan:
    """The calls of a body's graph, on placeholder places."""

    section: Section
    inputs: list[Allocation]  # of the inputs that are not Variables
    variables: dict[Value, Allocation]
    outputs: list[Allocation]
    output_of: list[int]


PlanBody = Callable[[Graph, dict[Value, Shape]], BodyPlan]
