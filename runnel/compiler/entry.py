"""The only entrance to the compiler: from a graph to a program that runs.

Every graph is compiled here: compiled functions, forward and backward programs of derivatives, optimizer steps, single
ops of eager code, and graphs built by hand. They differ only in the arguments.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple

from runnel.backends import context as contexts
from runnel.backends.base import CommandBuffer
from runnel.backends.context import CompileContext
from runnel.compiler import disk_cache
from runnel.compiler.memory.placement import place
from runnel.compiler.options import Bindings, Options
from runnel.compiler.passes.hoisted import split
from runnel.compiler.passes.permutes import in_any_order
from runnel.compiler.passes.pipeline import USUAL
from runnel.compiler.plan import lowered, plan_graph
from runnel.compiler.plan_ir.plan import Plan
from runnel.compiler.program import Program
from runnel.compiler.rematerialization import Fitted, fit
from runnel.compiler.template import Template
from runnel.core.avals import Shape, row_major
from runnel.core.caching import lazy
from runnel.core.errors import ArgumentError
from runnel.graph.graph import Graph


class Planned(NamedTuple):
    """The plans of a graph's program and of its hoisted constants, and the strides of its results."""

    fitted: Fitted
    hoisted_constants: Plan | None
    strides: tuple[Shape, ...]

    @property
    def plans(self) -> list[Plan]:
        return [self.fitted.plan] if self.hoisted_constants is None else [self.fitted.plan, self.hoisted_constants]


class Programs(NamedTuple):
    """The program of a graph, the program of its hoisted constants if it has some, and the strides of its results."""

    program: Program
    hoisted_constants: Program | None
    strides: tuple[Shape, ...]


_NONE_OWN: Final = -1  # bytes: a program with lengths owns no arena, because there may be hundreds and few run at once


class Recipe:
    """The inputs of a compilation. It refers to no memory, and outlives the program in reports."""

    def __init__(self, graph: Graph, bindings: Bindings, context: CompileContext, options: Options) -> None:
        if options.memory_budget is not None and bindings.strides:
            raise ArgumentError(
                f"[compile_graph] '{graph.name}' has a memory budget, and arguments that are not dense: make them so."
            )
        self.graph = graph
        self.bindings = bindings
        self.context = context
        self.options = options
        self.template: Template | None = None  # of a graph with lengths, once it is planned

    @lazy
    def planned(self) -> Planned:
        """Graphs and plans; for a program loaded from disk they are built on demand."""
        with contexts.entered(self.context):
            return self._plan()

    def programs(self) -> Programs:
        """Return the programs, loaded from disk or built and saved there, in the context of the recipe."""
        options = self.options
        is_usual = options.passes == USUAL and options.memory_planner is None
        if not (options.is_stored and is_usual) or options.any_order or self.bindings.strides or self.bindings.lengths:
            return self._build(self._planned_now())
        key = disk_cache.key(self.graph, self.context, self.options.memory_budget, self.bindings.are_trained)
        stored = self._loaded(disk_cache.load(key))
        if stored is not None:
            return stored
        planned = self._planned_now()
        programs = self._build(planned)
        calls = [call for plan in planned.plans for call in plan.calls]
        if not any(call.host for call in calls):  # host functions exist in this process only
            disk_cache.save(key, [program.buffer for program in programs[:2] if program is not None])
        return programs

    def after_passes(self) -> list[tuple[str, Graph]]:
        """Return each pass's name with its result."""
        with contexts.entered(self.context):
            graphs = self.options.passes.run(self.graph, keep=True)[1]
        fitted = self.planned.fitted
        return [*graphs, ("memory_budget", fitted.graph)] if fitted.recomputed else graphs

    def _plan(self) -> Planned:
        threads, strides, budget = self.context.threads, self.bindings.strides, self.options.memory_budget
        memory_planner = self.options.memory_planner
        graph = self.options.passes.run(self.graph)[0]
        orders = _dense(graph)
        if self.options.any_order:
            graph, orders = in_any_order(graph)
        parts = None if self.bindings.are_trained else split(graph)
        main = graph if parts is None else parts.main
        if self.bindings.lengths is not None:
            self.template = Template(lowered(place(main)), self.bindings.lengths)
            plan = self.template.planned(self.bindings.lengths.values, threads)
            fitted = Fitted(main, plan, None)
        elif budget is None:
            fitted = Fitted(main, plan_graph(main, threads, dict(strides), memory_planner=memory_planner), None)
        else:
            fitted = fit(main, threads, budget, memory_planner)
        hoisted_constants = (
            None if parts is None else plan_graph(parts.hoisted_constants, threads, memory_planner=memory_planner)
        )
        return Planned(fitted, hoisted_constants, orders)

    def _planned_now(self) -> Planned:
        return self.planned if self.options.keeps_plan else self._plan()

    def _plan_again(self, number: int) -> Plan:
        """Return the plan of the program, or of its hoisted constants."""
        with contexts.entered(self.context):
            return self._planned_now().plans[number]

    def _build(self, planned: Planned) -> Programs:
        keeps, own = self.options.keeps_plan, self.options.own_arena
        owned = own if self.template is None else _NONE_OWN
        programs = [
            Program(plan if keeps else partial(self._plan_again, i), built_plan=plan, own_arena=own if i else owned)
            for i, plan in enumerate(planned.plans)
        ]
        return Programs(programs[0], programs[1] if len(programs) > 1 else None, planned.strides)

    def _loaded(self, buffers: tuple[CommandBuffer, ...]) -> Programs | None:
        """Return the programs of these buffers; None if there are none, or if their machine code is no
        longer cached."""
        own = self.options.own_arena
        try:
            programs = [
                Program(partial(self._plan_again, i), buffer=buffer, own_arena=own) for i, buffer in enumerate(buffers)
            ]
        except LookupError:
            return None
        if not programs:
            return None
        return Programs(programs[0], programs[1] if len(programs) > 1 else None, _dense(self.graph))


def _dense(graph: Graph) -> tuple[Shape, ...]:
    return tuple([row_major(x.aval.shape) for x in graph.outputs])


DEFAULTS: Final = Options()


class CompiledGraph(NamedTuple):
    """A graph as a program, for the caller to bind to memory and run.

    ``hoisted_constants`` computes the last inputs of ``program`` from Variables alone, and must run again when these
    have changed; None if there are no such inputs. ``strides``, in elements, describe each result in its memory.
    ``recipe`` can produce the program again, and does not keep it alive.
    """

    program: Program
    hoisted_constants: Program | None
    strides: tuple[Shape, ...]
    recipe: Recipe

    def at(self, values: Sequence[int]) -> CompiledGraph | None:
        """Return the program for other values of the symbols of a graph with lengths; None if a condition does not
        hold."""
        template, circumstances = self.recipe.template, self.recipe.context
        plan = None if template is None else template.plan(values, circumstances.threads)
        if template is None or plan is None:
            return None
        with contexts.entered(circumstances):
            return self._replace(
                program=Program(
                    partial(template.planned, values, circumstances.threads), built_plan=plan, own_arena=_NONE_OWN
                )
            )


def compile_graph(
    graph: Graph, bindings: Bindings, context: CompileContext, options: Options = DEFAULTS
) -> CompiledGraph:
    """Compile ``graph`` to a program.

    Args:
        graph: the graph to compute; ``graph.verifier`` checks graphs of unknown origin.
        bindings: properties of its inputs that are known before it runs.
        context: device, target, threads and everything else the program depends on.
        options: the effort of compilation.

    Raises:
        MemoryBudgetError: the program does not fit into ``options.memory_budget``.
    """
    with contexts.entered(context), uncollected():
        recipe = Recipe(graph, bindings, context, options)
        return CompiledGraph(*recipe.programs(), recipe)


@contextmanager
def uncollected() -> Iterator[None]:
    """Let Python collect no garbage during the block: compilations make many objects that live until their end, and
    collections that look at each of them again take a fifth of the time."""
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()
