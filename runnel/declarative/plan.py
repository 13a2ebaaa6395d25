"""The plan of a run: what it needs, in which order, as one program for feeds of certain shapes and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from runnel.backends.context import CompileContext
from runnel.compile.graphs import GraphFunction
from runnel.compiler.options import NO_CHOICES, Choices
from runnel.core.avals import ShapedArray
from runnel.core.dtypes import from_numpy
from runnel.core.errors import GraphError
from runnel.declarative.graph import Graph
from runnel.declarative.operation import Declared, Operation
from runnel.declarative.order import ancestors, ordered
from runnel.declarative.replay import Replay
from runnel.declarative.state import Assign, Group, VariableOperation
from runnel.declarative.training import Minimize
from runnel.graph.node import InputKind
from runnel.optim.optimizer import Optimizer
from runnel.tensor import tensor as tensors
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracing import Trace, activate
from runnel.tensor.variable import TracedVariables, Variable

LONGEST: Final = 4000  # operations of one program; a longer run is carried out operation by operation


class Plan:
    """What a run of ``fetched`` with feeds for ``fed`` does. ``operations`` are those that it runs, in their order."""

    def __init__(self, graph: Graph, fetched: Sequence[Declared | Operation], fed: Sequence[Declared]) -> None:
        self.fed: Final = tuple(fed)
        self.fetched: Final = tuple([x for x in fetched if isinstance(x, Declared)])
        here = set(fed)
        tops = [x.operation if isinstance(x, Declared) else x for x in fetched if x not in here]
        self.operations: Final = ordered(ancestors(tops, here))
        self._graph = graph
        self._version = graph.version
        self.variables: Final = [x for x in self.operations if isinstance(x, VariableOperation)]
        self.initialises: Final = any(isinstance(x, Group) and x.initialises for x in self.operations)
        self.training: Final = [x for x in self.operations if isinstance(x, Minimize)]

    @property
    def is_valid(self) -> bool:
        """Whether no control dependencies have been added since."""
        return self._graph.version == self._version

    def assigned(self) -> list[VariableOperation]:
        """The variables that it gives other values, but for the steps of optimizers."""
        return list(dict.fromkeys(v for x in self.operations if isinstance(x, Assign) for v in [_target(x)]))


def _target(x: Assign) -> VariableOperation:
    if not isinstance(x.variable, VariableOperation):
        raise GraphError(f"[assign] '{x.variable.name}' is no variable.")
    return x.variable


class CompiledPlan:
    """A plan as one program, for feeds of ``avals`` and the variables that have a value.

    Called with the feeds, it gives the fetched tensors, and the first values of variables that had none: ``fresh``.
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
        trace = Trace(tensors.serial_now(), context.device)
        replay = Replay(plan.operations, live, optimizers)
        with activate(trace):
            inputs = [trace.input(x, InputKind.ARGUMENT, t.name) for x, t in zip(avals, plan.fed, strict=True)]
            values = replay({t: tensors.symbolic(x) for t, x in zip(plan.fed, inputs, strict=True)})
            self.fresh: Final = tuple(replay.fresh)
            results = [*[values[x] for x in plan.fetched], *replay.fresh.values()]
            nodes = [tensors.node_of(x.detach(), trace) for x in results]
            traced = trace.facet(TracedVariables)
            updates = {traced.nodes[v]: tensors.node_of(traced.values[v], trace) for v in traced.written}
        if trace.deferred_error is not None:
            raise trace.deferred_error
        graph = trace.graph(nodes, updates, "session")
        variables: dict[Any, Variable] = {node: v for v, node in traced.nodes.items()}
        captures: dict[Any, Tensor] = {node: _live(value) for value, node in trace.captures.values()}
        numbers: dict[Any, Any] = {node: getter for getter, node in trace.scalars}
        self.function: Final = GraphFunction(
            graph, variables, context, choices=choices, captures=captures, numbers=numbers
        )
        self.run: Final[Callable[..., tuple[Tensor, ...]]] = self.function.call


def _live(value: Any) -> Tensor:
    """A tensor, or an array, that a function read from outside."""
    return value if isinstance(value, Tensor) else tensors.from_numpy(value, from_numpy(value.dtype), copy=True)


class EagerPlan:
    """A plan that is carried out operation by operation: the same results, and programs of single ops."""

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
        """The fetched tensors and the values of ``fresh``; on an error variables are as they were."""
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
        return (*[values[x].detach() for x in self._plan.fetched], *[replay.fresh[v] for v in self.fresh])
