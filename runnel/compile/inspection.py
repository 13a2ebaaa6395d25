"""From a compiled function to the reports on what runs for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runnel.core.errors import CaptureError
from runnel.inspection.inspection import Inspection

if TYPE_CHECKING:
    from runnel.compile.executable import Executable
    from runnel.compile.native import Native


def inspected(native: Native) -> Inspection:
    """The reports on a program. They keep it, but not the Variables it is bound to, nor their memory."""
    recipe = native.recipe
    return Inspection(
        native.program, recipe.graph, recipe.after_passes, lambda: recipe.planned.fitted, native.preparation
    )


def inspect(executable: Executable) -> Inspection:
    """The reports on what an executable runs; CaptureError where that is plain Python."""
    if executable.native is None:
        raise CaptureError(f"[program] this call runs eagerly, {executable.reason}: no program.")
    return inspected(executable.native)
