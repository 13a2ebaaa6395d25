"""``scan``: a differentiable loop of known length as one op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.core.avals import ShapedArray
from runnel.core.dispatch import apply
from runnel.core.errors import ShapeError
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.graph.node import Node, results_of
from runnel.graph.rewriting import extract, placeholder
from runnel.ops import concat, narrow, reshape
from runnel.ops.control import scan_p, stacked, unstacked
from runnel.tensor.bodies import State, trace_body
from runnel.tensor.creation import zeros
from runnel.tensor.tensor import Tensor
from runnel.transforms.bodies import Tree, require_same, take_apart, tensors_of
from runnel.transforms.hoisting import Loop, hoisted
from runnel.transforms.scan_gradient import plan_of


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    *,
    checkpoint_every: int | None = None,
) -> tuple[Any, Any]:
    """Run ``for t in range(length): carry, y[t] = f(carry, xs[t])`` as one op; return the last carry and all y.

    Args:
        f: a function from the carry and the x of one step to the next carry and the y of the step. It is traced once.
            It may read tensors and Variables from outside, and assign Variables.
        init: the first carry, a tree of tensors. The carry keeps its structure, shapes and dtypes.
        xs: a tree of tensors whose first axes have the size ``length``, or None.
        length: the number of steps; by default the size of the first axes of ``xs``.
        reverse: whether to go from the last step to the first; ys keep the order of xs.
        checkpoint_every: for gradients, keep only the carry of every so many steps, and recompute the rest.

    Returns:
        The last carry, and a tree of the ys, stacked along a new first axis.

    Raises:
        ShapeError, DTypeError: the carry changes its type; the error names the leaf.

    Example:
        >>> total, sums = rn.scan(lambda c, x: (c + x, c + x), rn.asarray(0), rn.arange(4))
        >>> total.item(), sums.tolist()
        (6, [0, 1, 3, 6])
    """
    first, over = take_apart(init), take_apart(xs)
    carries, slices = tensors_of(first), tensors_of(over)
    count = _length(slices, length)
    traced = _Body(f, first, over)
    loop, written, ys = traced.trace(carries, slices, count)
    if checkpoint_every is None or checkpoint_every >= count:
        results = run(hoisted(loop), reverse)
    elif checkpoint_every < 1:
        raise ShapeError(f"[scan] checkpoint_every must be at least 1; got {checkpoint_every}.")
    else:
        results = _in_segments(loop, reverse, checkpoint_every)
    n = len(carries)
    for variable, value in zip(written, results[n:], strict=False):
        variable.assign(value)
    return first.filled(results[:n]), ys.filled(results[n + len(written) :])


def _length(xs: list[Tensor], length: int | None) -> int:
    lengths = {x.shape[0] for x in xs if x.ndim} | ({length} if length is not None else set())
    if len(lengths) != 1 or any(x.ndim == 0 for x in xs):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(f"[scan] xs and length must have one number of steps; got shapes ({shapes}) and {length}.")
    return lengths.pop()


class _Body:
    """``f`` as a function of leaves, which notes the structure of the trees that it returns."""

    def __init__(self, f: Callable[[Any, Any], tuple[Any, Any]], carry: Tree, x: Tree) -> None:
        self.f = f
        self.carry = carry
        self.x = x
        self.carry_types: list[ShapedArray] = []
        self.ys: Tree | None = None

    def __call__(self, *leaves: Tensor) -> list[Any]:
        n = len(self.carry.leaves)
        result = self.f(self.carry.filled(leaves[:n]), self.x.filled(leaves[n:]))
        if not isinstance(result, tuple) or len(result) != 2:
            raise ShapeError(f"[scan] the function must return (carry, y); got {type(result).__name__}.")
        after, self.ys = take_apart(result[0]), take_apart(result[1])
        carries = tensors_of(after)
        require_same("scan", "the carry", self.carry, self.carry_types, after, [x.aval for x in carries])
        return [*carries, *self.ys.leaves]

    def trace(self, carries: list[Tensor], xs: list[Tensor], length: int) -> tuple[Loop, list[State], Tree]:
        """Return the loop, in which the Variables that ``f`` assigns are further carries, these, and the form of y."""
        self.carry_types = [x.aval for x in carries]
        n = len(carries)
        traced = trace_body("scan", self, [*self.carry_types, *(unstacked(x.aval) for x in xs)])
        written = [variable for variable, _, _ in traced.written]
        constants = [tensor for tensor, _ in traced.read]
        inputs = [*(node for _, node in traced.read), *traced.arguments[:n], *(node for _, node, _ in traced.written)]
        outputs = [*traced.outputs[:n], *(node for _, _, node in traced.written), *traced.outputs[n:]]
        graph = extract([*inputs, *traced.arguments[n:]], outputs, getattr(self.f, "__name__", "body")).graph
        first = [*carries, *(variable.read() for variable in written)]
        traced.require_own_derivative("scan", [*constants, *first, *xs])
        if not constants and not first and not xs:  # an op needs an input, which determines where it runs
            constants = [zeros(())]
            graph = Graph([placeholder(constants[0].aval, "nothing")], graph.outputs, {}, graph.name)
        return Loop(graph, constants, first, xs, length), written, take_apart(None) if self.ys is None else self.ys


def run(loop: Loop, reverse: bool, recompute: bool = False) -> tuple[Tensor, ...]:
    """Return the results of a loop. If an input requires a gradient, it also stacks what its backward pass reads."""
    n, m = len(loop.constants), len(loop.carries)
    inputs = [*loop.constants, *loop.carries, *loop.xs]
    outputs = loop.graph.outputs
    if not outputs:
        return ()
    body = Body(loop.graph, recompute)
    needs_grad = [x.requires_grad for x in inputs]
    if any(needs_grad):
        plan = plan_of(body, n, m, needs_grad, [node.aval.dtype.is_inexact for node in outputs])
        body = plan.forward
    results: tuple[Tensor, ...] = apply(
        scan_p, *inputs, body=body, constants=n, carries=m, length=loop.length, reverse=reverse
    )
    return results[: len(outputs)]


def _in_segments(loop: Loop, reverse: bool, size: int) -> tuple[Tensor, ...]:
    """Run a loop over segments of ``size`` steps, and keep only the carries between segments.

    These are the √n checkpoints of T. Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016). Remaining
    steps form a last, shorter segment.
    """
    m, whole = len(loop.carries), loop.length // size * size
    pieces = [(0, whole, size), (whole, loop.length - whole, loop.length - whole)]
    if reverse:
        rest = loop.length - whole
        pieces = [(rest, whole, size), (0, rest, rest)]
    carries, parts = list(loop.carries), []
    for start, length, step in pieces:
        if not length:
            continue
        xs = [narrow(x, 0, start, length) for x in loop.xs]
        rows = [reshape(x, (length // step, step, *x.shape[1:])) for x in xs]
        results = run(Loop(_segment(loop, step, reverse), loop.constants, carries, rows, length // step), reverse, True)
        carries = list(results[:m])
        parts.append([reshape(y, (length, *y.shape[2:])) for y in results[m:]])
    if reverse:
        parts.reverse()
    return (*carries, *(concat(ys) if len(ys) > 1 else ys[0] for ys in zip(*parts, strict=True)))


def _segment(loop: Loop, size: int, reverse: bool) -> Graph:
    """Return ``size`` steps of ``loop`` as a body."""
    n, m = len(loop.constants), len(loop.carries)
    avals = [node.aval for node in loop.graph.inputs]
    avals = [*avals[: n + m], *(stacked(x, size) for x in avals[n + m :])]
    inputs = [placeholder(x, f"x{i}") for i, x in enumerate(avals)]
    types = [node.aval for node in loop.graph.outputs]
    results = (*types[:m], *(stacked(y, size) for y in types[m:]))
    attrs = {"body": Body(loop.graph), "constants": n, "carries": m, "length": size, "reverse": reverse}
    outputs = results_of(Node(scan_p, tuple(inputs), attrs, results))
    return Graph(inputs, outputs, {}, f"{size} steps of {loop.graph.name}")
