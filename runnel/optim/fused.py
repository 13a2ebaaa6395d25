"""An optimizer's step as one program, for eager training: many small ops become one call that updates in place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from runnel.codegen import context
from runnel.compile.binding import Binding
from runnel.core.bounded import drop_oldest
from runnel.graph.node import InputKind
from runnel.lowering.plan import Planner
from runnel.lowering.program import Program
from runnel.passes import pipeline
from runnel.runtime.layout import STALE
from runnel.tensor import tensor as tensors
from runnel.tensor.holding import HOLDS, protect
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracing import Trace, activate
from runnel.tensor.variable import CLOCK, Variable

Gradients = Mapping[Variable, Tensor]
_KEPT = 16  # programs of one optimizer


class StepProgram:
    """What ``update`` does with Variables, their gradients and run-time numbers, traced once."""

    def __init__(self, update: Callable[[], None], gradients: Gradients, name: str) -> None:
        trace = Trace(tensors.serial_now())
        self._parameters = list(gradients)
        for p in self._parameters:
            node = trace.input(gradients[p].aval, InputKind.ARGUMENT, f"{p.name}.grad")
            trace.gradients[p] = tensors.symbolic(node)
        with activate(trace):
            update()
        updates = {trace.variables[v]: tensors.node_of(trace.values[v], trace) for v in trace.written}
        graph, _ = pipeline.run(trace.graph([], updates, name))
        self._getters = [getter for getter, _ in trace.scalars]
        self.program = Program(Planner(graph, context.current().threads).plan())
        numbers = range(len(self._parameters), len(self._parameters) + len(self._getters))
        variables = list(trace.variables)
        written = [i for i, v in enumerate(variables) if v in trace.written]
        self.binding = Binding(self.program, lambda: variables, written, numbers.stop, numbers)

    def run(self, gradients: Gradients) -> None:
        """Update everything in place. The caller gives a gradient for each Variable the program was made for."""
        dense = [gradients[p].contiguous() for p in self._parameters]
        frame = self.binding.pool.take()
        for i, getter in enumerate(self._getters, len(dense)):
            frame.floats[i] = getter()
        for slot, gradient in enumerate(dense, 2):
            frame.bases[slot] = gradient.address
        HOLDS.writing += 1
        if HOLDS.now:
            protect(self.binding.written_ids)
        try:
            status = frame.run()
            if status == STALE:
                status = self.binding.resume(frame)
        finally:  # Ctrl-C may come when the run is over
            CLOCK.writes += 1
            HOLDS.writing -= 1
        self.binding.pool.give(frame)
        if status:
            raise self.program.error(status)


class StepPrograms:
    """The programs of one optimizer, by what they depend on; the oldest goes when there are too many.

    It has no ``__dict__``, so compiled functions that reach the optimizer do not watch it: it changes no result.
    """

    __slots__ = ("_programs",)

    def __init__(self) -> None:
        self._programs: dict[Hashable, StepProgram] = {}

    @context.settled
    def get(self, key: Hashable, update: Callable[[], None], gradients: Gradients, name: str) -> StepProgram:
        """The program for ``key``, made when it is new."""
        key = (key, context.current())
        found = self._programs.get(key)
        if found is None:
            found = StepProgram(update, gradients, name)
            self._programs[key] = found
            drop_oldest(self._programs, _KEPT)
        return found
