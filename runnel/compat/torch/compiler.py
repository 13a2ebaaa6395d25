"""What is said to the compiler."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.scripting import (
        disable,
        is_compiling,
        is_compiling as is_dynamo_compiling,
        never_scripting as is_exporting,
        without_compiler as allow_in_graph,
        without_compiler as assume_constant_result,
        without_compiler as cudagraph_mark_step_begin,
        without_compiler as list_backends,
        without_compiler as reset,
        without_compiler as set_stance,
        without_compiler as wrap_numpy,
    )

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
    "wrap_numpy",
]
_LATE = {
    "allow_in_graph": "runnel.compat.functions.scripting:without_compiler",
    "assume_constant_result": "runnel.compat.functions.scripting:without_compiler",
    "cudagraph_mark_step_begin": "runnel.compat.functions.scripting:without_compiler",
    "disable": "runnel.compat.functions.scripting:disable",
    "is_compiling": "runnel.compat.functions.scripting:is_compiling",
    "is_dynamo_compiling": "runnel.compat.functions.scripting:is_compiling",
    "is_exporting": "runnel.compat.functions.scripting:never_scripting",
    "list_backends": "runnel.compat.functions.scripting:without_compiler",
    "reset": "runnel.compat.functions.scripting:without_compiler",
    "set_stance": "runnel.compat.functions.scripting:without_compiler",
    "wrap_numpy": "runnel.compat.functions.scripting:without_compiler",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
