"""Infer shapes and dtypes in a graph from the shapes of some tensors, forwards and backwards until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from runnel.core.arrays import short_repr
from runnel.core.dtypes import DType
from runnel.core.errors import ArgumentError, DTypeError, ShapeError
from runnel.declarative import inference
from runnel.declarative.calls import Call, Slot
from runnel.declarative.gradients import Gradient
from runnel.declarative.operation import Declared, Dims, Operation, Static, closure, ordered
from runnel.declarative.state import Assign, Placeholder, Read, VariableOperation, as_dims, as_operation

InputRule = Callable[..., Mapping[int, Dims]]
_RULES: Final[dict[Any, InputRule]] = {}  # by the function that is called


def infers_inputs(function: Callable[..., Any]) -> Callable[[InputRule], InputRule]:
    """Register a rule that infers shapes of arguments from other arguments in calls of ``function``.

    The rule takes the arguments of the call, with a ``Static`` in place of each tensor, and returns shapes by the
    argument's position, for instance a weight's from the data and an attribute.
    """

    def register(rule: InputRule) -> InputRule:
        _RULES[function] = rule
        return rule

    return register


def infer(fetches: Any, shapes: Mapping[Declared, Iterable[int | None]] | None = None) -> dict[Declared, Static]:
    """Return what is known of the tensors that ``fetches`` need if some have the given ``shapes``.

    Forwards, the rules of the ops infer outputs from inputs. Backwards, it infers sizes of inputs for which no other
    size would fit, shapes by the rules of :func:`infers_inputs`, variables from assigned values, and the dtype of an
    input from the input next to it. The graph does not change.

    Raises:
        ShapeError, DTypeError: facts about a tensor contradict each other.
    """
    tops = [as_operation("infer", x) for x in (fetches if isinstance(fetches, (list, tuple)) else [fetches])]
    known = _Knowledge()
    for x, shape in ({} if shapes is None else shapes).items():
        if not isinstance(x, Declared):
            raise ArgumentError(f"[infer] keys of shapes must be declared tensors; got {short_repr(x)}.")
        known.learn(x, Static(as_dims("infer", shape), None))
    operations = ordered(closure(tops))
    while True:
        before = known.facts
        for operation in operations:
            known.look_at(operation)
        for operation in reversed(operations):
            known.look_at(operation)
        if known.facts == before:
            return {x: known.of(x) for operation in operations for x in operation.outputs} | known.learnt


class _Knowledge:
    """The facts found so far; ``facts`` counts them."""

    def __init__(self) -> None:
        self.facts = 0
        self.learnt: dict[Declared, Static] = {}

    def of(self, x: Declared) -> Static:
        return self.learnt.get(x, x.static)

    def learn(self, x: Declared, more: Static) -> None:
        """Combine what is known of ``x`` with ``more``."""
        mine = self.of(x)
        both = Static(_met(x, mine, more), _met_dtype(x, mine.dtype, more.dtype))
        if both != mine:
            self.learnt[x] = both
            self.facts += 1

    def look_at(self, operation: Operation) -> None:
        if isinstance(operation, Call):
            self._look_at_call(operation)
        elif isinstance(operation, Gradient):
            for i, x in zip(operation.asked, operation.outputs, strict=True):
                self._same(x, operation.of.inputs[i])
            for i, x in zip(operation.through, operation.inputs[len(operation.of.inputs) :], strict=True):
                self._same(x, operation.of.outputs[i])
        elif isinstance(operation, Assign):
            self._same(operation.inputs[0], operation.outputs[0])
            self._same(operation.inputs[0], operation.variable.outputs[0])
        elif isinstance(operation, Read):
            self._same(operation.outputs[0], operation.variable.outputs[0])
        elif isinstance(operation, VariableOperation) and operation.initial is not None:
            self._same(operation.initial, operation.outputs[0])

    def _same(self, x: Declared, y: Declared) -> None:
        self.learn(x, self.of(y))
        self.learn(y, self.of(x))

    def _look_at_call(self, call: Call) -> None:
        rule = _RULES.get(call.function)
        if rule is not None:
            for i, shape in self._by_rule(call, rule).items():
                self.learn(call.inputs[i], Static(shape, None))
        self._learn_dtypes(call)
        inputs, hints = [self.of(x) for x in call.inputs], call.arguments.sizes()
        for x, forced in zip(call.inputs, inference.forced_sizes(call.evaluate, inputs, hints), strict=True):
            self.learn(x, forced)
        inputs = [self.of(x) for x in call.inputs]
        outputs, _ = inference.outputs(call.name, call.evaluate, (call.function, call.arguments), inputs, hints)
        for x, static in zip(call.outputs, outputs, strict=True):
            self.learn(x, static)

    def _by_rule(self, call: Call, rule: InputRule) -> dict[int, Dims]:
        """Return shapes of inputs, by number, that a rule infers."""
        args, kwargs = call.arguments.filled([self.of(x) for x in call.inputs])
        slots, _ = call.arguments.filled([Slot(i) for i in range(len(call.inputs))])
        return {
            slots[place].number: shape for place, shape in rule(*args, **kwargs).items() if type(slots[place]) is Slot
        }

    def _learn_dtypes(self, call: Call) -> None:
        """Give placeholders and variables of unknown dtype the dtype of the floating tensor next to them."""
        beside = next((d for x in call.inputs if (d := self.of(x).dtype) is not None and d.is_float), None)
        for x in call.inputs:
            if beside is not None and self.of(x).dtype is None and isinstance(x.operation, _GIVEN):
                self.learn(x, Static(None, beside))


_GIVEN: Final = (Placeholder, VariableOperation)


def _met(x: Declared, mine: Static, more: Static) -> Dims | None:
    if mine.shape is None or more.shape is None:
        return more.shape if mine.shape is None else mine.shape
    if len(mine.shape) != len(more.shape) or any(
        None not in pair and pair[0] != pair[1] for pair in zip(mine.shape, more.shape, strict=True)
    ):
        raise ShapeError(
            f"[infer] '{x.name}', declared at {x.operation.where}, is {mine}, and would have to be {more}."
        )
    return tuple([m if n is None else n for n, m in zip(mine.shape, more.shape, strict=True)])


def _met_dtype(x: Declared, mine: DType | None, more: DType | None) -> DType | None:
    if mine is not None and more is not None and mine is not more:
        raise DTypeError(f"[infer] '{x.name}' is {mine.name}, and would have to be {more.name}.")
    return more if mine is None else mine
