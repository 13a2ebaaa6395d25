"""From a traced graph to machine code, bound to the memory of the Variables it uses."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from runnel.codegen import context
from runnel.compile import stored
from runnel.compile.capture import Capture, Origin
from runnel.compile.stationary import split
from runnel.core.dtypes import from_numpy as dtype_of
from runnel.graph.graph import Graph
from runnel.lowering.image import image
from runnel.lowering.plan import Plan, Planner
from runnel.lowering.program import Program
from runnel.lowering.recompute import Fitted, fit
from runnel.passes import pipeline
from runnel.runtime import locks, memory
from runnel.tensor.tensor import Tensor, from_numpy
from runnel.tensor.variable import CLOCK, Pin

STATE: Final = locks.reentrant()  # programs that use Variables run one at a time: one may write what another reads


class Planned(NamedTuple):
    """What follows from a traced graph."""

    fitted: Fitted
    preparation: Plan | None


class Recipe:
    """What a program is made from, and how. It knows of no memory, and outlives the program in reports."""

    def __init__(self, graph: Graph, memory_budget: int | None) -> None:
        self.graph = graph
        self.context = context.current()
        self.memory_budget = memory_budget

    @functools.cached_property
    def planned(self) -> Planned:
        """Graphs and plans; of a program from the disk they are made when somebody asks."""
        with context.entered(self.context):
            optimized = pipeline.run(self.graph)[0]
            parts = split(optimized)
            fitted = fit(optimized if parts is None else parts.main, self.context.threads, self.memory_budget)
            return Planned(fitted, None if parts is None else Planner(parts.preparation, self.context.threads).plan())

    def programs(self) -> list[Program]:
        """The program, and its preparation if it has one: from the disk, or made and left there."""
        key = stored.key(self.graph, self.context, self.memory_budget)
        images = stored.load(key)
        try:
            programs = [Program(plan, image=i) for plan, i in zip(self._plans_when_asked(), images, strict=False)]
        except LookupError:  # machine code is not on the disk any more
            programs = []
        if not programs:
            plans = [plan for plan in (self.planned.fitted.plan, self.planned.preparation) if plan is not None]
            images = tuple([image(plan) for plan in plans])
            programs = [Program(plan, image=i) for plan, i in zip(plans, images, strict=True)]
            stored.save(key, images)
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
    """The program of a :class:`Capture`, with the words that a call writes: bases and run-time floats."""

    def __init__(self, captured: Capture, memory_budget: int | None = None) -> None:
        self.captured = captured
        self.recipe = Recipe(captured.graph, memory_budget)
        self.program, *preparations = self.recipe.programs()
        self.preparation = Preparation(*preparations) if preparations else None
        self.lock: Any = STATE if captured.variables else locks.reentrant()
        self.bases = self.program.bases
        self.floats = (ctypes.c_double * max(len(captured.sources), 1))()
        for i, source in enumerate(captured.sources):
            if source.origin in (Origin.FLOAT, Origin.GETTER):
                self.bases[2 + i] = ctypes.addressof(self.floats) + 8 * i
        if self.preparation is not None:
            first = 2 + len(captured.sources)
            for i, storage in enumerate(self.preparation.storages):
                self.bases[first + i] = storage.address
        self._bound: list[Pin] = []  # keeps alive the memory that the program may read until it is bound anew

    @property
    def plan(self) -> Plan:
        return self.program.plan

    def bind(self) -> int:
        """Bind the Variables' memory; gives the state clock's reading, up to which the binding is right."""
        while True:
            now = CLOCK.now
            written = self.captured.written
            variables = self.captured.bound_variables()
            for i, variable in enumerate(variables):
                if i in written or not variable._tensor.is_dense:
                    variable.private_address()
            if CLOCK.now == now:
                break
        self._bound = [v.pin() for v in variables]
        addresses = [pin.address for pin in self._bound]
        self.program.bind_variables(addresses)
        if self.preparation is not None:
            self.preparation.program.bind_variables(addresses)
        return now


class Preparation:
    """What a program needs of Variables that it does not change, computed when Variables have changed."""

    def __init__(self, program: Program) -> None:
        self.program = program
        made = [memory.allocate(nbytes) for nbytes in program.outputs]
        self._addresses = [storage.address for storage in made]
        self.storages = [made[i] for i in program.output_of]
        self.prepared_at = -1  # the reading of CLOCK.writes

    def prepare(self) -> None:
        """Compute anew. The caller holds the program's lock."""
        now = CLOCK.writes
        self.program.run((), self._addresses)
        self.prepared_at = now


def dense(value: Any) -> Tensor:
    """A tensor or array as a tensor whose memory a program can read."""
    if not isinstance(value, Tensor):
        value = from_numpy(value, dtype_of(value.dtype), copy=False)
    return value if value.is_dense else from_numpy(value.numpy(), value.dtype, copy=True)
