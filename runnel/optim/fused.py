"""An optimizer's step as one program, for eager training: many small ops become one call that updates in place."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Mapping

from runnel.codegen import context
from runnel.compile.native import STATE
from runnel.graph.graph import InputKind
from runnel.lowering.plan import Planner
from runnel.lowering.program import Program
from runnel.passes import pipeline
from runnel.tensor import tensor as tensors
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracing import Trace, activate
from runnel.tensor.variable import CLOCK, Pin, Variable

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
        self._variables = list(trace.variables)
        self._getters = [getter for getter, _ in trace.scalars]
        self._numbers = (ctypes.c_double * max(len(self._getters), 1))()
        self.program = Program(Planner(graph, context.current().threads).plan())
        first = 2 + len(self._parameters)
        for i in range(len(self._getters)):
            self.program.bases[first + i] = ctypes.addressof(self._numbers) + 8 * i
        self._bound: list[Pin] = []
        self._bound_at = -1

    def run(self, gradients: Gradients) -> None:
        """Update everything in place. The caller gives a gradient for each Variable the program was made for."""
        dense = [gradients[p].contiguous() for p in self._parameters]
        program = self.program
        with STATE:
            now = CLOCK.now  # before binding: what ticks it meanwhile makes the next step bind again
            if self._bound_at != now:
                program.bind_variables([v.private_address() for v in self._variables])
                self._bound = [v.pin() for v in self._variables]
                self._bound_at = now
            for i, getter in enumerate(self._getters):
                self._numbers[i] = getter()
            for slot, gradient in enumerate(dense, 2):
                program.bases[slot] = gradient.address
            try:
                status = program.run_bound()
            finally:  # Ctrl-C may come when the run is over
                CLOCK.writes += 1
        if status:
            raise program.error(status)


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
            while len(self._programs) >= _KEPT:
                del self._programs[next(iter(self._programs))]
            self._programs[key] = found
        return found
