"""The stages of one program, from the traced graph to the machine code, computed lazily.

:func:`announce` prints reports for each new program on standard error, by the level of ``RUNNEL_DEBUG``. Level 2 prints
the graph after each pass, 3 also the calls and the memory, 4 the loops of each kernel, and 5 their LLVM text.
Retraces and compilations, which level 1 prints, are printed elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from runnel.compiler.entry import CompiledGraph
from runnel.compiler.plan_ir.plan import Plan
from runnel.compiler.program import Program
from runnel.compiler.rematerialization import Fitted
from runnel.core import html, switches
from runnel.core.caching import lazy
from runnel.graph import printer
from runnel.graph.graph import Graph
from runnel.inspection import measure, tables
from runnel.inspection.memory import MemoryReport
from runnel.inspection.schedule import KernelsReport, Schedule

_DRAWN: Final = 150  # the largest number of nodes that notebooks show as a picture


class PrintedGraph(Graph):
    """A graph whose ``str()`` has one line for each node."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.inputs, graph.outputs, graph.updates, graph.name, graph.effects)

    def as_json(self) -> dict[str, Any]:
        return printer.as_json(self)

    def __str__(self) -> str:
        return printer.text(self)

    def to_svg(self) -> str:
        """Return a picture in SVG, with the first nodes at the top."""
        return printer.to_svg(self)

    def _repr_html_(self) -> str:
        drawing = self.to_svg() if len(self.values) <= _DRAWN else ""
        return html.folded(repr(self), html.pre(str(self)) + drawing)

    def __repr__(self) -> str:
        return f"<graph '{self.name}' of {len(self.values)} nodes>"


Passes = Callable[[], list[tuple[str, Graph]]]


class Inspection:
    """The stages of one program. ``print(inspection)`` prints an overview; each part can be printed, too.

    Attributes:
        program: the compiled program.
        plan: the plan of the program.
        hoisted_constants: the program for inputs that depend only on Variables, which runs after these have changed;
            None if there are no such inputs.
    """

    def __init__(
        self,
        program: Program,
        traced: Graph | None = None,
        passes: Passes | None = None,
        fitted: Callable[[], Fitted] | None = None,
        hoisted_constants: Program | None = None,
    ) -> None:
        self.program = program
        self.hoisted_constants = None if hoisted_constants is None else Inspection(hoisted_constants)
        self._traced = traced
        self._passes = passes
        self._fitted = fitted

    @property
    def name(self) -> str:
        return self.plan.graph.name

    @property
    def plan(self) -> Plan:
        return self.program.plan

    @property
    def graph(self) -> PrintedGraph:
        """The graph as it was traced."""
        return PrintedGraph(self._traced if self._traced is not None else self.plan.graph)

    @property
    def optimized(self) -> PrintedGraph:
        """The graph after all passes."""
        return PrintedGraph(self.plan.graph)

    @lazy
    def passes(self) -> list[tuple[str, PrintedGraph]]:
        """Return the name and the result of each pass."""
        return [(name, PrintedGraph(graph)) for name, graph in (self._passes() if self._passes is not None else ())]

    @lazy
    def kernels(self) -> KernelsReport:
        return KernelsReport(self.plan.calls)

    @lazy
    def schedule(self) -> Schedule:
        return Schedule(self.plan)

    @property
    def memory(self) -> MemoryReport:
        return MemoryReport(self.plan, self.program, None if self._fitted is None else self._fitted())

    def llvm(self, name: str) -> str:
        """Return the LLVM text of the kernel called ``name``, or the only one with that prefix."""
        return self.kernels.find(name).llvm

    def assembly(self, name: str) -> str:
        """Return the assembly of the kernel called ``name``, or the only one with that prefix."""
        return self.kernels.find(name).assembly

    def measure(self, seconds: float = 0.01) -> measure.Measurement:
        """Time each call and the whole program, for about ``seconds`` each, on separate memory with synthetic data."""
        return measure.measure(
            self.program, seconds, None if self.hoisted_constants is None else self.hoisted_constants.program
        )

    def as_json(self) -> dict[str, Any]:
        """Return all but LLVM text, assembly and measurements, as dicts, lists, strings and numbers."""
        return {
            "name": self.name,
            "threads": self.plan.threads,
            "graph": self.graph.as_json(),
            "passes": [{"name": name, "graph": graph.as_json()} for name, graph in self.passes],
            "kernels": self.kernels.as_json(),
            "schedule": self.schedule.as_json(),
            "memory": self.memory.as_json(),
            "hoisted_constants": None if self.hoisted_constants is None else self.hoisted_constants.as_json(),
        }

    def __str__(self) -> str:
        schedule, threads = self.schedule, self.plan.threads
        summary = (
            f"program {self.name}: {len(self.optimized.values)} nodes (traced {len(self.graph.values)}), "
            f"{len(schedule)} calls of {len(self.kernels)} kernels, {threads} thread{'s' if threads > 1 else ''}, "
            f"{schedule.barriers} barriers, {tables.count(schedule.flops)} flops, "
            f"predicted {tables.microseconds(schedule.seconds)} µs on one thread\n"
        )
        text = f"{summary}\n{schedule}\n\n{self.memory}"
        if self.hoisted_constants is None:
            return text
        before = tables.indented(str(self.hoisted_constants))
        return f"{text}\n\nbefore it, when Variables have changed:\n\n{before}".rstrip()

    def _repr_html_(self) -> str:
        graph = self.optimized._repr_html_()
        return html.folded(repr(self), html.pre(str(self)) + html.folded("its graph", graph, is_open=False))

    def __repr__(self) -> str:
        return f"<inspection of program '{self.name}': {len(self.plan.calls)} calls>"


def inspected(compiled: CompiledGraph) -> Inspection:
    """Return the reports on a compiled graph. They keep its program alive, but not its Variables."""
    program, hoisted_constants, _, recipe = compiled
    return Inspection(program, recipe.graph, recipe.after_passes, lambda: recipe.planned.fitted, hoisted_constants)


def announce(inspection: Inspection) -> None:
    """Print the reports of the switch's level for a new program."""
    level = switches.debug.value
    for rung, show in _RUNGS.items():
        if level >= rung:
            for line in show(inspection):
                print(line, file=sys.stderr)


def _print_passes(inspection: Inspection) -> Iterator[str]:
    before = str(inspection.graph)
    yield _section(inspection, "as traced", before)
    for name, graph in inspection.passes:
        after = str(graph)
        yield _section(inspection, f"after {name}", after if after != before else "unchanged\n")
        before = after


def _print_calls(inspection: Inspection) -> Iterator[str]:
    yield _section(inspection, "calls", str(inspection.schedule))
    yield _section(inspection, "memory", str(inspection.memory))


def _print_loops(inspection: Inspection) -> Iterator[str]:
    for kernel in inspection.kernels:
        yield _section(inspection, f"loops, calls: {kernel.calls}", kernel.loops)


def _print_llvm(inspection: Inspection) -> Iterator[str]:
    for kernel in inspection.kernels:
        yield _section(inspection, f"LLVM text of {kernel.name}", kernel.llvm)


def _section(inspection: Inspection, what: str, text: str) -> str:
    return f"runnel: {inspection.name}, {what}:\n{tables.indented(text)}".rstrip()


_RUNGS: dict[int, Callable[[Inspection], Iterator[str]]] = {
    2: _print_passes,
    3: _print_calls,
    4: _print_loops,
    5: _print_llvm,
}
