"""Settings of the compiler that have no effect."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.scripting import (
        config,
        disable,
        is_compiling,
        without_compiler as graph_break,
        without_compiler as mark_dynamic,
        without_compiler as mark_static,
        without_compiler as reset,
    )

__all__ = ["config", "disable", "graph_break", "is_compiling", "mark_dynamic", "mark_static", "reset"]
_LATE = {
    "config": "runnel.compat.functions.scripting:config",
    "disable": "runnel.compat.functions.scripting:disable",
    "graph_break": "runnel.compat.functions.scripting:without_compiler",
    "is_compiling": "runnel.compat.functions.scripting:is_compiling",
    "mark_dynamic": "runnel.compat.functions.scripting:without_compiler",
    "mark_static": "runnel.compat.functions.scripting:without_compiler",
    "reset": "runnel.compat.functions.scripting:without_compiler",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
