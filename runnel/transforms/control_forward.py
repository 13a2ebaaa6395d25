"""Forward-mode rules of loops and branches (table ``jvp``): their bodies carry tangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.core.dispatch import apply
from runnel.core.rules import Tangents, Together
from runnel.core.tables import jvp
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.ops import zeros_like
from runnel.ops.control import cond_p, scan_p, while_p
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
    return [zeros_like(x.detach()) if t is None else t for x, t in pairs]


def _spread(count: int, numbers: Sequence[int], values: Sequence[Tensor]) -> list[Tensor | None]:
    """Return a list of ``count`` items with ``values`` at the positions ``numbers``, and None elsewhere."""
    known = dict(zip(numbers, values, strict=True))
    return [known.get(i) for i in range(count)]


def _scan_jvp(
    tangents: Tangents,
    *inputs: Tensor,
    body: Body,
    constants: int,
    carries: int,
    length: int,
    reverse: bool,
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


def _while_jvp(
    tangents: Tangents,
    *inputs: Tensor,
    cond: Body,
    body: Body,
    constants: int,
    carries: int,
) -> Outs:
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
