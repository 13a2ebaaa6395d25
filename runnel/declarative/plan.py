"""Plans and runs: the operations of a run in order, as one program for feeds of certain avals, or one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from runnel.backends.context import CompileContext
from runnel.compiler.options import NO_CHOICES, Choices
from runnel.core.avals import ShapedArray
from runnel.core.dtypes import from_numpy
from runnel.core.errors import GraphError
from runnel.declarative.calls import Call
from runnel.declarative.gradients import Gradient, pullback
from runnel.declarative.graph import Graph
from runnel.declarative.graph_function import GraphFunction
from runnel.declarative.operation import Declared, Operation, ancestors, ordered
from runnel.declarative.state import Assign, Group, VariableOperation
from runnel.declarative.training import Minimize
from runnel.optim.optimizer import Optimizer
from runnel.tensor import tensor as tensors
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer
from runnel.tensor.variable import Variable


class Replay:
    """One run of operations in ``order``, traced or eager.

    ``live`` are the variables with a value in the session, ``optimizers`` belong to its training operations, and
    ``fresh`` are first values of the other variables.
    """

    def __init__(
        self,
        order: Iterable[Operation],
        live: Mapping[VariableOperation, Variable],
        optimizers: Mapping[Minimize, Optimizer],
    ) -> None:
        self._order: Final = list(order)
        self._live = live
        self._optimizers = optimizers
        self._pullbacks: dict[Operation, Callable[..., Any]] = {}
        self._differentiated = {x.of for x in self._order if isinstance(x, Gradient)}
        self.fresh: dict[VariableOperation, Tensor] = {}

    def __call__(self, fed: Mapping[Declared, Tensor]) -> dict[Declared, Tensor]:
        """Return the value of every tensor, including the ``fed`` ones."""
        values: dict[Declared, Any] = dict(fed)
        for operation in self._order:
            inputs = [values[x] for x in operation.inputs]
            try:
                outputs = self._computed(operation, inputs)
            except Exception as error:
                error.add_note(f"in operation '{operation.name}', declared at {operation.where}")
                raise
            for x, value in zip(operation.outputs, outputs, strict=True):
                values.setdefault(x, value)
        return values

    def _computed(self, operation: Operation, inputs: Sequence[Any]) -> Sequence[Any]:
        if isinstance(operation, (Call, Gradient)) and operation in self._differentiated:
            leaves, self._pullbacks[operation] = pullback(operation.evaluate, inputs)
            return leaves
        return operation.compute(inputs, self)

    # What operations ask ----------------------------------------------------------------------------------------------

    def read(self, variable: VariableOperation) -> Tensor:
        """Return the current value of a variable."""
        if variable in self.fresh:
            return self.fresh[variable]
        if variable not in self._live:
            raise GraphError(
                f"[session] the variable '{variable.name}', declared at {variable.where}, has no value in this "
                "session; run its initializer, or assign something, first."
            )
        return self._live[variable].read().without_tape()

    def assign(self, variable: VariableOperation, value: Tensor) -> None:
        """Set the value of a variable."""
        if variable in self._live:
            self._live[variable].assign(value)
        else:
            self.fresh[variable] = value.without_tape()

    def train(self, operation: Minimize, gradients: Sequence[Tensor]) -> None:
        """Take one step of the optimizer of ``operation``."""
        trained = [self._live[v] for v in operation.variables]
        for parameter, g in zip(trained, gradients, strict=True):
            parameter.grad = g.without_tape()
        self._optimizers[operation].step()
        for parameter in trained:
            parameter.grad = None

    def pullback(self, operation: Operation) -> Callable[..., Any] | None:
        """Return the pullback of ``operation`` if it ran before."""
        return self._pullbacks.get(operation)


LONGEST: Final = 4000  # operations of one program; a longer run is carried out operation by operation


class Plan:
    """The plan of a run of ``fetched`` with feeds for ``fed``. ``operations`` are in the order in which they run."""

    def __init__(self, graph: Graph, fetched: Sequence[Declared | Operation], fed: Sequence[Declared]) -> None:
        self.fed: Final = tuple(fed)
        self.fetched: Final = tuple([x for x in fetched if isinstance(x, Declared)])
        here = set(fed)
        tops = [x.operation if isinstance(x, Declared) else x for x in fetched if x not in here]
        self.operations: Final = ordered(ancestors(tops, here))
        self._graph = graph
        self._version = graph.version
        self.variables: Final = [x for x in self.operations if isinstance(x, VariableOperation)]
        self.initializes: Final = any(isinstance(x, Group) and x.initializes for x in self.operations)
        self.training: Final = [x for x in self.operations if isinstance(x, Minimize)]

    @property
    def is_valid(self) -> bool:
        """True if no control dependencies have been added since."""
        return self._graph.version == self._version

    def assigned(self) -> list[VariableOperation]:
        """Return the variables that it changes, except by steps of optimizers."""
        return list(dict.fromkeys(v for x in self.operations if isinstance(x, Assign) for v in [_target(x)]))


def _target(x: Assign) -> VariableOperation:
    if not isinstance(x.variable, VariableOperation):
        raise GraphError(f"[assign] '{x.variable.name}' is not a variable.")
    return x.variable


class CompiledPlan:
    """A plan as one program, for feeds of ``avals`` and the variables that have a value.

    It takes the feeds and returns the fetched tensors, and the first values of the variables ``fresh``, which had none.
    """

    def __init__(
        self,
        plan: Plan,
        avals: Sequence[ShapedArray],
        live: Mapping[VariableOperation, Variable],
        optimizers: Mapping[Minimize, Optimizer],
        context: CompileContext,
        choices: Choices = NO_CHOICES,
    ) -> None:
        tracer = Tracer(context.device)
        replay = Replay(plan.operations, live, optimizers)
        with tracer:
            values = replay({t: tracer.argument(x, t.name) for x, t in zip(avals, plan.fed, strict=True)})
            self.fresh: Final = tuple(replay.fresh)
            results = [*[values[x] for x in plan.fetched], *replay.fresh.values()]
            graph = tracer.graph([x.without_tape() for x in results], "session")
        captures = {node: _live(value) for node, value in tracer.captures.items()}
        self.function: Final = GraphFunction(
            graph, tracer.bound_variables, context, choices=choices, captures=captures, numbers=tracer.numbers
        )
        self.run: Final[Callable[..., tuple[Tensor, ...]]] = self.function.call


def _live(value: Any) -> Tensor:
    """Return a tensor or array that a function read from outside as a tensor."""
    return value if isinstance(value, Tensor) else tensors.from_numpy(value, from_numpy(value.dtype), copy=True)


class EagerPlan:
    """A plan executed operation by operation, with the same results."""

    def __init__(
        self,
        plan: Plan,
        live: Mapping[VariableOperation, Variable],
        optimizers: Mapping[Minimize, Optimizer],
    ) -> None:
        self._plan = plan
        self._live = live
        self._optimizers = optimizers
        self.fresh = tuple([v for v in plan.assigned() if v not in live])
        self._changed = [live[v] for v in plan.assigned() if v in live]
        self._changed += [live[v] for x in plan.training for v in x.variables]

    def run(self, *fed: Tensor) -> tuple[Tensor, ...]:
        """Return the fetched tensors and the values of ``fresh``; after an error variables are unchanged."""
        before = [(v, v.read()) for v in self._changed]
        states = [(x, x.state_dict()) for x in self._optimizers.values()]
        replay = Replay(self._plan.operations, self._live, self._optimizers)
        try:
            values = replay(dict(zip(self._plan.fed, fed, strict=True)))
        except BaseException:
            for v, value in before:
                v.assign(value)
            for optimizer, state in states:
                optimizer.load_state_dict(state)
            raise
        return (*[values[x].without_tape() for x in self._plan.fetched], *[replay.fresh[v] for v in self.fresh])
