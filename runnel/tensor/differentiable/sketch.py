"""The tape of a traced function as data, from which a call can rebuild it for derivatives of gradients.

The steps of a part are those of its stretch of the tape, in their order. The rule of a ``custom_vjp`` or a checkpoint
is Python code that belongs to the trace, so it is applied there once more, to a symbolic cotangent, and what it does
becomes steps as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from runnel.core.avals import ShapedArray
from runnel.core.errors import RunnelError
from runnel.core.tables import Op
from runnel.graph.extract import placeholder
from runnel.graph.node import Value
from runnel.tensor import tape, tensor as tensors
from runnel.tensor.differentiable.ends import End, NotDivisible
from runnel.tensor.grad_mode import recording
from runnel.tensor.handle import MultiResultRecord, Record, ResultRecord, passed_on, version
from runnel.tensor.stretch import Stretch
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracing import Trace

SEVERAL: Final = 4  # results of one op or checkpoint; something is made for each choice among them
ORDERS: Final = 3  # how often a rule in Python is drawn inside of what it makes: for derivatives up to the third

Inputs = tuple[Any, ...]  # of a step: numbers of steps before it, or values without a tape


class Leaf(NamedTuple):
    """The tape ends here; ``value`` is the node of what it is, None for the joint node of another part."""

    end: End
    value: Value | None


class Step(NamedTuple):
    """A value with its record: of an op, or of a rule in Python; with neither it hands its cotangent on."""

    value: Value
    op: Op | None
    attrs: dict[str, Any]
    inputs: Inputs
    rule: Rule | None


class Joint(NamedTuple):
    """The joint node of several results: of an op, or of a rule in Python, which has a form for each choice of results
    (their numbers) that cotangents can arrive for; where there are many, for all of them."""

    op: Op | None
    attrs: dict[str, Any]
    inputs: Inputs
    outs: tuple[Value, ...]
    rules: dict[tuple[int, ...], Rule]


class OfSeveral(NamedTuple):
    """Result ``number`` of a joint node."""

    value: Value
    inputs: Inputs
    number: int


Steps = tuple[Leaf | Step | Joint | OfSeveral, ...]


class Rule(NamedTuple):
    """What a rule in Python makes of the cotangents ``seeds``. Its steps go on behind the first ``base`` and the seeds.
    ``problem`` says why there are none."""

    seeds: tuple[Value, ...]
    base: int = 0
    steps: Steps = ()
    results: tuple[tuple[int | None, Value] | None, ...] = ()  # of each cotangent its step, if it has one, and value
    problem: str = ""

    def answers(self) -> list[Value]:
        """The values of the cotangents."""
        return [result[1] for result in self.results if result is not None]

    def values(self) -> list[Value]:
        """All values that it needs."""
        return [*values_of(self.steps), *self.answers()]


def values_of(steps: Iterable[Leaf | Step | Joint | OfSeveral]) -> Iterator[Value]:
    """The values that nodes of the tape hold, those of rules left out."""
    for step in steps:
        if isinstance(step, Joint):
            yield from step.outs
        elif step.value is not None:
            yield step.value
        if not isinstance(step, Leaf):
            yield from (x for x in step.inputs if not isinstance(x, int))


def outline(steps: Steps) -> tuple[Any, ...]:
    """What two tapes of the same graph have in common."""
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
    """Which of several results, by ``numbers``, cotangents can arrive for."""
    distinct = sorted(set(numbers))
    if len(distinct) > SEVERAL:
        raise NotDivisible(f"more than {SEVERAL} results of one op are read in different ways")
    return [chosen for n in range(1, len(distinct) + 1) for chosen in itertools.combinations(distinct, n)]


class Sketcher:
    """Draws the parts of a trace's tape, while the trace is active. ``values`` are those that its nodes hold,
    ``by_rules`` those that rules in Python need, with ``seeds`` for their cotangents."""

    def __init__(self, trace: Trace, end_of: Callable[[Tensor], End]) -> None:
        self._trace = trace
        self._end_of = end_of
        self.values: dict[Value, None] = {}
        self.by_rules: dict[Value, None] = {}
        self.seeds: set[Value] = set()

    def sketch(self, stretch: Stretch) -> Steps:
        """The steps of a part; the last of them is its beginning."""
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
        """``read`` are the numbers of the results that the same part reads."""
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
        """What ``pulled`` makes of cotangents of these avals."""
        seeds, base = tuple([placeholder(one, "cotangent") for one in avals]), len(places)
        self.seeds.update(seeds)
        if not orders:
            return Rule(seeds, problem=f"differentiates a derivative given in Python more than {ORDERS} times")
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
            return Rule(seeds, problem=f"has a derivative given in Python that cannot be differentiated ({problem})")
        results = tuple(
            None if dx is None else (inside[id(dx)] if dx.requires_grad else None, self._value(dx)) for dx in cotangents
        )
        drawn = Rule(seeds, base, steps, results)
        self.by_rules.update(dict.fromkeys(drawn.values()))
        return drawn

    def _value(self, x: Tensor) -> Value:
        return tensors.node_of(x, self._trace)
