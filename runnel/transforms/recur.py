"""``recur``: a differentiable recurrence over rows in an order that is data, as one op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.core.avals import ShapedArray, aval
from runnel.core.dtypes import bool_
from runnel.core.errors import ShapeError, SideEffectError
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.graph.rewriting import extract
from runnel.ops import getitem, not_equal, take, where
from runnel.ops.control import stacked, unstacked
from runnel.ops.creation_like import iota
from runnel.ops.waves import Pull
from runnel.tensor.bodies import graph_of, trace_body
from runnel.tensor.tensor import Tensor
from runnel.transforms.bodies import Tree, require_same, take_apart, tensors_of
from runnel.transforms.hoisting import Loop, Steps, hoisted
from runnel.transforms.order import Order
from runnel.transforms.waves import Recurrence
from runnel.transforms.waves_gradient import run


def recur(f: Callable[[tuple[Any, ...], Any], Any], init: Any, order: Order, xs: Any = None) -> Any:
    """Compute ``y[i] = f((y[a], y[b], ...), xs[i])`` for all rows i as one op, where a, b, ... are the rows that row i
    depends on; return all y.

    Sequences of different lengths, trees and other graphs without cycles are computed without padding: the work is the
    number of rows. Rows that do not depend on one another are computed together. The order of the rows is data: a
    compiled function needs no new program for other sequences or trees with the same number of rows.

    Args:
        f: a function for one row: from the states of the rows that it depends on, in the order of its links, and its x
            to its own state. It is traced once, and may read tensors and Variables from outside.
        init: the state where a link is missing, a tree of tensors of the form, shapes and dtypes of a state.
        order: the links of the rows, for example ``rn.Order.chains(lengths)``.
        xs: a tree of tensors whose first axes are the rows, or None.

    Returns:
        The states of all rows, stacked along a new first axis.

    Raises:
        ShapeError, DTypeError: a state differs from ``init``; the error names the leaf.

    Example:
        >>> order = rn.Order.of([[-1, -1], [-1, -1], [0, 1]])  # a tree: row 2 is the parent of rows 0 and 1
        >>> rn.recur(lambda below, x: below[0] + below[1] + x, rn.asarray(0), order, rn.asarray([1, 2, 4])).tolist()
        [1, 2, 7]
    """
    first, over = take_apart(init), take_apart(xs)
    initial, leaves = tensors_of(first), tensors_of(over)
    links, rows, places, starts = tensors_of(take_apart(tuple(order)))
    count, degree = _rows(links, leaves), links.shape[0]
    step = _Step(f, first, initial, over, degree)
    constants, graph = step.trace([x.aval for x in leaves])
    linked = [getitem(links, k) for k in range(degree)]
    own = iota(rows, (count,), 0)
    given = [*(not_equal(link, own) for link in linked), *(take(x, rows, 0) for x in leaves)]
    pulls = tuple(Pull(j, k, False) for k in range(degree) for j in range(len(initial)))
    loop = hoisted(Loop(graph, constants, [starts] * len(pulls), given, count))
    results = run(Recurrence(batched(loop, len(pulls)), loop.constants, linked, starts, loop.xs, pulls, False))
    return first.filled([take(y, places, 0) for y in results])


def _rows(links: Tensor, xs: Sequence[Tensor]) -> int:
    sizes = {links.shape[1], *(x.shape[0] for x in xs if x.ndim)}
    if len(sizes) != 1 or any(x.ndim == 0 for x in xs):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(f"[recur] xs must have the {links.shape[1]} rows of the order; got shapes {shapes}.")
    return links.shape[1]


class _Step:
    """``f`` as a function of the leaves of one row."""

    def __init__(self, f: Callable[..., Any], init: Tree, initial: list[Tensor], x: Tree, degree: int) -> None:
        self.f, self.init, self.initial, self.x, self.degree = f, init, initial, x, degree
        self.types = [x.aval for x in initial]

    def __call__(self, *leaves: Tensor) -> list[Any]:
        m, k = len(self.initial), self.degree
        pulls, present, xs = leaves[: m * k], leaves[m * k : m * k + k], leaves[m * k + k :]
        below = [
            self.init.filled([where(there, pulls[j * m + i], x) for i, x in enumerate(self.initial)])
            for j, there in enumerate(present)
        ]
        state = take_apart(self.f(tuple(below), self.x.filled(xs)))
        tensors = tensors_of(state)
        require_same("recur", "the state", self.init, self.types, state, [x.aval for x in tensors])
        return list(tensors)

    def trace(self, xs: Sequence[ShapedArray]) -> tuple[list[Tensor], Graph]:
        """Return the tensors that ``f`` reads from outside, and its graph: from these, pulls, presence and xs."""
        flag = aval((), bool_, xs[0].device) if xs else aval((), bool_)
        types = [*self.types * self.degree, *[flag] * self.degree, *map(unstacked, xs)]
        traced = trace_body("recur", self, types)
        if traced.written:
            raise SideEffectError("[recur] the function must not assign Variables; return what should change.")
        constants = [tensor for tensor, _ in traced.read]
        traced.require_own_derivative("recur", constants)
        inputs = [*(node for _, node in traced.read), *traced.arguments]
        return constants, extract(inputs, traced.outputs, getattr(self.f, "__name__", "body")).graph


def batched(loop: Loop, pulls: int) -> Body:
    """Return the body for all rows of a loop whose carries are ``pulls``."""
    graph, n = loop.graph, len(loop.constants)

    def rows(*values: Tensor) -> list[Tensor]:
        steps = Steps(loop.length)
        steps.fix(graph.inputs[:n], values[:n])
        steps.stack(graph.inputs[n:], values[n:])
        steps.compute(graph.outputs)
        return [steps.all_steps(x) for x in graph.outputs]

    avals = [x.aval for x in graph.inputs]
    return Body(graph_of(graph.name, rows, [*avals[:n], *(stacked(x, loop.length) for x in avals[n:])]))
