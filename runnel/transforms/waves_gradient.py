"""The gradient of ``waves``: the same op in the opposite direction, and what follows it for all rows at once.

The cotangent of a state is the sum of what its readers contribute, which is the transpose of their pulls. Only what
these contributions need is computed wave by wave. All else, above all the gradients of weights, is computed after it
for all rows: one product instead of one for each wave.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

from runnel.core.axes import LOOPED
from runnel.core.caching import Recent
from runnel.core.dispatch import apply
from runnel.core.records import record
from runnel.core.rules import Tangents, Together
from runnel.core.tables import axes, jvp, vjp
from runnel.graph.graph import Graph, topological
from runnel.graph.hashing import Body
from runnel.graph.node import Value, applied
from runnel.graph.rewriting import copied, extract, placeholder
from runnel.ops import equal, reshape, where, zeros_like
from runnel.ops.creation_like import iota
from runnel.ops.elementwise.arithmetic import add_p
from runnel.ops.indexing.gather import take_p
from runnel.ops.indexing.segments import counting_sort_p, segment_sum_p
from runnel.ops.waves import Pull, parts_of, waves_p
from runnel.tensor.bodies import evaluate
from runnel.tensor.differentiable.residuals import to_keep
from runnel.tensor.tensor import Tensor
from runnel.transforms.bodies import Linearized, linearize
from runnel.transforms.control_rules import with_tangents
from runnel.transforms.waves import Recurrence, recorded

_PLANS_PER_GENERATION: Final = 64  # the size of each of two generations of the cache


@record
class GradientPlan:
    """A way to differentiate a body. Nodes are in ``linearized``; numbers count inputs, pulls or results."""

    forward: Body  # with what is kept as further results
    linearized: Linearized
    kept: tuple[Value, ...]  # further results of ``forward``
    back: tuple[int, ...]  # pulls with a cotangent
    totals: tuple[int, ...]  # results whose cotangents have contributions
    inside: tuple[Value, ...]  # values that the backward loop computes besides contributions and totals
    wanted: tuple[int, ...]  # inputs with cotangents
    read: tuple[int, ...]  # pulls whose values the cotangents read


_PLANS: Final[Recent[Any, GradientPlan]] = Recent(_PLANS_PER_GENERATION)


def plan_of(body: Body, constants: int, pulls: tuple[Pull, ...], needs_grad: Sequence[bool]) -> GradientPlan:
    """Return the plan for the cotangents of constants and xs that ``needs_grad`` names."""
    key = (body, body.avals, constants, pulls, tuple(needs_grad))
    plan = _PLANS.get(key)
    if plan is None:
        plan = _PLANS[key] = _plan(body, constants, pulls, needs_grad)
    return plan


def _plan(body: Body, constants: int, pulls: tuple[Pull, ...], needs_grad: Sequence[bool]) -> GradientPlan:
    graph, n, m = body.graph, constants, len(pulls)
    asked = [*range(n), *range(n + m, len(graph.inputs))]
    wanted = [i for i, needed in zip(asked, needs_grad, strict=True) if needed]
    active = [i for i in (*wanted, *range(n, n + m)) if graph.inputs[i].aval.dtype.is_inexact]
    seeded = [i for i, x in enumerate(graph.outputs) if x.aval.dtype.is_inexact]
    known = linearize(graph, sorted(active), seeded)
    back = tuple(j for j in range(m) if n + j in known.cotangents)
    totals = tuple(sorted({pulls[j].state for j in back if pulls[j].state in known.seeds}))
    linear = known.linear()
    contributions = [known.cotangents[n + j] for j in back]
    looped = {x for x in topological(contributions) if x in linear}
    after = [known.cotangents[i] for i in wanted if i in known.cotangents]
    outside = [x for x in topological(after) if x in linear and x not in looped]
    inside = dict.fromkeys(x for y in (*outside, *after) for x in (y, *y.inputs) if x in looped)
    seeds = set(known.seeds.values())
    read = dict.fromkeys(
        x for y in (*looped, *outside, *contributions, *after) for x in (y, *y.inputs) if x not in linear
    )
    free = {*known.inputs, *known.outputs}
    needed = to_keep([x for x in read if not x.is_constant], free, recompute=body.recompute)
    kept = tuple(x for x in needed if x not in free)
    reached = _reached([*contributions, *after], {*known.outputs, *kept})
    forward = Body(extract(known.inputs, [*known.outputs, *kept], graph.name).graph, body.recompute)
    return GradientPlan(
        forward, known, kept, back, totals, tuple(x for x in inside if x not in seeds),
        tuple(i for i in wanted if i in known.cotangents),
        tuple(j for j in range(m) if known.inputs[n + j] in reached),
    )  # fmt: skip


def _reached(targets: Sequence[Value], stops: set[Value]) -> set[Value]:
    """Return the values that ``targets`` depend on, without those behind ``stops``."""
    pending, reached = list(targets), set(targets)
    while pending:
        value = pending.pop()
        if value not in stops:
            pending += set(value.inputs) - reached
            reached.update(value.inputs)
    return reached


@record
class Backward:
    """The body of the backward loop, and the nodes whose values it reads: constants, and values of all rows."""

    body: Body
    constants: tuple[Value, ...]
    rows: tuple[Value, ...]


_BACKWARD: Final[Recent[Any, Backward]] = Recent(_PLANS_PER_GENERATION)


def _backward(plan: GradientPlan, constants: int, pulls: tuple[Pull, ...], given: frozenset[int]) -> Backward:
    """Return the backward loop where the results ``given`` have cotangents from outside. Its results are contributions,
    totals and the values of the inside."""
    nodes = plan.linearized
    known = [*nodes.inputs, *nodes.outputs, *plan.kept, *(seed for i, seed in nodes.seeds.items() if i in given)]
    fresh: dict[Value, Value] = {x: placeholder(x.aval, x.name) for x in known}
    sent = {j: placeholder(nodes.inputs[constants + j].aval, f"sent{j}") for j in plan.back}
    replaced = dict(fresh)
    for i in plan.totals:
        seed = nodes.seeds[i]
        terms = [fresh[seed]] if i in given else []
        terms += [sent[j] for j in plan.back if pulls[j].state == i]
        replaced[seed] = functools.reduce(_sum, terms)
    outputs = [nodes.cotangents[constants + j] for j in plan.back]
    outputs += [*(nodes.seeds[i] for i in plan.totals), *plan.inside]
    copies = copied(outputs, replaced)
    results = [copies[x] for x in outputs]
    read = set(topological(results))
    fixed = tuple(x for x in nodes.inputs[:constants] if fresh[x] in read)
    rows = tuple(x for x in fresh if x not in nodes.inputs[:constants] and fresh[x] in read)
    arguments = [*(fresh[x] for x in fixed), *sent.values(), *(fresh[x] for x in rows)]
    return Backward(Body(Graph(arguments, results, {}, "backward")), fixed, rows)


def _sum(x: Value, y: Value) -> Value:
    return applied(add_p, (x, y), {}, x.aval)


def run(made: Recurrence) -> tuple[Tensor, ...]:
    """Return the results. If an input requires a gradient, it also stores what its backward pass reads."""
    body, needs_grad = made.body, [x.requires_grad for x in (*made.constants, *made.xs)]
    if any(needs_grad):
        body = plan_of(body, len(made.constants), made.pulls, needs_grad).forward
    return recorded(made, body)[: len(made.body.graph.outputs)]


@vjp.rule(waves_p)
def waves_vjp(
    gs: tuple[Tensor | None, ...],
    outs: tuple[Tensor, ...],
    *inputs: Tensor,
    needs_grad: tuple[bool, ...],
    body: Body,
    advance: Body,
    constants: int,
    sources: int,
    pulls: tuple[Pull, ...],
    reverse: bool,
) -> list[Tensor | None]:
    """Return the cotangents of the inputs."""
    parts, needs = parts_of(inputs, constants, sources), parts_of(needs_grad, constants, sources)
    wanted = (*needs.constants, *needs.xs)
    plan = plan_of(body, constants, pulls, wanted)
    if plan.kept:
        outs = apply(
            waves_p, *inputs, body=plan.forward, advance=advance, constants=constants, sources=sources, pulls=pulls,
            reverse=reverse,
        )  # fmt: skip
    nodes, n, m = plan.linearized, constants, len(pulls)
    values: dict[Value, Tensor] = dict(zip(nodes.inputs[:n], parts.constants, strict=True))
    values.update(zip(nodes.inputs[n + m :], parts.xs, strict=True))
    values.update(zip([*nodes.outputs, *plan.kept], outs, strict=True))
    for j in plan.read:
        values[nodes.inputs[n + j]] = _pulled(pulls[j], outs[pulls[j].state], parts.sources)
    for i, seed in nodes.seeds.items():
        g = gs[i]
        if g is not None or i not in plan.totals:
            values[seed] = zeros_like(outs[i]) if g is None else g
    if plan.back:
        given = frozenset(i for i, seed in nodes.seeds.items() if seed in values)
        key = (body, body.avals, constants, pulls, wanted, given)
        backward = _BACKWARD.get(key)
        if backward is None:
            backward = _BACKWARD[key] = _backward(plan, constants, pulls, given)
        turned, links = _turned([pulls[j] for j in plan.back], parts.sources, outs[0].shape[0])
        results = run(
            Recurrence(
                backward.body, [values[x] for x in backward.constants], links, parts.starts,
                [values[x] for x in backward.rows], turned, not reverse,
            )
        )[len(plan.back) :]  # fmt: skip
        values.update(zip([*(nodes.seeds[i] for i in plan.totals), *plan.inside], results, strict=True))
    answer: list[Tensor | None] = [None] * len(inputs)
    after = extract([*values], [nodes.cotangents[i] for i in plan.wanted], body.graph.name).graph
    for i, value in zip(plan.wanted, evaluate(after, [*values.values()]), strict=True):
        answer[i if i < n else i - m + sources + 1] = value
    return answer


def _turned(pulls: Sequence[Pull], sources: Sequence[Tensor], rows: int) -> tuple[tuple[Pull, ...], list[Tensor]]:
    """Return the transposes of ``pulls``, which pull the results of their numbers, and their sources."""
    links: list[Tensor] = []
    place: dict[tuple[int, bool], int] = {}
    turned: list[Pull] = []
    for number, pull in enumerate(pulls):
        key = pull.source, pull.sums
        if key not in place:
            place[key] = len(links)
            if pull.sums:
                links.append(sources[pull.source + 1])
            else:
                links += [apply(counting_sort_p, sources[pull.source], rows=rows), sources[pull.source]]
        turned.append(Pull(number, place[key], not pull.sums))
    return tuple(turned), links


def _pulled(pull: Pull, state: Tensor, sources: Sequence[Tensor]) -> Tensor:
    """Return what all rows have pulled of ``state``: of themselves 0, because that was before they were computed."""
    source = sources[pull.source]
    links = sources[pull.source + 1] if pull.sums else source
    own = equal(links, iota(links, (state.shape[0],), 0))
    is_own = reshape(own, (state.shape[0], *[1] * (state.ndim - 1)))
    if pull.sums:
        total: Tensor = apply(segment_sum_p, source, links, where(is_own, 0, state), shape=state.shape)
        return total
    taken: Tensor = where(is_own, 0, apply(take_p, state, source, axis=0))
    return taken


def _waves_jvp(
    tangents: Tangents,
    *inputs: Tensor,
    body: Body,
    advance: Body,
    constants: int,
    sources: int,
    pulls: tuple[Pull, ...],
    reverse: bool,
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the results and their tangents: results of one recurrence, which pulls tangents beside values."""
    graph, n, m = body.graph, constants, len(pulls)
    parts, given = parts_of(inputs, constants, sources), parts_of(tangents, constants, sources)
    known = {i: t for i, t in enumerate([*given.constants, *[None] * m, *given.xs]) if t is not None}
    moving = [i for i, x in enumerate(graph.outputs) if x.aval.dtype.is_inexact]
    sent = [n + j for j, pull in enumerate(pulls) if pull.state in moving]
    active = sorted([*known, *sent])
    wide = with_tangents(graph, active, moving)
    added = dict(zip(active, wide.inputs[len(graph.inputs) :], strict=True))
    ranges = (range(n), range(n, n + m), range(n + m, len(graph.inputs)))
    order = [x for part in ranges for x in (*(wide.inputs[i] for i in part), *(added[i] for i in active if i in part))]
    count = len(graph.outputs)
    also = tuple(Pull(count + moving.index(pulls[i - n].state), *pulls[i - n][1:]) for i in sent)
    results = run(
        Recurrence(
            Body(Graph(order, wide.outputs, {}, graph.name)),
            [*parts.constants, *(known[i] for i in known if i < n)], parts.sources, parts.starts,
            [*parts.xs, *(known[i] for i in known if i >= n)], (*pulls, *also), reverse,
        )
    )  # fmt: skip
    moved = dict(zip(moving, results[count:], strict=True))
    return results[:count], [moved.get(i) for i in range(count)]


jvp.register(waves_p, Together(_waves_jvp))
axes.register(waves_p, LOOPED)
