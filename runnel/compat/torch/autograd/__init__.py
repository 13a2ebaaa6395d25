"""Gradients along the tape, and functions with derivatives of their own."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.kinds import variable as Variable
    from runnel.compat.torch.autograd import forward_ad, function, functional, grad_mode, graph, profiler

__all__ = ["Variable", "forward_ad", "function", "functional", "grad_mode", "graph", "profiler"]
_LATE = {
    "Variable": "runnel.compat.functions.kinds:variable",
    "forward_ad": "runnel.compat.torch.autograd:forward_ad",
    "function": "runnel.compat.torch.autograd:function",
    "functional": "runnel.compat.torch.autograd:functional",
    "grad_mode": "runnel.compat.torch.autograd:grad_mode",
    "graph": "runnel.compat.torch.autograd:graph",
    "profiler": "runnel.compat.torch.autograd:profiler",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.autograd", "runnel"))
del TYPE_CHECKING, public
