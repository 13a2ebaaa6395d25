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
from runnel.optim.optimizer import Optimizer
from runnel.tensor import tensor as tensors
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer
from runnel.tensor.variable import Variable

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
        tracer = Tracer(context.device)
        replay = Replay(plan.operations, live, optimizers)
        with tracer:
            values = replay({t: tracer.argument(x, t.name) for x, t in zip(avals, plan.fed, strict=True)})
            self.fresh: Final = tuple(replay.fresh)
            results = [*[values[x] for x in plan.fetched], *replay.fresh.values()]
            graph = tracer.graph([x.detach() for x in results], "session")
        captures = {node: _live(value) for node, value in tracer.captures.items()}
        self.function: Final = GraphFunction(
            graph, tracer.bound_variables, context, choices=choices, captures=captures, numbers=tracer.numbers
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
