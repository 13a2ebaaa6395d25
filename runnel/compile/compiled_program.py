"""From a traced graph to machine code bound to the memory of its Variables."""

from __future__ import annotations

from typing import Final

from runnel.backends import context
from runnel.backends.context import CompileContext
from runnel.compile.capture import Capture, InputOrigin
from runnel.compiler.entry import compile_graph
from runnel.compiler.options import NO_CHOICES, Bindings, Choices
from runnel.compiler.plan import Plan
from runnel.tensor.binding import Binding


class CompiledProgram:
    """The program of a :class:`Capture`, bound to its Variables."""

    def __init__(self, captured: Capture, choices: Choices = NO_CHOICES) -> None:
        self.captured = captured
        self.circumstances = context.current()  # in which it was traced
        bindings = Bindings(are_trained=captured.derivative is not None)
        compiled = compile_graph(captured.graph, bindings, context.on(captured.device), choices.stored())
        self.compiled: Final = compiled
        self.program, self.hoisted_constants, self.recipe = (
            compiled.program,
            compiled.hoisted_constants,
            compiled.recipe,
        )
        sources = captured.sources
        numbers = [i for i, source in enumerate(sources) if source.origin in (InputOrigin.NUMBER, InputOrigin.GETTER)]
        self.binding = Binding(
            self.program, captured.bound_variables, captured.written, len(sources), numbers, self.hoisted_constants
        )

    @property
    def context(self) -> CompileContext:
        """What it was compiled for."""
        return self.recipe.context

    @property
    def plan(self) -> Plan:
        return self.program.plan
