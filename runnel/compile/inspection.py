"""From a compiled function to the reports on its programs."""

from __future__ import annotations

from typing import Protocol

from runnel.compiler.executable.program import Program
from runnel.compiler.recipe import Recipe
from runnel.inspection.inspection import Inspection


class Compiled(Protocol):
    """A program with what is known of how it was made."""

    @property
    def program(self) -> Program: ...

    @property
    def hoisted_constants(self) -> Program | None: ...

    @property
    def recipe(self) -> Recipe: ...


def inspected(native: Compiled) -> Inspection:
    """The reports on a program. They keep it, but not the Variables it is bound to, nor their memory."""
    recipe = native.recipe
    return Inspection(
        native.program, recipe.graph, recipe.after_passes, lambda: recipe.planned.fitted, native.hoisted_constants
    )
