"""Construct a graph while a function is traced, with its inputs by origin.

The inputs are arguments, and tensors and arrays that the function captured. Other state of a trace, such as the values
of Variables as the traced function sees them, is kept in facets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol, Self, TypeVar

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.conversion import rounded
from runnel.core.devices import Device
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType, real_of
from runnel.core.errors import DeviceError, TracedValueError
from runnel.core.recall import Usual
from runnel.core.tables import Op
from runnel.core.tracebacks import user_line
from runnel.graph.graph import Graph
from runnel.graph.node import (
    Constant,
    Input,
    InputKind,
    Node,
    Result,
    Value,
    abstract_results,
    applied,
    results_of,
)
from runnel.ops.conversion import optimization_barrier_p
from runnel.ops.elementwise.complex_parts import pair_p

F = TypeVar("F")


class Trace:
    """A graph under construction."""

    is_body = False  # of a loop or a branch: a graph that is differentiated as it stands

    def __init__(self, born: int, device: Device | None = None) -> None:
        self.device = device  # of all tensors; None until the first one is read
        self.born = born  # tensors with a higher serial number were made inside the trace, and are constants
        self.inputs: list[Value] = []
        self.captures: dict[int, tuple[Any, Input]] = {}  # by id of the tensor or ndarray: it and its input
        self.constants: dict[int, tuple[Any, Value]] = {}
        self.known_arrays: dict[int, np.ndarray] = {}  # by id: arrays that later calls can find
        self.deferred_error: Exception | None = None  # the first error about a traced value, even if caught
        self.custom_derivative = ""  # the name of a recorded function that has one
        self.scalars: list[tuple[Any, Value]] = []  # (getter, node): run-time floats read by the function
        self.observer: Callable[[Any, str], Callable[..., Any]] | None = (
            None  # returns methods of users' objects, observed
        )
        # While compiling: called when the tape is walked backwards, and to refuse what programs cannot do.
        self.differentiating: Callable[[], None] | None = None
        self.refuse: Callable[[str, str], NoReturn] | None = None
        self.looks_at: Callable[[Any], np.ndarray | None] | None = None  # returns the values of a tensor from outside
        self.layout_asked: Callable[[Any], None] | None = None  # called when the strides of a tensor are read
        self.repetition: Repetition | None = None  # while something is recorded a second time
        self.checks: list[Value] = []  # facts that the program checks
        self.last_effect: Callable[[], Value | None] | None = None  # returns the token of the last effect, if any
        self._facets: dict[type, Any] = {}

    def facet(self, kind: type[F]) -> F:
        """Return the state of class ``kind`` that belongs to this trace, created at the first call. The file that uses
        the state declares the class."""
        facet: F | None = self._facets.get(kind)
        if facet is None:
            facet = self._facets[kind] = kind()
        return facet

    def settle(self, device: Device) -> None:
        """Note that a tensor on ``device`` is read; raise DeviceError if the graph is on another device."""
        if self.device is None:
            self.device = device
        elif self.device is not device:
            raise DeviceError(
                f"[compile] at {user_line()} a function that computes on {self.device} uses a tensor on {device}; "
                f'move it with x.to("{self.device}") before the call.'
            )

    def owns(self, node: Value) -> bool:
        """Return whether ``node`` belongs to this trace, and not to one around it."""
        return True

    def input(self, value: ShapedArray, kind: InputKind, name: str) -> Input:
        node = Input(value, kind, name, user_line())
        self.inputs.append(node)
        return node

    def constant(self, array: np.ndarray, dtype: DType) -> Value:
        if dtype.is_complex:  # machine code has no complex constants
            parts = rounded(array, dtype)
            real = real_of(dtype)
            return self.record(pair_p, (self.constant(parts.real, real), self.constant(parts.imag, real)), {})[0]
        frozen = np.array(rounded(array, dtype))
        frozen.flags.writeable = False
        return Constant(aval(frozen.shape, dtype), frozen)

    def record(self, op: Op, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> tuple[Result, ...]:
        if self.repetition is not None:
            inputs = tuple(map(self.repetition.read, inputs))
        results = results_of(Node(op, inputs, attrs, abstract_results(op, inputs, attrs), user_line()))
        if self.repetition is not None:
            self.repetition.results.update(results)
        return results

    def graph(self, outputs: list[Value], updates: dict[Value, Value], name: str) -> Graph:
        last = None if self.last_effect is None else self.last_effect()
        graph = Graph(self.inputs, outputs, updates, name, (*self.checks, *(() if last is None else (last,))))
        self._require_own(graph)
        return graph

    def _require_own(self, graph: Graph) -> None:
        """Raise TracedValueError if the graph reads a value that exists only while a loop or branch runs."""
        foreign = {x for x in graph.values if isinstance(x, Input)}.difference(graph.inputs)
        if foreign:
            user = next((x for x in graph.values if not foreign.isdisjoint(x.inputs)), next(iter(foreign)))
            raise TracedValueError(
                f"[compile] a tensor ({user.aval}) that a function given to a loop or branch computes, at "
                f"{user.where}, is used outside it; return it from the function."
            )


class Repetition:
    """Ops that are recorded a second time, to recompute values after ``after`` is known."""

    def __init__(self, after: tuple[Value, ...]) -> None:
        self.after = after
        self.results: set[Value] = set()
        self._again: dict[Value, Value] = {}

    def read(self, node: Value) -> Value:
        """Return ``node`` itself if it is a constant or belongs to the repetition; otherwise a barrier before it."""
        if node in self.results or node.is_constant:
            return node
        if node not in self._again:
            self._again[node] = applied(optimization_barrier_p, (node, *self.after), {}, node.aval, node.where)
        return self._again[node]


class Readings(Protocol):
    """An observer of the Variables that are read or assigned outside a trace."""

    def note(self, variable: TensorLike, value: TensorLike) -> None:
        """Learn that ``variable`` was read, or is about to be assigned a value other than ``value``."""
        ...


class OpenLevel:
    """A running transform. ``with level:`` makes it the innermost one; it is open in the block."""

    name = "level"
    records_calls = False  # calls of modules and compiled functions are recorded as a whole

    def __init__(self) -> None:
        self.trace = ACTIVE.trace  # levels belong to the trace in which they begin
        self.is_open = False
        self._outer: list[OpenLevel | None] = []

    def __enter__(self) -> Self:
        self._outer.append(ACTIVE.level)
        ACTIVE.level, self.is_open = self, True
        return self

    def __exit__(self, *error: object) -> None:
        ACTIVE.level = self._outer.pop()
        self.is_open = bool(self._outer)

    def called(self, owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of ``function``, a call of a module or compiled function ``owner``."""
        return function(*args, **kwargs)

    @property
    def outer(self) -> OpenLevel | None:
        """The level around this one, while it is open."""
        return self._outer[-1]


class _Active(Usual):
    """The state of a thread.

    Attributes:
        trace: the trace that ops are recorded in.
        level: the level of the innermost transform that has one, in this trace.
        readings: the observer of Variable reads, or None.
        interrupted: the three attributes above, while garbage is collected.
        is_by_op: compositions run op by op, so that running a function again records the same.
    """

    plain = frozenset({"interrupted"})
    trace: Trace | None = None
    level: OpenLevel | None = None
    readings: Readings | None = None
    interrupted: tuple[Any, Any, Any] | None = None
    is_by_op = False


ACTIVE: Final = _Active()
