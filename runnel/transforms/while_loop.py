"""``while_loop``: a loop with a condition as one op."""

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
from runnel.transforms.bodies import assigned, joined, require_same, take_apart, tensors_of


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any) -> Any:
    """Run ``while cond_fn(carry): carry = body_fn(carry)`` as one op; return the last carry.

    Both functions are traced once. They may read tensors and Variables from outside, and ``body_fn`` may assign
    Variables. Reverse-mode differentiation is not supported; use :func:`runnel.scan` for it.

    Args:
        cond_fn: a function from the carry to one bool.
        body_fn: a function from the carry to the next one, of the same structure, shapes and dtypes.
        init: the first carry, a tree of tensors.

    Example:
        >>> rn.while_loop(lambda n: n < 100, lambda n: n * 2, rn.asarray(3)).item()
        192
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
        raise ShapeError("[while_loop] init must have at least one leaf, which changes from step to step; got none.")
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
        what = "have effects (a callback)" if isinstance(state, Order) else f"assign {state.described}"
        raise SideEffectError(f"[while_loop] the condition must not {what}; do so in the body.")
    (value,) = decision.outputs
    if value.aval is not aval((), bool_):
        raise DTypeError(f"[while_loop] the condition must return a bool of shape (); got {value.aval}.")
