"""Batching rules of loops and branches (table ``axes``): their bodies compute with stacked values.

A value differs between elements if it depends on an input that does, also through the carries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import batching
from runnel.core.dispatch import apply
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.graph.node import Value
from runnel.ops import any as any_of, broadcast_to, moveaxis, reshape, where
from runnel.ops.control import cond_p, scan_p, while_p
from runnel.ops.shapes.views import bare
from runnel.tensor.batching import Batching
from runnel.tensor.bodies import evaluate, graph_of
from runnel.tensor.tensor import Tensor
from runnel.transforms.hoisting import Loop
from runnel.transforms.scan import run


def _differing(graph: Graph, inputs: Collection[int]) -> set[int]:
    """Return the numbers of the outputs that depend on the inputs numbered ``inputs``."""
    differing: set[Value] = {graph.inputs[i] for i in inputs}
    for node in graph.values:
        if any(x in differing for x in node.inputs):
            differing.add(node)
    return {i for i, x in enumerate(graph.outputs) if x in differing}


def _with_carries(graph: Graph, own: Collection[int], first: int, carries: int) -> set[int]:
    """Return the inputs ``own`` and all carries, which are the inputs from ``first`` on, that depend on them."""
    inputs = set(own)
    while True:
        more = {first + j for j in _differing(graph, inputs) if j < carries} - inputs
        if not more:
            return inputs
        inputs |= more


def _stacked(values: ShapedArray, size: int) -> ShapedArray:
    return aval((size, *values.shape), values.dtype)


def _for_all(graph: Graph, size: int, inputs: Collection[int], outputs: Collection[int], then: Any = None) -> Graph:
    """Return ``graph`` for ``size`` elements, with these inputs and outputs stacked.

    ``then(level, inputs, outputs)``, if given, returns other outputs.
    """

    def step(*values: Tensor) -> list[Tensor]:
        level = Batching(size)
        with level:
            lifted = [level.stack(x) if i in inputs else level.lifted(x) for i, x in enumerate(values)]
            outs = evaluate(graph, lifted)
            if then is not None:
                outs = then(level, lifted, outs)
            return [level.all_elements(x) if i in outputs else level.split(x)[0] for i, x in enumerate(outs)]

    avals = [_stacked(x.aval, size) if i in inputs else x.aval for i, x in enumerate(graph.inputs)]
    return graph_of(graph.name, step, avals)


def _mapped(operands: Sequence[Tensor], size: int) -> set[int]:
    return {i for i, x in enumerate(operands) if x.shape[0] == size}


def _all_elements(x: Tensor, size: int) -> Tensor:
    values: Tensor = broadcast_to(x, (size, *x.shape[1:]))
    return values


def _one(x: Tensor) -> Tensor:
    """Return ``x``, which is the same for all elements, with an axis of size 1 over them."""
    wide: Tensor = reshape(x, (1, *x.shape))
    return wide


@batching(scan_p)
def _scan_batched(
    size: int,
    *operands: Tensor,
    body: Body,
    constants: int,
    carries: int,
    length: int,
    reverse: bool,
) -> list[Tensor]:
    graph, n, m = body.graph, constants, carries
    differing = _with_carries(graph, _mapped(operands, size), n, m)
    outputs = _differing(graph, differing) | {i - n for i in differing if n <= i < n + m}
    inputs: list[Tensor] = []
    for i, x in enumerate(operands):
        if i not in differing:
            inputs.append(bare(x))
        else:
            every = _all_elements(x, size)
            inputs.append(every if i < n + m else moveaxis(every, 0, 1))
    wide = _for_all(graph, size, differing, outputs)
    results = run(Loop(wide, inputs[:n], inputs[n : n + m], inputs[n + m :], length), reverse, body.recompute)
    ends = enumerate(results)
    return [(x if i < m else moveaxis(x, 1, 0)) if i in outputs else _one(x) for i, x in ends]


@batching(while_p)
def _while_batched(
    size: int,
    *operands: Tensor,
    cond: Body,
    body: Body,
    constants: int,
    carries: int,
) -> list[Tensor]:
    """Loop while the condition holds for any element; the other elements keep their values."""
    n, m = constants, carries
    differing = _with_carries(body.graph, _mapped(operands, size), n, m)
    is_own = bool(_differing(cond.graph, differing))
    if is_own:
        differing |= set(range(n, n + m))
    state = {i - n for i in differing if i >= n}
    inputs = [_all_elements(x, size) if i in differing else bare(x) for i, x in enumerate(operands)]

    def frozen(level: Batching, before: list[Tensor], after: list[Tensor]) -> list[Tensor]:
        (goes_on,) = evaluate(cond.graph, before)
        return [where(goes_on, new, old) for new, old in zip(after, before[n:], strict=True)]

    def some(level: Batching, before: list[Tensor], after: list[Tensor]) -> list[Tensor]:
        return [any_of(level.all_elements(after[0]))]

    decides = _for_all(cond.graph, size, differing, (), some if is_own else None)
    steps = _for_all(body.graph, size, differing, state, frozen if is_own else None)
    results = apply(while_p, *inputs, cond=Body(decides), body=Body(steps), constants=n, carries=m)
    return [x if i in state else _one(x) for i, x in enumerate(results)]


@batching(cond_p)
def _cond_batched(size: int, predicate: Tensor, *operands: Tensor, then: Body, otherwise: Body) -> list[Tensor]:
    """Run both branches for all elements if each element has its own predicate, and select between the results."""
    bodies, differing = (then.graph, otherwise.graph), _mapped(operands, size)
    if predicate.shape[0] == size:
        level = Batching(size)
        with level:
            inputs = [level.stack(x) if i in differing else level.lifted(bare(x)) for i, x in enumerate(operands)]
            both = zip(*(evaluate(graph, inputs) for graph in bodies), strict=True)
            return [level.all_elements(where(level.stack(predicate), x, y)) for x, y in both]
    outputs = set().union(*(_differing(graph, differing) for graph in bodies))
    arguments = [x if i in differing else bare(x) for i, x in enumerate(operands)]
    wide = [_for_all(graph, size, differing, outputs) for graph in bodies]
    results = apply(cond_p, bare(predicate), *arguments, then=Body(wide[0]), otherwise=Body(wide[1]))
    return [x if i in outputs else _one(x) for i, x in enumerate(results)]
