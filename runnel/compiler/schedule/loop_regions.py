"""Loops and branches of a plan: which of its calls are run again, how often, and which only if a flag says so.

A plan's calls stand in one list, each call of a loop's body once. A span is a piece of that list; spans nest. The
accesses of a call say by how many elements they advance at each iteration of the ``Repeat`` spans around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runnel.compiler.kernels.places import Access
from runnel.core.records import field, record

GUESSED = 100  # iterations of a loop whose number the run alone will tell


@record(frozen=False, eq=False)
class Span:
    """The calls [begin, end) and the spans among them. Whether a barrier stands before the span the first time that the
    loop around it comes here (``barrier``), and each later time (``again``)."""

    begin: int
    end: int
    inner: list[AnySpan] = field(default_factory=list)
    barrier: bool = False
    again: bool = False

    def moved(self, by: int) -> None:
        """Stand ``by`` calls further on."""
        self.begin += by
        self.end += by
        for span in self.inner:
            span.moved(by)

    @property
    def flags(self) -> tuple[Access, ...]:
        """What this span itself reads."""
        return ()

    def touched(self) -> Iterator[Access]:
        """What this span and those inside it read to find their way."""
        yield from self.flags
        for span in self.inner:
            yield from span.touched()


@record(frozen=False, eq=False)
class Repeat(Span):
    """``count`` iterations, at least one, known when the plan is made."""

    count: int = 1


@record(frozen=False, eq=False)
class While(Span):
    """The calls [begin, test) make ``flag``; while it is true, the calls [test, end) run and then those again. Before
    the flag is read stands a barrier, always."""

    test: int = 0
    flag: Access | None = None

    @property
    def flags(self) -> tuple[Access, ...]:
        return () if self.flag is None else (self.flag,)

    def moved(self, by: int) -> None:
        Span.moved(self, by)
        self.test += by


@record(frozen=False, eq=False)
class Branch(Span):
    """The calls [begin, middle) run if ``flag`` is true, else those of [middle, end)."""

    middle: int = 0
    flag: Access | None = None

    @property
    def flags(self) -> tuple[Access, ...]:
        return () if self.flag is None else (self.flag,)

    def moved(self, by: int) -> None:
        Span.moved(self, by)
        self.middle += by


AnySpan = Repeat | While | Branch


def sequence(begin: int, end: int, spans: Sequence[AnySpan]) -> Iterator[int | AnySpan]:
    """The calls and the outermost spans of [begin, end) in order; ``spans`` do not overlap, and none is empty."""
    at = begin
    for span in spans:
        if span.begin < begin or span.end > end:
            continue
        yield from range(at, span.begin)
        yield span
        at = span.end
    yield from range(at, end)


def counts(calls: int, spans: Sequence[AnySpan]) -> list[tuple[int, ...]]:
    """For each call the numbers of iterations of the Repeats around it, outermost first."""
    result: list[tuple[int, ...]] = [()] * calls

    def walk(inner: Sequence[AnySpan]) -> None:
        for span in inner:
            if isinstance(span, Repeat):
                for i in range(span.begin, span.end):
                    result[i] = (*result[i], span.count)
            walk(span.inner)

    walk(spans)
    return result


def is_unbounded(spans: Sequence[AnySpan]) -> bool:
    """Whether there is a loop whose number of iterations is not known."""
    return any(isinstance(s, While) or is_unbounded(s.inner) for s in spans)
