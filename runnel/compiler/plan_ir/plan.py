"""The plan of a program: everything about it except its memory addresses and machine code.

A plan's calls are one list that contains each call of a loop body once. A region, a loop or a branch, is a range of
that list; regions nest. Each access of a call stores the number of elements by which it advances in each iteration of
the enclosing ``Repeat`` regions. A :class:`Section` is a part of a plan under construction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call
from runnel.compiler.plan_ir.cost import Block
from runnel.core.avals import Shape
from runnel.core.errors import AxisError
from runnel.core.records import field, record
from runnel.graph.graph import Graph
from runnel.graph.node import Value

GUESSED = 100  # iterations of a loop whose trip count is known only at run time


@record(frozen=False, eq=False)
class Region:
    """The calls [begin, end) and the regions among them. ``barrier``: whether there is a barrier before the region in
    the first iteration of the loop around it; ``again``: in later ones. ``flag``: the bool that the region reads."""

    begin: int
    end: int
    inner: list[AnyRegion] = field(default_factory=list)
    barrier: bool = False
    again: bool = False
    flag: BufferAccess | None = None

    def moved(self, by: int) -> None:
        """Shift the region by ``by`` calls."""
        self.begin += by
        self.end += by
        for region in self.inner:
            region.moved(by)

    def touched(self) -> Iterator[BufferAccess]:
        """Yield the flags that this region and nested ones read."""
        if self.flag is not None:
            yield self.flag
        for region in self.inner:
            yield from region.touched()


@record(frozen=False, eq=False)
class Repeat(Region):
    """``count`` iterations, at least one, known when the plan is made."""

    count: int = 1


@record(frozen=False, eq=False)
class Conditional(Region):
    """Two parts, the calls [begin, middle) and [middle, end)."""

    middle: int = 0

    def moved(self, by: int) -> None:
        Region.moved(self, by)
        self.middle += by

    def parts(self) -> tuple[list[int | AnyRegion], list[int | AnyRegion]]:
        """Return the calls and outermost regions of each part."""
        items = list(sequence(self.begin, self.end, self.inner))
        first = [i for i in items if (i if isinstance(i, int) else i.begin) < self.middle]
        return first, items[len(first) :]


@record(frozen=False, eq=False)
class While(Conditional):
    """The first part computes the flag; while it is true, the second part runs and then the first one again. There is
    always a barrier before the flag is read."""


@record(frozen=False, eq=False)
class Waves(While):
    """A loop whose windowed calls compute only some rows at each iteration. The flag is three int64: whether there is a
    wave, and the first row and the end of it, of ``rows``; ``waves`` is the expected number of iterations."""

    rows: int = 0
    waves: int = 1


@record(frozen=False, eq=False)
class Branch(Conditional):
    """The first part runs if the flag is true, else the second one."""


AnyRegion = Repeat | While | Waves | Branch


def sequence(begin: int, end: int, regions: Sequence[AnyRegion]) -> Iterator[int | AnyRegion]:
    """Yield the calls and the outermost regions of [begin, end); ``regions`` do not overlap, and none is empty."""
    at = begin
    for region in regions:
        if region.begin < begin or region.end > end:
            continue
        yield from range(at, region.begin)
        yield region
        at = region.end
    yield from range(at, end)


def counts(calls: int, regions: Sequence[AnyRegion]) -> list[tuple[int, ...]]:
    """Return, for each call, the numbers of iterations of the Repeats around it, outermost first."""
    result: list[tuple[int, ...]] = [()] * calls

    def walk(inner: Sequence[AnyRegion]) -> None:
        for region in inner:
            if isinstance(region, Repeat):
                for i in range(region.begin, region.end):
                    result[i] = (*result[i], region.count)
            walk(region.inner)

    walk(regions)
    return result


def is_unbounded(regions: Sequence[AnyRegion]) -> bool:
    """Return whether there is a loop whose number of iterations is not known."""
    return any(isinstance(s, While) or is_unbounded(s.inner) for s in regions)


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


@record
class Interface:
    """The places that a graph's caller binds to memory, and its constants."""

    inputs: list[Allocation]  # of the inputs that are not Variables
    variables: dict[Value, Allocation]
    outputs: list[Allocation]
    output_of: list[int]  # the number of the output place of each result
    constants: list[Allocation]


@record(frozen=False, eq=False)
class BodyPlan:
    """The calls of a body's graph, on placeholder places."""

    section: Section
    interface: Interface


PlanBody = Callable[[Graph, dict[Value, Shape]], BodyPlan]


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
        where = f"; the op was called at {self.node.where}" if self.node.where else ""
        message = self.node.attrs.get("message")
        if message is not None:
            return ValueError(f"{message}{where}. Nothing was changed.")
        return AxisError(
            f"[{name}] an index of shape {self.indices.aval.shape} lies outside [0, {self.extent}){where}. "
            "Nothing was changed."
        )


@record
class Lowered:
    """The calls of a graph, before its arena is planned and they are partitioned."""

    graph: Graph
    section: Section
    interface: Interface
    bounded: list[Bounded]


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
