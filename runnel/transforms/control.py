"""``cond``: run one of two functions, selected at run time. In a program the other one does not run.
``while_loop``: a loop with a condition as one op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from runnel.core.avals import aval
from runnel.core.caching import Recent
from runnel.core.dispatch import apply
from runnel.core.dtypes import bool_
from runnel.core.errors import DTypeError, ShapeError, SideEffectError
from runnel.core.tables import vjp
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.graph.rewriting import extract, placeholder, zeros
from runnel.ops.control import cond_p, while_p
from runnel.tensor import tracing
from runnel.tensor.bodies import Traced, trace_body
from runnel.tensor.creation import asarray
from runnel.tensor.effects import Order
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.transforms.bodies import Tree, assigned, joined, linearize, require_same, take_apart, tensors_of

_COMPARED: Final[Recent[Any, bool]] = Recent(256)  # functions and types whose results eager code has compared


def cond(predicate: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """Return ``true_fn(*operands)`` if ``predicate`` is true, else ``false_fn(*operands)``.

    A compiled function traces both functions and runs one of them. Eager code also traces the other function, if it
    can, once for each combination of operand and result types, to check the type of its result.

    Args:
        predicate: a bool of shape (). If it differs between the elements of a vmap, both functions run for all
            elements, and each element takes its result.
        true_fn: a function that returns a tree of tensors.
        false_fn: a function that returns a tree of the same structure, shapes and dtypes.
        operands: trees of tensors.

    Example:
        >>> rn.cond(rn.asarray(True), lambda x: x + 1, lambda x: x - 1, rn.asarray(1.0)).item()
        2.0
    """
    decision = asarray(predicate)
    if decision.aval.unplaced is not aval((), bool_):
        raise DTypeError(f"[cond] predicate must be a bool of shape (); got {decision.aval}.")
    is_known = not (decision.is_traced or decision._is_unknown)  # an argument is traced when an op first reads it
    if is_known or (tracing.ACTIVE.trace is None and decision._level is None):
        taken, other = (true_fn, false_fn) if bool(decision) else (false_fn, true_fn)
        eager = taken(*operands)
        if isinstance(predicate, ArrayMethods) and tracing.ACTIVE.trace is None and tracing.ACTIVE.level is None:
            _require_equal_types(eager, taken, other, operands)
        return eager
    tree = take_apart(operands)
    leaves = tensors_of(tree)
    (then, result), (otherwise, other_result) = (_traced(fn, tree, leaves) for fn in (true_fn, false_fn))
    types = [[node.aval for node in traced.outputs] for traced in (then, otherwise)]
    require_same("cond", "the result", result, types[0], other_result, types[1])
    written = assigned(then, otherwise)
    graphs, constants = joined((then, otherwise), written, "cond")
    inputs = (*constants, *leaves, *(variable.read() for variable in written))
    for traced in (then, otherwise):
        traced.require_own_derivative("cond", inputs)
    if not graphs[0].outputs:
        return result.filled([])
    outs = apply(cond_p, decision, *inputs, then=Body(graphs[0]), otherwise=Body(graphs[1]))
    n = len(result.leaves)
    for variable, value in zip(written, outs[n:], strict=True):
        variable.assign(value)
    return result.filled(outs[:n])


def _traced(function: Callable[..., Any], operands: Tree, leaves: Sequence[Tensor]) -> tuple[Traced, Tree]:
    """Trace a branch for operands of these types; return it with its result."""
    results: list[Tree] = []

    def body(*values: Tensor) -> list[Tensor]:
        results.append(take_apart(function(*operands.filled(values))))
        return tensors_of(results[-1])

    return trace_body("cond", body, [x.aval for x in leaves]), results[0]


def _require_equal_types(result: Any, taken: Callable[..., Any], other: Callable[..., Any], operands: Any) -> None:
    """Raise an error if the function that did not run returns another type of tree than ``result``.

    It is traced once for each combination of types. A function that cannot be traced is not compared.
    """
    tree, ran = take_apart(operands), take_apart(result)
    leaves, types = tensors_of(tree), [x.aval for x in tensors_of(ran)]
    key = (getattr(taken, "__code__", taken), getattr(other, "__code__", other), *[x.aval for x in leaves], *types)
    try:
        if _COMPARED.get(key):
            return
        _COMPARED[key] = True  # first: a function may call itself
    except TypeError:  # the function is not hashable
        return
    try:
        traced, others = _traced(other, tree, leaves)
    except Exception:  # the function raises it again when it runs
        return
    try:
        require_same("cond", "the result", ran, types, others, [node.aval for node in traced.outputs])
    except (ShapeError, DTypeError):
        _COMPARED[key] = False  # compare again at the next call
        raise


@vjp.rule(cond_p)
def cond_vjp(
    gs: tuple[Tensor | None, ...],
    outs: tuple[Tensor, ...],
    predicate: Tensor,
    *operands: Tensor,
    needs_grad: tuple[bool, ...],
    then: Body,
    otherwise: Body,
) -> list[Tensor | None]:
    """Return the cotangents from the derivative of the branch that ran, which recomputes its values."""
    seeded = [i for i, g in enumerate(gs) if g is not None]
    needed = [i for i, x in enumerate(operands) if needs_grad[1 + i] and x.dtype.is_inexact]
    answer: list[Tensor | None] = [None] * (1 + len(operands))
    if needed and seeded:
        bodies = [_pulled_back(body, needed, seeded) for body in (then, otherwise)]
        seeds = [g for g in gs if g is not None]
        gradients = apply(cond_p, predicate, *operands, *seeds, then=bodies[0], otherwise=bodies[1])
        for i, value in zip(needed, gradients, strict=True):
            answer[1 + i] = value
    return answer


def _pulled_back(body: Body, needed: Sequence[int], seeded: Sequence[int]) -> Body:
    """Return a body from operands and cotangents of outputs to the cotangents of the operands ``needed``."""
    graph = body.graph
    both = linearize(graph, needed, seeded)
    seeds = [both.seeds[i] if i in both.seeds else placeholder(graph.outputs[i].aval, "g") for i in seeded]
    outputs = [both.cotangents[i] if i in both.cotangents else zeros(graph.inputs[i].aval) for i in needed]
    return Body(extract([*both.inputs, *seeds], outputs, f"{graph.name}.backward").graph)


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
