"""Forward-mode rules of loops and branches (table ``jvp``): their bodies carry tangents.
Batching rules of loops and branches (table ``axes``): their bodies compute with stacked values.

A value differs between elements if it depends on an input that does, also through the carries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import batching
from runnel.core.dispatch import apply
from runnel.core.rules import Tangents, Together
from runnel.core.tables import jvp
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.graph.node import Value
from runnel.ops import any as any_of, broadcast_to, moveaxis, reshape, where, zeros_like
from runnel.ops.control import cond_p, scan_p, while_p
from runnel.ops.shapes.views import bare
from runnel.tensor.batching import Batching
from runnel.tensor.bodies import evaluate, graph_of
from runnel.tensor.forward import Forward
from runnel.tensor.tensor import Tensor
from runnel.transforms.bodies import depending, with_carries
from runnel.transforms.hoisting import Loop
from runnel.transforms.scan import run

Outs = tuple[Sequence[Any], Sequence[Any]]


def with_tangents(graph: Graph, inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
    """Return ``graph`` with the tangents of these inputs as further inputs, and of these outputs as further outputs."""
    count = len(graph.inputs)

    def step(*values: Tensor) -> list[Tensor]:
        level = Forward()
        with level:
            arguments: list[Tensor] = list(values[:count])
            for i, tangent in zip(inputs, values[count:], strict=True):
                arguments[i] = level.dual(arguments[i], tangent)
            pairs = [level.split(x) for x in evaluate(graph, arguments)]
            tangents = [(pairs[i][0], pairs[i][1]) for i in outputs]
            return [*(x for x, _ in pairs), *(zeros_like(x) if t is None else t for x, t in tangents)]

    avals = [x.aval for x in graph.inputs]
    return graph_of(graph.name, step, [*avals, *(avals[i] for i in inputs)])


def _with_tangent(tangents: Tangents) -> list[int]:
    return [i for i, t in enumerate(tangents) if t is not None]


def _filled(tangents: Tangents, inputs: Sequence[Tensor], numbers: Sequence[int]) -> list[Tensor]:
    pairs = [(inputs[i], tangents[i]) for i in numbers]
    return [zeros_like(x.without_tape()) if t is None else t for x, t in pairs]


def _spread(count: int, numbers: Sequence[int], values: Sequence[Tensor]) -> list[Tensor | None]:
    """Return a list of ``count`` items with ``values`` at the positions ``numbers``, and None elsewhere."""
    known = dict(zip(numbers, values, strict=True))
    return [known.get(i) for i in range(count)]


def _scan_jvp(
    tangents: Tangents, *inputs: Tensor, body: Body, constants: int, carries: int, length: int, reverse: bool
) -> Outs:
    graph, n, m = body.graph, constants, carries
    active = with_carries(graph, _with_tangent(tangents), n, m)
    state = [i - n for i in active if n <= i < n + m]
    differentiable = depending(graph, [graph.inputs[i] for i in active])
    ys = [i for i in range(m, len(graph.outputs)) if graph.outputs[i] in differentiable]
    wide = with_tangents(graph, active, [*state, *ys])
    extra = dict(zip(active, _filled(tangents, inputs, active), strict=True))
    nodes = dict(zip(active, wide.inputs[len(graph.inputs) :], strict=True))
    ranges = (range(n), range(n, n + m), range(n + m, len(inputs)))
    order = [[*(wide.inputs[i] for i in part), *(nodes[i] for i in active if i in part)] for part in ranges]
    values = [[*(inputs[i] for i in part), *(extra[i] for i in active if i in part)] for part in ranges]
    k, count = len(state), len(graph.outputs)
    outs_of_body = wide.outputs
    outputs = [*outs_of_body[:m], *outs_of_body[count : count + k], *outs_of_body[m:count], *outs_of_body[count + k :]]
    whole = Graph([x for part in order for x in part], outputs, {}, graph.name)
    loop = Loop(whole, values[0], values[1], values[2], length)
    results = run(loop, reverse, body.recompute)
    outs = [*results[:m], *results[m + k : k + count]]
    return outs, _spread(count, [*state, *ys], [*results[m : m + k], *results[k + count :]])


def _while_jvp(tangents: Tangents, *inputs: Tensor, cond: Body, body: Body, constants: int, carries: int) -> Outs:
    graph, n, m = body.graph, constants, carries
    active = with_carries(graph, _with_tangent(tangents), n, m)
    state = [i - n for i in active if i >= n]
    fixed = [i for i in active if i < n]
    wide = with_tangents(graph, active, state)
    decides = with_tangents(cond.graph, active, ())
    extra = _filled(tangents, inputs, active)

    def ordered(values: Sequence[Any], further: Sequence[Any]) -> list[Any]:
        return [*values[:n], *further[: len(fixed)], *values[n:], *further[len(fixed) :]]

    graphs = [Graph(ordered(g.inputs[: n + m], g.inputs[n + m :]), g.outputs, {}, g.name) for g in (decides, wide)]
    results = apply(
        while_p, *ordered(inputs, extra), cond=Body(graphs[0]), body=Body(graphs[1]), constants=n + len(fixed),
        carries=m + len(state),
    )  # fmt: skip
    return results[:m], _spread(m, state, results[m:])


def _cond_jvp(tangents: Tangents, predicate: Tensor, *operands: Tensor, then: Body, otherwise: Body) -> Outs:
    active = _with_tangent(tangents[1:])
    outputs = [i for i, x in enumerate(then.graph.outputs) if x.aval.dtype.is_inexact]
    bodies = [with_tangents(body.graph, active, outputs) for body in (then, otherwise)]
    results = apply(
        cond_p, predicate, *operands, *(tangents[1 + i] for i in active), then=Body(bodies[0]),
        otherwise=Body(bodies[1]),
    )  # fmt: skip
    count = len(then.graph.outputs)
    return results[:count], _spread(count, outputs, results[count:])


jvp.register(scan_p, Together(_scan_jvp))
jvp.register(while_p, Together(_while_jvp))
jvp.register(cond_p, Together(_cond_jvp))


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
    size: int, *operands: Tensor, body: Body, constants: int, carries: int, length: int, reverse: bool
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
def _while_batched(size: int, *operands: Tensor, cond: Body, body: Body, constants: int, carries: int) -> list[Tensor]:
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
