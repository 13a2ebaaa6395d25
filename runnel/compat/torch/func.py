"""Functions on functions."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.transforming import grad_and_value, vmap
    from runnel.nn.rare.functional_calls import functional_call, stack_module_state

__all__ = ["functional_call", "grad_and_value", "stack_module_state", "vmap"]
_LATE = {
    "functional_call": "runnel.nn.rare.functional_calls:functional_call",
    "grad_and_value": "runnel.compat.functions.transforming:grad_and_value",
    "stack_module_state": "runnel.nn.rare.functional_calls:stack_module_state",
    "vmap": "runnel.compat.functions.transforming:vmap",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel",))
del TYPE_CHECKING, public
