"""``checkpoint``: recompute intermediate values in the backward pass instead of storing them.

See A. Griewank and A. Walther, "Algorithm 799: revolve" (2000), and T. Chen et al., "Training deep nets with sublinear
memory cost" (2016). The backward pass hands on the cotangents one by one in the order of the function's own tape, so
sums of gradients have the same bits as without a checkpoint.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from runnel.core import pytree
from runnel.core.avals import aval
from runnel.core.conversion import CASTING, casting
from runnel.core.dtypes import float32
from runnel.core.errors import GradientError
from runnel.tensor import tape, tensor as tensors, tracing
from runnel.tensor.differentiable.segments import Stretch
from runnel.tensor.grad_mode import RECORDING, recording
from runnel.tensor.handle import MultiResultRecord, Record, ResultRecord, origin, version
from runnel.tensor.levels import every_component
from runnel.tensor.snapshot import FirstReadings
from runnel.tensor.tensor import Tensor
from runnel.tensor.trace import Repetition
from runnel.tensor.tracing import Trace
from runnel.tensor.variable import TracedVariables, Variable
from runnel.transforms.gradients import alias


def checkpoint(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return ``fn(*args, **kwargs)``; the backward pass runs ``fn`` again instead of keeping intermediate values.

    Without arguments, return a function that does this with its arguments: ``rn.checkpoint(fn)(x)``, or a decorator.

    The second run reads the same values of Variables as the first, including the random state, so it draws the same
    numbers. Its assignments to Variables have no effect. Otherwise ``fn`` must depend only on its arguments. Gradients
    flow to the tensors among the arguments, to Variables that ``fn`` reads, and to tensors from outside. Checkpoints
    can be nested.

    Raises:
        GradientError: the second run computes different values from the first.
    """
    if args or kwargs:
        return _Block(fn, args, kwargs).run() if RECORDING.get() else fn(*args, **kwargs)

    @functools.wraps(fn, updated=())
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return _Block(fn, args, kwargs).run() if RECORDING.get() else fn(*args, **kwargs)

    return checkpointed


class _Run(NamedTuple):
    """One run of the function: its results, and its part of the tape."""

    outputs: list[Any]
    structure: pytree.Structure
    stretch: Stretch
    sources: dict[int, Tensor]  # from the id of a leaf to the tensor that it shows

    def cotangents(self, seeds: dict[int, Tensor], create_graph: bool) -> list[Any]:
        """Return the cotangents of the readings, from the cotangents of some outputs by position."""
        return self.stretch.cotangents([(self.outputs[place], g) for place, g in seeds.items()], create_graph)


class _Block:
    """A function with its arguments, which runs now and again in each backward pass."""

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.fn = fn
        self.leaves, self.structure = pytree.flatten((args, kwargs))
        self.values = [x._twin() if isinstance(x, Tensor) else x for x in self.leaves]  # as they are now
        self._leaf_record = Record(None, tuple(x for x in self.leaves if isinstance(x, Tensor)), {})
        trace = tracing.ACTIVE.trace
        self.state: _TracedState | _EagerState = _EagerState() if trace is None else _TracedState(trace)
        self.readings: list[Tensor] = []
        self.cast = CASTING.dtype

    def run(self) -> Any:
        """Return the result, with a tape that goes directly to the readings."""
        with self.state.noted():
            first = self._call()
        self.readings = first.stretch.readings()
        inputs = tuple(first.sources[id(x)] for x in self.readings)
        results = list(first.outputs)
        places: list[int] = []
        for place, x in enumerate(first.outputs):
            if isinstance(x, Tensor) and x.requires_grad:
                handed_through = first.sources.get(id(version(x)))
                if handed_through is not None:
                    results[place] = handed_through
                else:
                    results[place] = x._twin()
                    results[place].requires_grad = True
                    places.append(place)
        if len(places) == 1:
            results[places[0]]._record = Record(None, inputs, {}, functools.partial(self._pull_one, places[0]))
        elif places:
            joint = tensors.from_storage(aval((), float32), None)
            joint.requires_grad = True
            outs = tuple([tensors.from_storage(first.outputs[place].aval, None) for place in places])
            rule = functools.partial(self._pull_several, places)
            joint._record = MultiResultRecord(None, inputs, {}, outs, rule)
            for index, place in enumerate(places):
                results[place]._record = ResultRecord(joint, index)
        return pytree.unflatten(first.structure, results)

    def _call(self) -> _Run:
        born = tensors.serial_now()
        nodes = iter(self._leaf_record.inputs)
        passed = [_own_handle(value, next(nodes)) if isinstance(value, Tensor) else value for value in self.values]
        args, kwargs = pytree.unflatten(self.structure, passed)
        active = tracing.ACTIVE
        before, active.is_by_op = active.is_by_op, True
        try:
            with casting(self.cast), recording(True):
                outputs, structure = pytree.flatten(self.fn(*args, **kwargs))
        finally:
            active.is_by_op = before
        roots = [x for x in outputs if isinstance(x, Tensor) and x.requires_grad]
        given = [(new, old) for new, old in zip(passed, self.leaves, strict=True) if isinstance(old, Tensor)]
        own = {
            id(origin(new)): old
            for (new, old), node in zip(given, self._leaf_record.inputs, strict=True)
            if node.requires_grad  # ``old`` may have been given another value
        }
        sources = _leaves(roots, own, born)
        return _Run(outputs, structure, Stretch(tape.needed_order(roots, frozenset(sources)), sources), sources)

    # Backward ---------------------------------------------------------------------------------------------------------

    def _pull_one(self, place: int, g: Tensor, out: Tensor) -> list[Any]:
        return self._pull({place: g}, out.requires_grad)

    def _pull_several(self, places: Sequence[int], gs: dict[int, Tensor], out: Tensor) -> list[Any]:
        return self._pull({places[index]: g for index, g in sorted(gs.items())}, out.requires_grad)

    def _pull(self, seeds: dict[int, Tensor], create_graph: bool) -> list[Any]:
        with self.state.restored(list(seeds.values())):
            again = self._call()
        readings = again.stretch.readings()
        if [x.aval for x in readings] != [x.aval for x in self.readings]:
            raise GradientError(
                f"[checkpoint] {getattr(self.fn, '__name__', 'the function')} must compute the same when it runs again "
                "for its gradient: it may depend only on its arguments, Variables and random numbers."
            )
        return again.cotangents(seeds, create_graph)


def _own_handle(value: Tensor, node: Tensor) -> Tensor:
    """Return a separate handle of an argument for the function, which may assign to it."""
    return alias(value, node) if node.requires_grad else value._twin()


def _leaves(roots: Sequence[Tensor], own: dict[int, Tensor], born: int) -> dict[int, Tensor]:
    """Return the ends of one run's tape by id, each with the tensor that gets its cotangent.

    The ends are the run's handles of the arguments (``own``), Variables, and tensors that are older than ``born``.
    """
    leaves: dict[int, Tensor] = {}
    visited: set[int] = set()
    stack = list(map(version, reversed(roots)))
    while stack:
        tensor = stack.pop()
        if id(tensor) in visited or not tensor.requires_grad:
            continue
        visited.add(id(tensor))
        if id(tensor) in own:
            leaves[id(tensor)] = own[id(tensor)]
        elif tensor._record is None or tensor._serial <= born:
            leaves[id(tensor)] = tensor
        else:
            stack += reversed(tensor._record.inputs)
    return leaves


class _EagerState:
    """The values of Variables when the function first read or assigned them."""

    def __init__(self) -> None:
        self.readings = FirstReadings()

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the values in the block, also for an outer observer."""
        active = tracing.ACTIVE
        outer, active.readings = active.readings, self.readings
        try:
            yield
        finally:
            active.readings = outer
            self.readings.tell(outer)

    @contextmanager
    def restored(self, after: Sequence[Tensor]) -> Iterator[None]:
        """Restore the values for the block."""
        if tracing.ACTIVE.trace is not None:
            raise GradientError(
                "[checkpoint] the function must run inside the compiled function that differentiates it."
            )
        changed = [(v, v.read().without_tape()) for v, value in self.readings.values.items() if v.read() is not value]
        for variable, _ in changed:
            variable.assign(self.readings.values[variable])
        try:
            yield
        finally:
            for variable, now in changed:
                variable.assign(now)


class _TracedState:
    """The values of Variables in a trace when the function was called."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.values = dict(trace.facet(TracedVariables).values)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Do nothing: a trace knows its Variables."""
        yield

    @contextmanager
    def restored(self, after: Sequence[Tensor]) -> Iterator[None]:
        """Restore the values for the block, in which everything is computed again after ``after``."""
        trace = self.trace
        if tracing.ACTIVE.trace is not trace:
            raise GradientError("[checkpoint] the compiled function in which the function ran has ended.")
        traced = trace.facet(TracedVariables)
        now, outer = traced.values, trace.repetition
        traced.values = {v: self.values[v] if v in self.values else self._initial_value(v) for v in traced.nodes}
        known = [x for g in after for x in (g, *every_component(g)) if x._level is None]
        trace.repetition = Repetition(tuple(tensors.node_of(x, trace) for x in known))
        try:
            yield
        finally:
            if outer is not None:
                outer.results |= trace.repetition.results
            for variable, value in traced.values.items():
                now.setdefault(variable, value)
            traced.values, trace.repetition = now, outer

    def _initial_value(self, variable: Variable) -> Tensor:
        """Return the value at the start of the program."""
        value = tensors.symbolic(self.trace.facet(TracedVariables).nodes[variable])
        value._leaf = weakref.ref(variable)
        value.requires_grad = variable.requires_grad
        return value
