"""Loops and branches of a plan: which calls are repeated, how often, and which run conditionally.

A plan's calls are one list, with each call of a loop's body once. A region is a range of that list; regions nest. The
accesses of a call have the number of elements by which they advance at each iteration of the ``Repeat`` regions around.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runnel.compiler.kernels.allocations import BufferAccess
from runnel.core.records import field, record

GUESSED = 100  # iterations of a loop whose trip count is known only at run time


@record(frozen=False, eq=False)
class Region:
    """The calls [begin, end) and the regions among them. ``barrier``: whether there is a barrier before the region in
    the first iteration of the loop around it; ``again``: in later ones."""

    begin: int
    end: int
    inner: list[AnyRegion] = field(default_factory=list)
    barrier: bool = False
    again: bool = False

    def moved(self, by: int) -> None:
        """Shift the region by ``by`` calls."""
        self.begin += by
        self.end += by
        for region in self.inner:
            region.moved(by)

    @property
    def flags(self) -> tuple[BufferAccess, ...]:
        """The flags that this region itself reads."""
        return ()

    def touched(self) -> Iterator[BufferAccess]:
        """The flags that this region and nested ones read."""
        yield from self.flags
        for region in self.inner:
            yield from region.touched()


@record(frozen=False, eq=False)
class Repeat(Region):
    """``count`` iterations, at least one, known when the plan is made."""

    count: int = 1


@record(frozen=False, eq=False)
class While(Region):
    """The calls [begin, test) compute ``flag``; while it is true, the calls [test, end) run and then those again. There
    is always a barrier before the flag is read."""

    test: int = 0
    flag: BufferAccess | None = None

    @property
    def flags(self) -> tuple[BufferAccess, ...]:
        return () if self.flag is None else (self.flag,)

    def moved(self, by: int) -> None:
        Region.moved(self, by)
        self.test += by


@record(frozen=False, eq=False)
class Branch(Region):
    """The calls [begin, middle) run if ``flag`` is true, else those of [middle, end)."""

    middle: int = 0
    flag: BufferAccess | None = None

    @property
    def flags(self) -> tuple[BufferAccess, ...]:
        return () if self.flag is None else (self.flag,)

    def moved(self, by: int) -> None:
        Region.moved(self, by)
        self.middle += by


AnyRegion = Repeat | While | Branch


def sequence(begin: int, end: int, regions: Sequence[AnyRegion]) -> Iterator[int | AnyRegion]:
    """The calls and the outermost regions of [begin, end) in order; ``regions`` do not overlap, and none is empty."""
    at = begin
    for region in regions:
        if region.begin < begin or region.end > end:
            continue
        yield from range(at, region.begin)
        yield region
        at = region.end
    yield from range(at, end)


def counts(calls: int, regions: Sequence[AnyRegion]) -> list[tuple[int, ...]]:
    """For each call the numbers of iterations of the Repeats around it, outermost first."""
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
    """Whether there is a loop whose number of iterations is not known."""
    return any(isinstance(s, While) or is_unbounded(s.inner) for s in regions)
