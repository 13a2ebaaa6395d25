"""Function transforms: gradients of any order, custom derivatives, checkpointing, vectorizing maps and loops."""

from runnel.core.namespaces import namespace
from runnel.transforms import (
    autobatch as autobatch,
    checkpoint as checkpoint,
    control as control,
    control_rules as control_rules,
    custom_vjp as custom_vjp,
    gradients as gradients,
    jacobians as jacobians,
    jvp as jvp,
    recur as recur,
    scan as scan,
    vmap as vmap,
    waves_gradient as waves_gradient,
)

NAMES = {
    "Order": "runnel.transforms.order:Order",
    "autobatch": "runnel.transforms.autobatch:autobatch",
    "checkpoint": "runnel.transforms.checkpoint:checkpoint",
    "cond": "runnel.transforms.control:cond",
    "custom_vjp": "runnel.transforms.custom_vjp:custom_vjp",
    "grad": "runnel.transforms.gradients:grad",
    "hessian": "runnel.transforms.jacobians:hessian",
    "jacfwd": "runnel.transforms.jacobians:jacfwd",
    "jacrev": "runnel.transforms.jacobians:jacrev",
    "jvp": "runnel.transforms.jvp:jvp",
    "linearize": "runnel.transforms.jvp:linearize",
    "recur": "runnel.transforms.recur:recur",
    "scan": "runnel.transforms.scan:scan",
    "value_and_grad": "runnel.transforms.gradients:value_and_grad",
    "vjp": "runnel.transforms.gradients:vjp",
    "vmap": "runnel.transforms.vmap:vmap",
    "while_loop": "runnel.transforms.control:while_loop",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES, checked=False)
