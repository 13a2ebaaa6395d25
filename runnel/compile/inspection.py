"""From a compiled function to the reports on its programs."""

from __future__ import annotations

from runnel.compile.native import Native
from runnel.inspection.inspection import Inspection


def inspected(native: Native) -> Inspection:
    """The reports on a program. They keep it, but not the Variables it is bound to, nor their memory."""
    recipe = native.recipe
    return Inspection(
        native.program, recipe.graph, recipe.after_passes, lambda: recipe.planned.fitted, native.preparation
    )
