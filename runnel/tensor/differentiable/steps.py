"""Describe the tape of a traced function as data, from which a call can rebuild it for derivatives of gradients.

The steps of a part are the records of its stretch of the tape, in their order. The rule of a ``custom_vjp`` or a
checkpoint is Python code that belongs to the trace. So it is applied once more while tracing, to a symbolic cotangent,
and what it records becomes steps as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from runnel.core.avals import ShapedArray
from runnel.core.errors import RunnelError
from runnel.core.tables import Op
from runnel.graph.node import Value
from runnel.graph.rewriting import placeholder
from runnel.tensor import tape, tensor as tensors
from runnel.tensor.differentiable.segments import End, NotDivisible, Stretch
from runnel.tensor.grad_mode import recording
from runnel.tensor.handle import MultiResultRecord, Record, ResultRecord, passed_on, version
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracing import Trace

SEVERAL: Final = 4  # results of one op or checkpoint; each choice of some of them is handled separately
ORDERS: Final = 3  # how deep a Python rule is applied inside its own result: enough for third derivatives

Inputs = tuple[Any, ...]  # of a step: numbers of steps before it, or values without a tape


class Leaf(NamedTuple):
    """An end of the tape. ``value`` is its node; None for the joint node of another part."""

    end: End
    value: Value | None


class Step(NamedTuple):
    """A value with the record of an op or of a Python rule; with neither it hands its cotangent on."""

    value: Value
    op: Op | None
    attrs: dict[str, Any]
    inputs: Inputs
    rule: Rule | None


class Joint(NamedTuple):
    """The joint node of several results of an op or of a Python rule. A rule has a form for each choice of results (by
    number) that cotangents can arrive for; if there are many results, only for all of them."""

    op: Op | None
    attrs: dict[str, Any]
    inputs: Inputs
    outs: tuple[Value, ...]
    rules: dict[tuple[int, ...], Rule]


class OfSeveral(NamedTuple):
    """The result ``number`` of a joint node."""

    value: Value
    inputs: Inputs
    number: int


Steps = tuple[Leaf | Step | Joint | OfSeveral, ...]


class Rule(NamedTuple):
    """The steps of a Python rule, applied to the cotangents ``seeds``.

    Its steps follow the first ``base`` steps and the seeds. ``problem`` says why there are none.
    """

    seeds: tuple[Value, ...]
    base: int = 0
    steps: Steps = ()
    results: tuple[tuple[int | None, Value] | None, ...] = ()  # of each cotangent its step, if it has one, and value
    problem: str = ""

    def answers(self) -> list[Value]:
        """Return the values of the cotangents."""
        return [result[1] for result in self.results if result is not None]

    def values(self) -> list[Value]:
        """Return all values that the rule needs."""
        return [*values_of(self.steps), *self.answers()]


def values_of(steps: Iterable[Leaf | Step | Joint | OfSeveral]) -> Iterator[Value]:
    """Yield the values that nodes of the tape hold, except in rules."""
    for step in steps:
        if isinstance(step, Joint):
            yield from step.outs
        elif step.value is not None:
            yield step.value
        if not isinstance(step, Leaf):
            yield from (x for x in step.inputs if not isinstance(x, int))


def outline(steps: Steps) -> tuple[Any, ...]:
    """Return what two tapes of the same graph have in common."""
    rows: list[Any] = []
    for step in steps:
        if isinstance(step, Leaf):
            rows.append(step.end)
            continue
        inputs = tuple([x if isinstance(x, int) else None for x in step.inputs])
        rows.append((step[1], inputs, [(outline(rule.steps), rule.problem) for rule in _rules(step)]))
    return tuple(rows)


def _rules(step: Step | Joint | OfSeveral) -> list[Rule]:
    if isinstance(step, Joint):
        return list(step.rules.values())
    return [step.rule] if isinstance(step, Step) and step.rule is not None else []


def choices(numbers: Iterable[int]) -> list[tuple[int, ...]]:
    """Return the choices of results, by ``numbers``, that cotangents can arrive for."""
    distinct = sorted(set(numbers))
    if len(distinct) > SEVERAL:
        raise NotDivisible(f"more than {SEVERAL} results of one op are read in different ways")
    return [chosen for n in range(1, len(distinct) + 1) for chosen in itertools.combinations(distinct, n)]


class Sketcher:
    """Describes the parts of a trace's tape while the trace is active. ``values`` are held by nodes of the tape,
    ``by_rules`` are needed by Python rules, and ``seeds`` are the cotangents of these rules."""

    def __init__(self, trace: Trace, end_of: Callable[[Tensor], End]) -> None:
        self._trace = trace
        self._end_of = end_of
        self.values: dict[Value, None] = {}
        self.by_rules: dict[Value, None] = {}
        self.seeds: set[Value] = set()

    def sketch(self, stretch: Stretch) -> Steps:
        """Return the steps of a part; the last is its beginning."""
        steps = self._steps(stretch.order, stretch.ends, {}, ORDERS)
        self.values.update(dict.fromkeys(values_of(steps)))
        return steps

    def _steps(self, order: Sequence[Tensor], ends: Collection[int], places: dict[int, int], orders: int) -> Steps:
        steps: list[Leaf | Step | Joint | OfSeveral] = []
        for x in order:
            if id(x) in places:
                continue
            places[id(x)] = len(places)
            if x._record is None or id(x) in ends:
                has_value = x.is_traced or x._storage is not None
                steps.append(Leaf(self._end_of(x), self._value(x) if has_value else None))
            else:
                read = {r.index for t in order if isinstance(r := t._record, ResultRecord) and r.inputs[0] is x}
                steps.append(self._step(x, x._record, read, places, orders))
        return tuple(steps)

    def _step(
        self, x: Tensor, record: Record[Tensor], read: set[int], places: dict[int, int], orders: int
    ) -> Step | Joint | OfSeveral:
        """Return the step of ``x``. ``read`` are the numbers of the results that the same part reads."""
        inputs = tuple([places[id(i)] if i.requires_grad else self._value(i) for i in record.inputs])
        if isinstance(record, MultiResultRecord):
            if record.op is not None:
                return Joint(record.op, record.attrs, inputs, tuple(map(self._value, record.outs)), {})
            numbers = sorted(read) or range(len(record.outs))
            chosen = choices(numbers) if len(numbers) <= SEVERAL else [tuple(numbers)]
            rules = {one: self._rule_of_several(x, record, one, places, orders) for one in chosen}
            return Joint(None, record.attrs, inputs, (), rules)
        if isinstance(record, ResultRecord):
            return OfSeveral(self._value(x), inputs, record.index)
        is_python = record.op is None and record.rule is not passed_on
        rule = self._rule([x.aval], lambda gs: record.rule(gs[0], x), places, orders) if is_python else None
        return Step(self._value(x), record.op, record.attrs, inputs, rule)

    def _rule_of_several(
        self,
        x: Tensor,
        record: MultiResultRecord[Tensor],
        chosen: tuple[int, ...],
        places: dict[int, int],
        orders: int,
    ) -> Rule:
        avals = [record.outs[number].aval for number in chosen]
        return self._rule(avals, lambda gs: record.rule(dict(zip(chosen, gs, strict=True)), x), places, orders)

    def _rule(
        self, avals: Sequence[ShapedArray], pulled: Callable[[list[Tensor]], Any], places: dict[int, int], orders: int
    ) -> Rule:
        """Apply the rule ``pulled`` to cotangents of these avals, and describe what it records."""
        seeds, base = tuple([placeholder(one, "cotangent") for one in avals]), len(places)
        self.seeds.update(seeds)
        if not orders:
            return Rule(seeds, problem=f"differentiates a Python rule more than {ORDERS} times")
        gs = list(map(tensors.symbolic, seeds))
        for g in gs:
            g.requires_grad = True
        inside = {**places, **{id(g): base + i for i, g in enumerate(gs)}}
        try:
            with recording(True):
                values = [dx() if callable(dx) else dx for dx in pulled(gs)]
                cotangents = [None if dx is None else version(dx) for dx in values]
                order = tape.needed_order([dx for dx in cotangents if dx is not None], frozenset(inside))
            steps = self._steps(order, (), inside, orders - 1)
        except (NotDivisible, RunnelError) as problem:
            return Rule(seeds, problem=f"has a Python rule that cannot be differentiated ({problem})")
        results = tuple(
            None if dx is None else (inside[id(dx)] if dx.requires_grad else None, self._value(dx)) for dx in cotangents
        )
        drawn = Rule(seeds, base, steps, results)
        self.by_rules.update(dict.fromkeys(drawn.values()))
        return drawn

    def _value(self, x: Tensor) -> Value:
        return tensors.node_of(x, self._trace)
