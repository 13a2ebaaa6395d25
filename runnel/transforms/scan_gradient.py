"""The gradient of ``scan``: a scan in the opposite direction over residuals of the forward scan.

A plan for a body and the requested gradients has the further values that the forward scan stacks, the backward body,
and the sums that follow it. Plans are cached by the identity of the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from runnel.core.avals import ShapedArray
from runnel.core.caching import Recent
from runnel.core.dispatch import apply
from runnel.core.records import record
from runnel.core.tables import vjp
from runnel.graph.graph import topological
from runnel.graph.hashing import Body
from runnel.graph.node import Value, applied
from runnel.graph.rewriting import extract, placeholder, zeros
from runnel.ops import concat, expand_dims, narrow, zeros_like
from runnel.ops.control import scan_p
from runnel.ops.elementwise.arithmetic import add_p
from runnel.tensor.differentiable.residuals import to_keep
from runnel.tensor.tensor import Tensor
from runnel.transforms.bodies import Linearized, linearize, with_carries
from runnel.transforms.hoisting import Steps, is_view
from runnel.transforms.sums import Term, terms

_PLANS_PER_GENERATION: Final = 64  # the size of each of two generations of the cache


@record
class GradientPlan:
    """A plan. Numbers count the body's inputs (constants, carries, xs) or its outputs (carries, ys)."""

    forward: Body  # with ``extras`` as further ys
    extras: tuple[ShapedArray, ...]
    linearized: Linearized
    backward: Body | None  # from (constants, cotangents of carries, sums, cotangents of ys, kept)
    constants: tuple[int, ...]  # inputs that the backward body reads
    carries: tuple[int, ...]  # outputs whose cotangents it carries
    sums: tuple[int, ...]  # constants whose cotangents are added up in it
    ys: tuple[int, ...]  # outputs whose cotangents it reads
    residuals: tuple[tuple[Value, int], ...]  # what it reads at each step: an input, or a y by number
    previous: frozenset[Value]  # the residuals that are the y of the previous step
    results: tuple[ShapedArray, ...]  # of one step: cotangents of carries, sums, cotangents of xs, factors
    xs: tuple[int, ...]  # inputs whose cotangents it stacks
    factors: tuple[Value, ...]  # further values that it stacks
    terms: tuple[tuple[int, tuple[Term, ...]], ...]  # constants whose cotangents are summed after it


_PLANS: Final[Recent[Any, GradientPlan]] = Recent(_PLANS_PER_GENERATION)


def plan_of(
    body: Body, constants: int, carries: int, needs_grad: Sequence[bool], seeded: Sequence[bool]
) -> GradientPlan:
    """Return the plan for cotangents of the inputs ``needs_grad`` from cotangents of the outputs ``seeded``."""
    key = (body, body.avals, constants, carries, tuple(needs_grad), tuple(seeded))
    plan = _PLANS.get(key)
    if plan is None:
        plan = _PLANS[key] = _Planner(body, constants, carries, needs_grad, seeded).plan()
    return plan


def clear() -> None:
    """Forget all plans."""
    _PLANS.clear()


class _Planner:
    """Makes one plan."""

    def __init__(
        self, body: Body, constants: int, carries: int, needs_grad: Sequence[bool], seeded: Sequence[bool]
    ) -> None:
        self.body = body
        self.n, self.m = constants, carries
        graph = body.graph
        wanted = [i for i, node in enumerate(graph.inputs) if needs_grad[i] and node.aval.dtype.is_inexact]
        active = with_carries(graph, wanted, self.n, self.m)
        self.carries = tuple(i - self.n for i in active if self.n <= i < self.n + self.m)
        self.ys = tuple(i for i in range(self.m, len(body.graph.outputs)) if seeded[i])
        self.linearized = linearize(body.graph, active, (*self.carries, *self.ys))
        self.linear = self.linearized.linear()
        self.cotangents = self.linearized.cotangents

    def plan(self) -> GradientPlan:
        split = {i: terms(node) for i, node in self.cotangents.items() if i < self.n}
        sums = tuple(i for i, of_input in split.items() if of_input is None)
        sunk = tuple((i, tuple(of_input)) for i, of_input in split.items() if of_input is not None)
        xs = tuple(i for i in self.cotangents if i >= self.n + self.m)
        totals = [placeholder(self.cotangents[i].aval, "sum") for i in sums]
        added = [self._added(total, self.cotangents[i]) for total, i in zip(totals, sums, strict=True)]
        carried = [self.cotangents.get(self.n + j) or zeros(self._input(self.n + j).aval) for j in self.carries]
        outputs = [*carried, *added, *(self.cotangents[i] for i in xs)]
        factors = list(dict.fromkeys(f for _, of_input in sunk for term in of_input for f in term.factors))
        inside = [f for f in factors if self._is_linear(f)]
        outside = [f for f in factors if not self._is_linear(f)]
        residuals = self._residuals([*outputs, *inside], outside, set(totals))
        inside += [f for f in outside if not _is_view_of_known(f, {*residuals, *self._fixed()})]
        return self._assembled(sums, totals, [*outputs, *inside], xs, inside, sunk, residuals)

    def _input(self, number: int) -> Value:
        return self.linearized.inputs[number]

    def _fixed(self) -> tuple[Value, ...]:
        return self.linearized.inputs[: self.n]

    @staticmethod
    def _added(total: Value, cotangent: Value) -> Value:
        return applied(add_p, (total, cotangent), {}, total.aval)

    def _is_linear(self, node: Value) -> bool:
        return node in self.linear or any(x in self.linear for x in node.inputs)

    def _residuals(self, targets: Sequence[Value], factors: Sequence[Value], totals: set[Value]) -> list[Value]:
        """Return the values of the forward pass from which the backward pass computes all others."""
        seeds = {*self.linearized.seeds.values(), *totals}
        read: dict[Value, None] = dict.fromkeys(factors)
        for node in topological(targets):
            if self._is_linear(node) or any(x in totals for x in node.inputs):
                read.update((x, None) for x in node.inputs if not self._is_linear(x) and x not in seeds)
        read.update((x, None) for x in targets if not self._is_linear(x) and not x.is_constant)
        ys = self.linearized.outputs[self.m :]
        free = {*self._fixed(), *self.linearized.inputs[self.n + self.m :], *ys}
        free |= {self._input(self.n + j) for j in range(self.m) if self.linearized.outputs[j] in ys}
        read = {x: None for x in read if not x.is_constant and x not in totals}
        return to_keep(tuple(read), free, recompute=self.body.recompute)

    def _assembled(
        self,
        sums: tuple[int, ...],
        totals: Sequence[Value],
        outputs: list[Value],
        xs: tuple[int, ...],
        factors: list[Value],
        sunk: tuple[tuple[int, tuple[Term, ...]], ...],
        residuals: list[Value],
    ) -> GradientPlan:
        inputs = self.linearized.inputs
        number = {node: i for i, node in enumerate(inputs)}
        results = list(self.linearized.outputs)
        first = self.m
        read: list[tuple[Value, int]] = []
        previous: set[Value] = set()
        constants: list[int] = []
        for node in residuals:
            i = number.get(node)
            if i is not None and i < self.n:
                constants.append(i)
            elif i is not None and i >= self.n + self.m:
                read.append((node, i))
            else:
                source = node
                if i is not None and i < self.n + self.m and node not in results[first:]:
                    source = self.linearized.outputs[i - self.n]
                    previous.add(node)
                if source not in results[first:]:
                    results.append(source)
                read.append((node, results.index(source, first)))
        seeds = [self._seed(j) for j in (*self.carries, *self.ys)]
        carried = seeds[: len(self.carries)]
        arguments = [*(inputs[i] for i in constants), *carried, *totals, *seeds[len(carried) :]]
        arguments += [node for node, _ in read]
        name = self.body.graph.name
        forward = extract(inputs, results, name).graph
        backward = extract(arguments, outputs, f"{name}.backward").graph
        return GradientPlan(
            forward=Body(forward, self.body.recompute),
            extras=tuple(node.aval for node in results[len(self.linearized.outputs) :]),
            linearized=self.linearized,
            backward=Body(backward) if outputs else None,
            constants=tuple(constants),
            carries=self.carries,
            sums=sums,
            ys=self.ys,
            residuals=tuple(read),
            previous=frozenset(previous),
            results=tuple(node.aval for node in outputs),
            xs=xs,
            factors=tuple(factors),
            terms=sunk,
        )

    def _seed(self, number: int) -> Value:
        """Return the input for the cotangent of an output; an unused input if no input depends on it."""
        seed = self.linearized.seeds.get(number)
        if seed is not None:
            return seed
        return placeholder(self.linearized.outputs[number].aval, f"g{number}")


def _is_view_of_known(node: Value, known: set[Value]) -> bool:
    """Return whether ``node`` is one of ``known``, or a view of one."""
    while node not in known and is_view(node):
        node = node.inputs[0]
    return node in known


@vjp.rule(scan_p)
def scan_vjp(
    gs: tuple[Tensor | None, ...],
    outs: tuple[Tensor, ...],
    *inputs: Tensor,
    needs_grad: tuple[bool, ...],
    body: Body,
    constants: int,
    carries: int,
    length: int,
    reverse: bool,
) -> list[Tensor | None]:
    """Return the cotangents of the inputs of a scan."""
    plan = plan_of(body, constants, carries, needs_grad, [g is not None for g in gs])
    if plan.extras:
        outs = apply(
            scan_p, *inputs, body=plan.forward, constants=constants, carries=carries, length=length, reverse=reverse
        )
    if plan.backward is None:
        return [None] * len(inputs)
    stacks = {node: _stack(plan, node, i, inputs, outs, constants, carries, reverse) for node, i in plan.residuals}
    n, seeds = len(plan.carries) + len(plan.sums), [gs[j] for j in plan.carries]
    operands = [inputs[i] for i in plan.constants]
    operands += [zeros_like(outs[j]) if g is None else g for j, g in zip(plan.carries, seeds, strict=True)]
    operands += [zeros_like(inputs[i]) for i in plan.sums]
    operands += [g for j in plan.ys if (g := gs[j]) is not None]
    operands += stacks.values()
    results = apply(
        scan_p,
        *operands,
        body=plan.backward,
        constants=len(plan.constants),
        carries=n,
        length=length,
        reverse=not reverse,
    )
    answer: list[Tensor | None] = [None] * len(inputs)
    for i, value in zip((*(constants + j for j in plan.carries), *plan.sums, *plan.xs), results, strict=False):
        answer[i] = value
    known = Steps(length)
    known.fix(plan.linearized.inputs[:constants], inputs[:constants])
    known.stack(stacks.keys(), stacks.values())
    known.stack(plan.factors, results[len(plan.results) - len(plan.factors) :])
    for i, parts in plan.terms:
        for term in parts:
            known.compute(term.factors)
            value = term.total([known.all_steps(f) for f in term.factors], length)
            before = answer[i]
            answer[i] = value if before is None else before + value
    return answer


def _stack(
    plan: GradientPlan,
    node: Value,
    number: int,
    inputs: Sequence[Tensor],
    outs: Sequence[Tensor],
    constants: int,
    carries: int,
    reverse: bool,
) -> Tensor:
    """Return the values of ``node`` at all steps."""
    if node in plan.previous:
        place = plan.linearized.inputs.index(node)
        return _shifted(inputs[place], outs[number], reverse)
    if node in plan.linearized.inputs[constants + carries :]:
        return inputs[number]
    return outs[number]


def _shifted(first: Tensor, ys: Tensor, reverse: bool) -> Tensor:
    """Return the values of a carry before each step, from its values after each step."""
    length = ys.shape[0]
    start = expand_dims(first, 0)
    if length < 2:
        return start if length else ys
    if reverse:
        both: Tensor = concat([narrow(ys, 0, 1, length - 1), start])
    else:
        both = concat([start, narrow(ys, 0, 0, length - 1)])
    return both
