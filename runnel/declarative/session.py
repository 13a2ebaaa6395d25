"""Sessions, which keep the values of variables and run what you fetch."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np

from runnel.backends import context as contexts
from runnel.compiler.memory.arena import MemoryPlanner
from runnel.compiler.options import Choices, chosen_by
from runnel.compiler.passes.pipeline import Pipeline
from runnel.core import pytree
from runnel.core.arrays import short_repr
from runnel.core.caching import Recent
from runnel.core.conversion import CASTING
from runnel.core.dtypes import DType, from_numpy
from runnel.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from runnel.declarative.graph import Graph, default_graph
from runnel.declarative.operation import Declared, Operation, PendingError
from runnel.declarative.plan import LONGEST, CompiledPlan, EagerPlan, Plan
from runnel.declarative.state import Placeholder, Variable, VariableOperation, fits
from runnel.declarative.training import Minimize
from runnel.inspection.inspection import Inspection, inspected
from runnel.ops import cast
from runnel.optim.optimizer import Optimizer
from runnel.tensor import tensor as tensors
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable as LiveVariable

_PLANS: Final = 256  # programs of one session
_FETCHED: Final = (Declared, Operation)
_WIDTH: Final = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}  # of kinds: one goes over into a wider one


class Session:
    """Runs operations of ``graph``, by default the current one; a graph can have several sessions.

    Each session has its own values of the graph's variables. A run is one program for the fetches, the feeds and their
    shapes. It is kept, so later runs are one launch. With ``fused=False``, and for more than 4000 operations,
    operations run one by one with the same results. ``passes`` and ``memory_planner`` apply to its programs, as in
    ``rn.compile``.
    """

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        fused: bool = True,
        passes: Pipeline | None = None,
        memory_planner: MemoryPlanner | None = None,
    ) -> None:
        if not isinstance(graph, Graph | None):
            raise ArgumentError(f"[session] graph must be a declared graph; got {short_repr(graph)}.")
        self.graph: Final = default_graph() if graph is None else graph
        self.fused: Final = fused
        self._choices: Final = Choices(**chosen_by("session", passes, memory_planner))
        self._live: dict[VariableOperation, LiveVariable] = {}
        self._optimizers: dict[Minimize, Optimizer] = {}
        self._ready: dict[Any, _Ready] = {}  # by what is fetched and fed, and the feeds' avals
        self._programs: Recent[Any, CompiledPlan] = Recent(_PLANS)
        self._plans: Recent[Any, Plan] = Recent(_PLANS)
        self._closed = False
        self._lock = threading.RLock()

    def run(self, fetches: Any, feed_dict: Mapping[Declared, Any] | None = None) -> Any:
        """Return the values of ``fetches``: a tensor, an operation, or a tree of them (tuples, lists, dicts).

        Only what they need is run. The result has tensors for declared ones and None for operations.

        Args:
            fetches: what to return.
            feed_dict: values for placeholders, and for any other tensors, whose operations need not run then: numbers,
                arrays or tensors of fitting shapes. Dtypes are converted to the declared ones if they keep their kind
                (float64 to float32, integers to floats, but not floats to integers).

        GraphError, ShapeError, DTypeError or ArgumentError if something does not fit. After any error, variables are
        unchanged.
        """
        feeds = _feeds(feed_dict)
        key: Any = fetches if isinstance(fetches, _FETCHED) else tuple(fetches) if type(fetches) is list else None
        if key is not None:
            try:
                values = [_quick(x) for x in feeds.values()]
                ready = self._ready.get((key, *feeds, *[x.aval for x in values]))
            except (TypeError, AttributeError, PendingError):  # nested lists, or feeds that need a conversion
                ready = None
            if ready is not None and ready.holds():
                outputs = ready.run(*values)
                return outputs[0] if ready.single else ready.unpacked(outputs)
        return self._run(fetches, dict(feeds), key)

    def plan(self, fetches: Any, feed_dict: Mapping[Declared, Any] | None = None) -> Plan:
        """Return the plan of a run without running it: its ``operations`` are in the order in which they would run."""
        return self._plan(_fetched(fetches)[0], tuple(_feeds(feed_dict)))

    def program(self, fetches: Any, feed_dict: Mapping[Declared, Any] | None = None) -> Inspection:
        """Return the program of a run without running it: its graph, kernels, schedule, memory and timeline."""
        fetched, _ = _fetched(fetches)
        feeds = dict(_feeds(feed_dict))
        values = [self._value(x, value) for x, value in feeds.items()]
        with self._lock:
            plan = self._plan(fetched, tuple(feeds))
            self._prepare(plan)
            program = self._program(plan, values)
        if isinstance(program, EagerPlan):
            raise GraphError("[session] this run is carried out operation by operation; it has no program.")
        return inspected(program.function.compiled)

    # Variables --------------------------------------------------------------------------------------------------------

    def variable(self, variable: Variable) -> LiveVariable:
        """Return the live Variable with the value of ``variable`` in this session; GraphError if it has none."""
        live = self._live.get(_operation_of(variable))
        if live is None:
            raise GraphError(f"[session] the variable '{variable.name}' has no value in this session.")
        return live

    def optimizer(self, operation: Minimize) -> Optimizer:
        """Return the optimizer of a training operation. Changes of its groups take effect in the next run."""
        with self._lock:
            return self._optimizer(operation)

    def uninitialized(self) -> list[str]:
        """Return the names of the graph's variables that have no value in this session."""
        every = [x for x in self.graph.operations if isinstance(x, VariableOperation)]
        return [x.name for x in every if x not in self._live]

    def close(self) -> None:
        """Release all values and programs; the session cannot run afterwards."""
        with self._lock:
            self._closed = True
            self._live, self._optimizers = {}, {}
            self._plans = Recent(_PLANS)
            self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # The general way --------------------------------------------------------------------------------------------------

    def _run(self, fetches: Any, feeds: dict[Declared, Any], key: Any) -> Any:
        fetched, structure = _fetched(fetches)
        values = [self._value(x, value) for x, value in feeds.items()]
        with self._lock:
            plan = self._plan(fetched, tuple(feeds))
            self._prepare(plan)
            ready = _Ready(self._program(plan, values), fetched, structure, plan, isinstance(fetches, Declared))
            if ready.program.fresh or plan.initializes:
                return self._run_first(ready, values)
            if key is not None and all(isinstance(x, _FETCHED) for x in (key if type(key) is tuple else [key])):
                if len(self._ready) >= _PLANS:
                    self._ready.clear()
                self._ready[(key, *feeds, *[x.aval for x in values])] = ready
        return ready.unpacked(ready.run(*values))

    def _run_first(self, ready: _Ready, values: Sequence[Tensor]) -> Any:
        """Run once and store first values of variables; later runs are planned again."""
        outputs = ready.run(*values)
        fetched = len(ready.plan.fetched)
        for x, value in zip(ready.program.fresh, outputs[fetched:], strict=True):
            self._live[x] = LiveVariable(value, requires_grad=value.dtype.is_float, name=x.name)
        if ready.plan.initializes:
            begun = set(ready.plan.assigned())
            self._optimizers = {x: o for x, o in self._optimizers.items() if begun.isdisjoint(x.variables)}
        self._forget()
        return ready.unpacked(outputs)

    def _forget(self) -> None:
        """Drop the programs, which were made for other variables."""
        self._ready, self._programs = {}, Recent(_PLANS)

    def _plan(self, fetched: tuple[Any, ...], fed: tuple[Declared, ...]) -> Plan:
        if self._closed:
            raise GraphError("[session] it is closed; make another one.")
        plan = self._plans.get((fetched, fed))
        if plan is None or not plan.is_valid:
            for x in (*fetched, *fed):
                graph = x.operation.graph if isinstance(x, Declared) else x.graph
                if graph is not self.graph:
                    raise GraphError(
                        f"[session] '{x.name}' is of the graph '{graph.name}', and the session's is another: "
                        f"'{self.graph.name}'."
                    )
            plan = self._plans[(fetched, fed)] = Plan(self.graph, fetched, fed)
        return plan

    def _prepare(self, plan: Plan) -> None:
        """Raise errors for missing feeds and values, and make the optimizers that ``plan`` needs."""
        fed = set(plan.fed)
        for x in plan.operations:
            if isinstance(x, Placeholder) and x.outputs[0] not in fed:
                raise GraphError(
                    f"[session] the placeholder '{x.name}', declared at {x.where}, is needed and not fed; "
                    "run(fetches, feed_dict={it: value})."
                )
        for x in plan.training:
            self._optimizer(x)

    def _optimizer(self, operation: Minimize) -> Optimizer:
        optimizer = self._optimizers.get(operation)
        if optimizer is None:
            missing = [v.name for v in operation.variables if v not in self._live]
            if missing:
                raise GraphError(
                    f"[session] '{operation.name}' trains variables without a value in this session: "
                    f"{', '.join(missing)}; run their initializer first."
                )
            trained = [self._live[v] for v in operation.variables]
            optimizer = self._optimizers[operation] = operation.optimizer(trained, **operation.hyperparameters)
        return optimizer

    def _program(self, plan: Plan, values: Sequence[Tensor]) -> CompiledPlan | EagerPlan:
        """Return the compiled or eager form of ``plan`` for feeds like ``values``."""
        if not self.fused or len(plan.operations) > LONGEST:
            return EagerPlan(plan, self._live, self._optimizers)
        context = contexts.current()
        key = (plan, *[x.aval for x in values], context, CASTING.dtype)
        program = self._programs.get(key)
        if program is None:
            avals = [x.aval for x in values]
            program = self._programs[key] = CompiledPlan(
                plan, avals, self._live, self._optimizers, context, self._choices
            )
        return program

    def _value(self, x: Any, value: Any) -> Tensor:
        """Return the feed for ``x`` as a tensor of its dtype."""
        if not isinstance(x, Declared):
            raise ArgumentError(f"[session] keys of feed_dict must be declared tensors; got {short_repr(x)}.")
        if isinstance(value, Declared):
            raise ArgumentError(f"[session] '{x.name}' is fed '{value.name}', which is declared; feed its value.")
        dtype = x.static.dtype
        tensor = value.read() if isinstance(value, (Tensor, LiveVariable)) else _array(x, value, dtype)
        if dtype is not None and tensor.dtype is not dtype:
            if not np.can_cast(tensor.dtype.numpy, dtype.numpy, "same_kind"):
                raise DTypeError(f"[session] '{x.name}' is {x.static}; fed {tensor.aval}. Cast it first.")
            tensor = cast(tensor, dtype)
        if not fits(tensor.shape, x.static.shape):
            raise ShapeError(
                f"[session] '{x.name}', declared at {x.operation.where}, is {x.static}; fed {tensor.aval}."
            )
        return tensor


class _Ready:
    """A prepared run, ready to be repeated."""

    __slots__ = ("_casting", "_context", "_places", "_structure", "plan", "program", "run", "single")

    def __init__(
        self,
        program: CompiledPlan | EagerPlan,
        fetched: Sequence[Declared | Operation],
        structure: Any,
        plan: Plan,
        single: bool,
    ) -> None:
        self.program = program
        self.run = program.run
        self.plan = plan
        self.single = single
        self._context, self._casting = contexts.current(), CASTING.dtype
        self._structure = structure
        numbers = iter(range(len(plan.fetched)))
        self._places = [next(numbers) if isinstance(x, Declared) else None for x in fetched]

    def holds(self) -> bool:
        """Return True if the run would be prepared the same way now."""
        return self._context is contexts.current() and self._casting is CASTING.dtype and self.plan.is_valid

    def unpacked(self, outputs: Sequence[Tensor]) -> Any:
        """Return the results, nested like the fetches."""
        leaves = [None if place is None else outputs[place] for place in self._places]
        return pytree.unflatten(self._structure, leaves)


def _feeds(feed_dict: Any) -> Mapping[Declared, Any]:
    if feed_dict is None:
        return {}
    if not isinstance(feed_dict, (dict, Mapping)):  # a dict is told at once
        raise ArgumentError(f"[session] feed_dict must map declared tensors to values; got {short_repr(feed_dict)}.")
    return feed_dict


def _fetched(fetches: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the tensors and operations of a tree of fetches, and its structure."""
    leaves, structure = pytree.flatten(fetches)
    for x in leaves:
        if not isinstance(x, (Declared, Operation)):
            raise ArgumentError(f"[session] fetches must be declared tensors and operations; got {short_repr(x)}.")
    return tuple(leaves), structure


def _quick(value: Any) -> Any:
    """Return a feed as a tensor if that takes no time; other feeds find no prepared run."""
    if value.__class__ is Tensor:
        return value
    return tensors.from_numpy(value, from_numpy(value.dtype), copy=False) if type(value) is np.ndarray else value


def _array(x: Declared, value: Any, dtype: DType | None) -> Tensor:
    try:
        plain = asarray(value)
    except ArgumentError as error:
        told = str(error).removeprefix("[asarray] ")
        raise ArgumentError(f"[session] '{x.name}' is {x.static}, and its feed no array: {told}") from None
    if isinstance(value, np.ndarray) or dtype is None:
        return plain
    # Python numbers: of the dtype that is asked for, if their kind goes over into its
    if _WIDTH[plain.dtype.kind] > _WIDTH[dtype.kind]:
        raise DTypeError(f"[session] '{x.name}' is {x.static}; fed {plain.aval}. Cast it first.")
    return asarray(value, dtype)


def _operation_of(variable: Any) -> VariableOperation:
    if not isinstance(variable, Variable) or not isinstance(variable.operation, VariableOperation):
        raise ArgumentError(f"[session] takes a declared Variable; got {short_repr(variable)}.")
    return variable.operation
