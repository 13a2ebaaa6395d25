"""Rebuild the tape of one call op by op from its residuals, for derivatives of gradients.

The result is the tape that an eager run would have left: the same records in the same order, with the values that
Variables, arrays and random numbers had at the time of the call. No user code runs again.

A backward program returns gradients without a tape. Each gradient gets a separate record (:class:`LateRecord`). The
first walk of the tape that meets one rebuilds the call's tape, and the gradient from it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from runnel.core.avals import aval
from runnel.core.dtypes import float32
from runnel.core.errors import GradientError
from runnel.graph.graph import topological
from runnel.graph.node import Node, Result, Value
from runnel.tensor import bodies, tape, tensor as tensors
from runnel.tensor.differentiable.segments import OF_VARIABLES, End, Stretch
from runnel.tensor.differentiable.steps import SEVERAL, Joint, Leaf, OfSeveral, Rule, Step, Steps, values_of
from runnel.tensor.grad_mode import recording
from runnel.tensor.handle import MultiResultRecord, Record, ResultRecord, linked, passed_on, plain, version
from runnel.tensor.tensor import Tensor

Known = dict[Value, Tensor]

_MANY: Final = f"checkpoints a function of more than {SEVERAL} results, some of which get no gradient"


def evaluate(values: Iterable[Value], known: Known) -> None:
    """Compute the values that are not known yet, and add them to ``known``."""
    results: dict[Node, tuple[Any, ...]] = {}
    with recording(False):
        for value in topological(values, known):
            if value in known:
                continue
            if isinstance(value, Result):
                if value.node not in results:
                    results[value.node] = bodies.results(value.node, [known[x] for x in value.inputs])
                known[value] = results[value.node][value.index]
            else:
                known[value] = bodies.leaf(value)


def unfold(
    steps: Steps,
    root: Tensor,
    known: Known,
    read: Collection[Value],
    end: Callable[[End], Tensor | None],
    name: str,
) -> Stretch:
    """Make ``root``, where the steps of a part begin, lead to its ends by a tape of single ops.

    ``known`` are values, to which more are added. Values that no rule will ``read`` are not computed and are NaN."""
    values = list(values_of(steps))
    evaluate([x for x in values if x in read], known)
    known = known | {x: _unread(x) for x in values if x not in known}  # only of this part: another part may read them
    unfolding = _Unfolding(known, read, end, name)
    nodes = unfolding.nodes(steps[:-1], [])
    ends = {id(x) for x, step in zip(nodes, steps[:-1], strict=True) if isinstance(step, Leaf)}
    first = steps[-1]
    nodes.append(root)
    record = unfolding.record(first, nodes)
    if root._storage is None and not isinstance(first, Joint) and first.value is not None:
        _take_value(root, known[first.value])
    root._record = record
    return Stretch(nodes, ends)


class _Unfolding:
    """Makes tensors with records from steps."""

    def __init__(self, known: Known, read: Collection[Value], end: Callable[[End], Tensor | None], name: str) -> None:
        self.known = known
        self.read = read
        self.end = end
        self.name = name

    def nodes(self, steps: Steps, nodes: list[Tensor]) -> list[Tensor]:
        """Add the tensors of the steps to ``nodes``."""
        for step in steps:
            if isinstance(step, Leaf):
                nodes.append(self._at_end(step))
                continue
            twin = _joint(step) if isinstance(step, Joint) else self.known[step.value]._twin()
            twin.requires_grad, twin._record = True, self.record(step, nodes)
            nodes.append(twin)
        return nodes

    def record(self, step: Leaf | Step | Joint | OfSeveral, nodes: list[Tensor]) -> Record[Tensor]:
        if isinstance(step, Leaf):
            raise TypeError("the tape ends at a leaf")
        inputs = tuple([nodes[x] if isinstance(x, int) else self.known[x] for x in step.inputs])
        if isinstance(step, OfSeveral):
            return ResultRecord(inputs[0], step.number)
        if isinstance(step, Joint):
            rules = {chosen: self._applied(rule, nodes) for chosen, rule in step.rules.items()}
            outs = tuple([self.known[x] for x in step.outs])
            rule = _Chosen(rules, _Refused(_MANY, self.name)) if rules else None
            return MultiResultRecord(step.op, inputs, step.attrs, outs, rule)
        return Record(step.op, inputs, step.attrs, self._rule(step, nodes))

    def _rule(self, step: Step, nodes: list[Tensor]) -> Callable[[Tensor, Tensor], Any] | None:
        if step.op is not None:
            return None
        rule = step.rule
        return passed_on if rule is None else self._applied(rule, nodes)

    def _applied(self, rule: Rule, nodes: list[Tensor]) -> Callable[..., Any]:
        return _Refused(rule.problem, self.name) if rule.problem else _Applied(self, rule, nodes)

    def _at_end(self, leaf: Leaf) -> Tensor:
        """Return the tensor where the tape ends, with its value at the time of the call."""
        tensor = self.end(leaf.end)
        if leaf.value is None:
            if tensor is None:
                raise LookupError(f"{leaf.end} has neither a value nor a node")
            return tensor
        value = self.known[leaf.value]
        if tensor is None:
            tensor = value._twin()
            tensor.requires_grad = True
        elif tensor._storage is None:
            _take_value(tensor, value)
        elif leaf.end.kind in OF_VARIABLES and leaf.value in self.read and not _is_same_memory(tensor, value):
            return linked(value, tensor)  # the memory of the node has changed since the call
        return tensor


class _Applied:
    """A Python rule as it was described: a function of cotangents and of the node that they are for."""

    def __init__(self, unfolding: _Unfolding, rule: Rule, nodes: list[Tensor]) -> None:
        self._unfolding = unfolding
        self._rule = rule
        self._nodes = nodes

    def __call__(self, *cotangents: Tensor) -> list[Tensor | None]:
        *gs, out = cotangents
        unfolding, rule = self._unfolding, self._rule
        known = {**unfolding.known, **dict(zip(rule.seeds, map(plain, gs), strict=True))}
        if not out.requires_grad:  # no more is asked for
            evaluate(rule.answers(), known)
            return [None if result is None else known[result[1]] for result in rule.results]
        evaluate(rule.values(), known)
        inside = _Unfolding(known, unfolding.read, unfolding.end, unfolding.name)
        nodes = inside.nodes(rule.steps, [*self._nodes[: rule.base], *gs])
        return [
            None if result is None else known[result[1]] if result[0] is None else nodes[result[0]]
            for result in rule.results
        ]


class _Chosen:
    """The rule of a joint node, with a form for each choice of results (by number) that have cotangents."""

    def __init__(self, rules: dict[tuple[int, ...], Callable[..., Any]], otherwise: Callable[..., Any]) -> None:
        self._rules = rules
        self._otherwise = otherwise

    def __call__(self, gs: dict[int, Tensor], out: Tensor) -> Any:
        chosen = tuple(sorted(gs))
        return self._rules.get(chosen, self._otherwise)(*[gs[number] for number in chosen], out)


class _Refused:
    """The rule of a step that cannot be rebuilt."""

    def __init__(self, problem: str, name: str) -> None:
        self._sentence = (
            f"[backward] '{name}' {problem}, so its gradients cannot be differentiated outside; differentiate inside "
            "the compiled function, or call the function without compiling it."
        )

    def __call__(self, *cotangents: Any) -> Any:
        raise GradientError(self._sentence)


def _unread(value: Value) -> Tensor:
    """Return NaNs in place of a value that is not read."""
    filler = tensors.constant(float("nan"), value.aval.dtype)
    return tensors.from_storage(value.aval, filler._storage, 0, (0,) * value.aval.ndim)


def _take_value(tensor: Tensor, value: Tensor) -> None:
    tensor._storage, tensor._layout = value._storage, value._layout


def _is_same_memory(x: Tensor, y: Tensor) -> bool:
    return x._storage is y._storage and x._layout[0] == y._layout[0]


def _joint(step: Joint) -> Tensor:
    return tensors.from_storage(step.outs[0].aval if step.outs else aval((), float32), None)


class LateGradients:
    """The cotangents of one part, which ``compute`` returns with their tape; it is called at most once."""

    def __init__(self, compute: Callable[[], Sequence[Tensor | None]]) -> None:
        self._compute = compute
        self._gradients: Sequence[Tensor | None] | None = None
        self._twins: list[tuple[int, weakref.ref[Tensor]]] = []

    def twin(self, g: Tensor, place: int) -> Tensor:
        """Return the cotangent at ``place`` in a form that can be differentiated."""
        twin = g._twin()
        twin.requires_grad, twin._record = True, LateRecord(self, place)
        self._twins.append((place, weakref.ref(twin)))
        return twin

    def at(self, place: int) -> Tensor | None:
        """Return the cotangent with its tape. From now on the twins are handles of such cotangents."""
        if self._gradients is None:
            gradients = self._compute()
            for number, reference in self._twins:
                twin, g = reference(), gradients[number]
                if twin is not None and g is not None and type(twin._record) is LateRecord:
                    _become_handle(twin, g)
            self._gradients = gradients
            tape.REPLACED.count += 1
        return self._gradients[place]


class LateRecord(Record[Tensor]):
    """The record of a gradient whose tape does not exist yet."""

    __slots__ = ("_late", "_place")

    def __init__(self, late: LateGradients, place: int) -> None:
        super().__init__(None, (), {}, passed_on)
        self._late = late
        self._place = place

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        g = None if self.freed else self._late.at(self._place)
        return () if g is None else (version(g),)


def _become_handle(twin: Tensor, g: Tensor) -> None:
    """Make ``twin`` another handle of the node of ``g``, also for records that have read it."""
    twin._first = twin._version = version(g)
    twin.requires_grad, twin._record = g.requires_grad, Record(None, (g,), {}, passed_on)
    twin._is_rebound = True
