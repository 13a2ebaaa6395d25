"""Recording a graph: while a trace is active on a thread, ops on tensors append nodes instead of computing.

A :class:`Trace` knows the graph's inputs by where they come from: arguments it was given, eager tensors and arrays that
the function captured, and Variables it read. It also holds what the function assigned to Variables and their gradients.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from runnel.core.avals import Aval, aval
from runnel.core.devices import Device
from runnel.core.dtypes import DType
from runnel.core.errors import DeviceError
from runnel.core.rounding import rounded
from runnel.core.tables import Op
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
from runnel.ops.recomputation import again_p
from runnel.tensor.active import ACTIVE as ACTIVE
from runnel.tensor.apart import Guarded, undisturbed

if TYPE_CHECKING:
    from runnel.tensor.effects import Order
    from runnel.tensor.tensor import Tensor
    from runnel.tensor.variable import Variable

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_OWN_FILES: set[str] = set()  # of this package, as far as they were met


class Trace:
    """A graph under construction, and the state of Variables as the traced function sees it."""

    is_body = False  # of a loop or a branch: a graph that is differentiated as it stands

    def __init__(self, born: int, device: Device | None = None) -> None:
        self.device = device  # of all tensors in it; None until one says
        self.born = born  # tensors with a higher serial number were made inside the trace: constants
        self.inputs: list[Value] = []
        self.captures: dict[int, tuple[Any, Input]] = {}  # id(tensor or ndarray) -> (it, its input node)
        self.constants: dict[int, tuple[Any, Value]] = {}
        self.variables: dict[Variable, Value] = {}  # read or written, in the order of first use
        self.values: dict[Variable, Tensor] = {}  # what each holds now
        self.written: set[Variable] = set()
        self.gradients: dict[Variable, Any] = {}  # .grad as set in the trace
        self.gradient_inputs: dict[Variable, Value] = {}  # .grad read before it was set
        self.consumed: set[Variable] = set()  # gradients that an optimizer has used up
        self.absent_gradients: set[Variable] = set()  # .grad read as None before it was set
        self.known_arrays: dict[int, np.ndarray] = {}  # by id: arrays that can be found again at the next call
        self.left_gradients: dict[int, tuple[Tensor, Tensor | None]] = {}  # by id: tensors from outside whose .grad was
        # set, with what it was
        self.left_values: dict[int, tuple[Tensor, tuple[Any, ...]]] = {}  # the same of those that got another value
        self.refusal: Exception | None = None  # the first error about a traced value, though the function caught it
        self.custom_derivative = ""  # the name of a function with one that was recorded
        self.scalars: list[tuple[Any, Value]] = []  # (getter, node): run-time floats read by the function
        self.observer: Callable[[Any, str], Callable[..., Any]] | None = (
            None  # gives methods of users' objects, observed
        )
        self.repetition: Repetition | None = None  # while something is recorded a second time
        self.order: Order | None = None  # of effects, if there were some
        self.stand_ins: StandIns | None = None  # of a trace whose tape ends at tensors from outside

    def settle(self, device: Device) -> None:
        """A tensor on ``device`` is read: a graph runs on one."""
        if self.device is None:
            self.device = device
        elif self.device is not device:
            raise DeviceError(
                f"[compile] at {user_line()} a function that computes on {self.device} uses a tensor on {device}; "
                f'move it with x.to("{self.device}") before the call.'
            )

    def owns(self, node: Value) -> bool:
        """Whether ``node`` is of this trace, and not of one around it."""
        return True

    def input(self, value: Aval, kind: InputKind, name: str) -> Input:
        node = Input(value, kind, name, user_line())
        self.inputs.append(node)
        return node

    def constant(self, array: np.ndarray, dtype: DType) -> Value:
        frozen = np.array(rounded(array, dtype))
        frozen.flags.writeable = False
        return Constant(aval(frozen.shape, dtype), frozen)

    def record(self, op: Op, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> tuple[Result, ...]:
        if self.repetition is not None:
            inputs = tuple(map(self.repetition.read, inputs))
        results = results_of(Node(op, inputs, attrs, abstract_results(op, inputs, attrs), user_line()))
        if self.repetition is not None:
            self.repetition.made.update(results)
        return results

    def graph(self, outputs: list[Value], updates: dict[Value, Value], name: str) -> Graph:
        last = None if self.order is None else self.order.last()
        return Graph(self.inputs, outputs, updates, name, () if last is None else (last,))


def method(owner: Any, name: str) -> Callable[..., Any]:
    """A method of ``owner``, whose class may be a user's; observed, where somebody observes what the trace reads."""
    trace = ACTIVE.trace
    if trace is None or trace.observer is None:
        found: Callable[..., Any] = getattr(owner, name)
        return found
    return trace.observer(owner, name)


class StandIns(Protocol):
    """The nodes of the tape that stand for tensors from outside."""

    def of(self, tensor: Tensor) -> Tensor | None:
        """The one for ``tensor``; None if it is not from outside."""
        ...


class Repetition:
    """Ops that are recorded a second time: they compute late, when ``after`` is known, what was computed before."""

    def __init__(self, after: tuple[Value, ...]) -> None:
        self.after = after
        self.made: set[Value] = set()
        self._again: dict[Value, Value] = {}

    def read(self, node: Value) -> Value:
        """What stands for ``node``: itself, if it is a constant or made in the repetition."""
        if node in self.made or node.is_constant:
            return node
        if node not in self._again:
            self._again[node] = applied(again_p, (node, *self.after), {}, node.aval, node.where)
        return self._again[node]


class activate:
    """``with activate(trace):`` makes it the one that ops on this thread are recorded in. What breaks in is apart.

    Inside of another one, None ends recording for the block. Levels belong to the trace in which they began.
    """

    __slots__ = ("_before", "_guarded", "_level", "_trace")

    def __init__(self, trace: Trace | None) -> None:
        self._trace = trace
        self._before, self._level = ACTIVE.trace, ACTIVE.level
        self._guarded = Guarded() if self._before is None else None

    @undisturbed
    def __enter__(self) -> Trace | None:
        if self._guarded is not None:
            self._guarded.begin()
        ACTIVE.trace, ACTIVE.level = self._trace, None
        return self._trace

    @undisturbed
    def __exit__(self, *error: object) -> None:
        ACTIVE.trace, ACTIVE.level = self._before, self._level
        if self._guarded is not None:
            self._guarded.end()


def user_line() -> str:
    """``file:line`` of the innermost frame outside this package: where the user asked for what is happening."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in _OWN_FILES:
            if not file.startswith(_PACKAGE):
                return f"{file}:{frame.f_lineno}"
            _OWN_FILES.add(file)
        frame = frame.f_back
    return ""
