"""Jacobians, second derivatives, and products with them."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.derivatives import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
_LATE = {
    "hessian": "runnel.compat.functions.derivatives:hessian",
    "hvp": "runnel.compat.functions.derivatives:hvp",
    "jacobian": "runnel.compat.functions.derivatives:jacobian",
    "jvp": "runnel.compat.functions.derivatives:jvp",
    "vhp": "runnel.compat.functions.derivatives:vhp",
    "vjp": "runnel.compat.functions.derivatives:vjp",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
