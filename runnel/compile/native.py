"""From a traced graph to machine code, bound to the memory of the Variables it uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from runnel.backends import base, context
from runnel.backends.context import CompileContext
from runnel.compile import disk_cache
from runnel.compile.binding import Binding
from runnel.compile.capture import Capture, InputOrigin
from runnel.compile.hoisted import split
from runnel.compiler.executable.program import Program
from runnel.compiler.executable.serialized import command_buffer
from runnel.compiler.passes import pipeline
from runnel.compiler.plan import Plan, Planner
from runnel.compiler.schedule.rematerialisation import Fitted, fit
from runnel.core.dtypes import from_numpy as dtype_of
from runnel.core.lazy import lazy
from runnel.graph.graph import Graph
from runnel.tensor.tensor import Tensor, from_numpy


class Planned(NamedTuple):
    """What follows from a traced graph."""

    fitted: Fitted
    preparation: Plan | None


class Recipe:
    """What a program is made from, and how. It knows of no memory, and outlives the program in reports."""

    def __init__(self, graph: Graph, memory_budget: int | None, is_trained: bool = False) -> None:
        self.graph = graph
        self.context = context.current()
        self.memory_budget = memory_budget
        self.is_trained = is_trained  # so that Variables change between calls, and a preparation would do so each time

    @lazy
    def planned(self) -> Planned:
        """Graphs and plans; of a program from the disk they are made when somebody asks."""
        with context.entered(self.context):
            optimized = pipeline.run(self.graph)[0]
            parts = None if self.is_trained else split(optimized)
            fitted = fit(optimized if parts is None else parts.main, self.context.threads, self.memory_budget)
            return Planned(fitted, None if parts is None else Planner(parts.preparation, self.context.threads).plan())

    def programs(self) -> list[Program]:
        """The program, and its preparation if it has one: from the disk, or made and left there."""
        key = disk_cache.key(self.graph, self.context, self.memory_budget, self.is_trained)
        buffers = disk_cache.load(key)
        try:
            programs = [Program(plan, buffer=b) for plan, b in zip(self._plans_when_asked(), buffers, strict=False)]
        except LookupError:  # machine code is not on the disk any more
            programs = []
        if not programs:
            plans = [plan for plan in (self.planned.fitted.plan, self.planned.preparation) if plan is not None]
            always_seals = base.of(self.context.device).always_seals
            buffers = tuple([command_buffer(plan, always_seals=always_seals) for plan in plans])
            programs = [Program(plan, buffer=b) for plan, b in zip(plans, buffers, strict=True)]
            if not any(call.host for plan in plans for call in plan.calls):  # whose functions are this process's own
                disk_cache.save(key, buffers)
        return programs

    def _plans_when_asked(self) -> tuple[Callable[[], Plan], Callable[[], Plan]]:
        return lambda: self.planned.fitted.plan, lambda: cast(Plan, self.planned.preparation)

    def after_passes(self) -> list[tuple[str, Graph]]:
        """Each pass's name with the graph it made."""
        with context.entered(self.context):
            kept = pipeline.run(self.graph, keep=True)[1]
        fitted = self.planned.fitted
        return [*kept, ("memory_budget", fitted.graph)] if fitted.recomputed else kept


class Native:
    """The program of a :class:`Capture`, bound to its Variables."""

    def __init__(self, captured: Capture, memory_budget: int | None = None) -> None:
        self.captured = captured
        self.circumstances = context.current()  # in which it was traced
        with context.entered(context.on(captured.device)):
            self.recipe = Recipe(captured.graph, memory_budget, captured.derivative is not None)
            self.program, *preparations = self.recipe.programs()
        self.preparation = preparations[0] if preparations else None
        sources = captured.sources
        numbers = [i for i, source in enumerate(sources) if source.origin in (InputOrigin.NUMBER, InputOrigin.GETTER)]
        self.binding = Binding(
            self.program, captured.bound_variables, captured.written, len(sources), numbers, self.preparation
        )

    @property
    def context(self) -> CompileContext:
        """What it was compiled for."""
        return self.recipe.context

    @property
    def plan(self) -> Plan:
        return self.program.plan


def dense(value: Any) -> Tensor:
    """A tensor or array as a tensor whose memory a program can read."""
    if not isinstance(value, Tensor):
        value = from_numpy(value, dtype_of(value.dtype), copy=False)
    return value if value.is_dense else from_numpy(value.numpy(), value.dtype, copy=True)
