"""Gradients along the tape, and functions with derivatives of their own."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.kinds import variable as Variable
    from runnel.compat.torch.autograd import functional

__all__ = ["Variable", "functional"]
_LATE = {
    "Variable": "runnel.compat.functions.kinds:variable",
    "functional": "runnel.compat.torch.autograd:functional",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.autograd", "runnel"))
del TYPE_CHECKING, public
