"""``while_loop``: a loop with a condition, as one op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.core.avals import aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import bool_
from runnel.core.errors import DTypeError, ShapeError, SideEffectError
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.ops.control import while_p
from runnel.tensor.bodies import Traced, trace_body
from runnel.tensor.effects import Order
from runnel.tensor.tensor import Tensor
from runnel.transforms.joined import assigned, joined
from runnel.transforms.trees import require_same, take_apart, tensors_of


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any) -> Any:
    """The loop ``while cond_fn(carry): carry = body_fn(carry)`` as one op; gives the last carry.

    Args:
        cond_fn: takes the carry, gives one bool. Both functions are traced once; they may read tensors and Variables
            from outside, and ``body_fn`` may assign Variables.
        body_fn: takes the carry, gives the next, of the same structure, shapes and dtypes.
        init: the first carry, a tree of tensors.

    There is no gradient through it; :func:`runnel.scan` has one.
    """
    first = take_apart(init)
    carries = tensors_of(first)
    types = [x.aval for x in carries]

    def body(*leaves: Tensor) -> list[Tensor]:
        after = take_apart(body_fn(first.filled(leaves)))
        carries = tensors_of(after)
        require_same("while_loop", "the carry", first, types, after, [x.aval for x in carries])
        return carries

    def condition(*leaves: Tensor) -> list[Any]:
        return [cond_fn(first.filled(leaves))]

    step, decision = trace_body("while_loop", body, types), trace_body("while_loop", condition, types)
    _require_decision(decision)
    written = assigned(step)
    (decides, steps), constants = joined((decision, step), written, "while_loop")
    inputs = (*constants, *carries, *(variable.read() for variable in written))
    if len(inputs) == len(constants):
        raise ShapeError("[while_loop] there is nothing to carry from step to step; give init some leaves.")
    results = apply(
        while_p, *inputs, cond=Body(Graph(decides.inputs, decides.outputs[:1], {}, "condition")), body=Body(steps),
        constants=len(constants), carries=len(inputs) - len(constants),
    )  # fmt: skip
    for variable, value in zip(written, results[len(carries) :], strict=True):
        variable.assign(value)
    return first.filled(results[: len(carries)])


def _require_decision(decision: Traced) -> None:
    if decision.written:
        state = decision.written[0][0]
        what = (
            "has effects (a callback); have them"
            if isinstance(state, Order)
            else f"assigns {state.described}; assign it"
        )
        raise SideEffectError(f"[while_loop] the condition {what} in the body.")
    (value,) = decision.outputs
    if value.aval is not aval((), bool_):
        raise DTypeError(f"[while_loop] the condition must give one bool of shape (); it gives {value.aval}.")
