"""Function transforms: gradients of any order, custom derivatives, checkpointing, vectorizing maps and loops."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.transforms import control_batching as control_batching, control_forward as control_forward
from runnel.transforms.checkpoint import checkpoint
from runnel.transforms.cond import cond
from runnel.transforms.custom import custom_vjp
from runnel.transforms.gradients import grad, value_and_grad, vjp
from runnel.transforms.jacobians import hessian, jacfwd, jacrev
from runnel.transforms.jvp import jvp
from runnel.transforms.linearize import linearize
from runnel.transforms.scan import scan
from runnel.transforms.vmap import vmap
from runnel.transforms.while_loop import while_loop

__all__ = [
    "checkpoint",
    "cond",
    "custom_vjp",
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "scan",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
