"""``cond``: one of two functions, chosen by a value at run time. Inside a program the other one does not run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from runnel.core.avals import aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import bool_
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.recent import Recent
from runnel.core.tables import vjp
from runnel.graph.hashing import Body
from runnel.graph.rewriting import extract, placeholder, zeros
from runnel.ops.control import cond_p
from runnel.tensor import tracing
from runnel.tensor.bodies import trace_body
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.transforms.joined import assigned, joined
from runnel.transforms.linearized import linearize
from runnel.transforms.trees import Tree, require_same, take_apart, tensors_of

_COMPARED: Final[Recent[Any, bool]] = Recent(256)  # functions and types of which eager code has compared the results


def cond(predicate: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """``true_fn(*operands)`` where ``predicate`` holds, else ``false_fn(*operands)``.

    Args:
        predicate: one bool, of shape (). Under vmap it may differ from element to element: then both run for all of
            them, and one result is taken.
        true_fn: gives a tree of tensors. In a compiled function both functions are traced, and one of them runs.
        false_fn: gives a tree of the same structure, shapes and dtypes. Eagerly, too: the function that does not run is
            traced once for operands and results of these types, as far as it can be.
        operands: trees of tensors.
    """
    decision = asarray(predicate)
    if decision.aval.unplaced is not aval((), bool_):
        raise DTypeError(f"[cond] the predicate must be one bool of shape (); received {decision.aval}.")
    is_known = not (decision.is_traced or decision._is_unknown)  # an argument is not traced before an op reads it
    if is_known or (tracing.ACTIVE.trace is None and decision._level is None):
        taken, other = (true_fn, false_fn) if bool(decision) else (false_fn, true_fn)
        result = taken(*operands)
        if isinstance(predicate, ArrayMethods) and tracing.ACTIVE.trace is None and tracing.ACTIVE.level is None:
            _require_equal_types(result, taken, other, operands)
        return result
    tree = take_apart(operands)
    leaves = tensors_of(tree)
    results: list[Tree] = []

    def branch(function: Callable[..., Any]) -> Callable[..., list[Tensor]]:
        def traced(*values: Tensor) -> list[Tensor]:
            results.append(take_apart(function(*tree.filled(values))))
            return tensors_of(results[-1])

        return traced

    avals = [x.aval for x in leaves]
    then, otherwise = (trace_body("cond", branch(fn), avals) for fn in (true_fn, false_fn))
    types = [[node.aval for node in traced.outputs] for traced in (then, otherwise)]
    require_same("cond", "the result", results[0], types[0], results[1], types[1])
    written = assigned(then, otherwise)
    graphs, constants = joined((then, otherwise), written, "cond")
    inputs = (*constants, *leaves, *(variable.read() for variable in written))
    for traced in (then, otherwise):
        traced.require_own_derivative("cond", inputs)
    if not graphs[0].outputs:
        return results[0].filled([])
    outs = apply(cond_p, decision, *inputs, then=Body(graphs[0]), otherwise=Body(graphs[1]))
    n = len(results[0].leaves)
    for variable, value in zip(written, outs[n:], strict=True):
        variable.assign(value)
    return results[0].filled(outs[:n])


def _require_equal_types(result: Any, taken: Callable[..., Any], other: Callable[..., Any], operands: Any) -> None:
    """Raise if the function that did not run gives another type of tree than ``result``. It is traced for that, once
    for each pair of types; one that cannot be traced is not compared."""
    tree, ran = take_apart(operands), take_apart(result)
    leaves, types = tensors_of(tree), [x.aval for x in tensors_of(ran)]
    key = (getattr(taken, "__code__", taken), getattr(other, "__code__", other), *[x.aval for x in leaves], *types)
    try:
        if _COMPARED.get(key):
            return
        _COMPARED[key] = True  # first: a function may call itself
    except TypeError:  # a function without a hash
        return
    results: list[Tree] = []

    def traced(*values: Tensor) -> list[Tensor]:
        results.append(take_apart(other(*tree.filled(values))))
        return tensors_of(results[-1])

    try:
        others = [node.aval for node in trace_body("cond", traced, [x.aval for x in leaves]).outputs]
    except Exception:  # its own, which it raises where it runs
        return
    try:
        require_same("cond", "the result", ran, types, results[0], others)
    except (ShapeError, DTypeError):
        _COMPARED[key] = False  # at the next call again
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
    """The cotangents come from the derivative of the branch that ran, which computes its values again."""
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
    """From operands and cotangents of outputs to cotangents of the operands ``needed``."""
    graph = body.graph
    both = linearize(graph, needed, seeded)
    seeds = [both.seeds[i] if i in both.seeds else placeholder(graph.outputs[i].aval, "g") for i in seeded]
    outputs = [both.cotangents[i] if i in both.cotangents else zeros(graph.inputs[i].aval) for i in needed]
    return Body(extract([*both.inputs, *seeds], outputs, f"{graph.name}.backward").graph)
