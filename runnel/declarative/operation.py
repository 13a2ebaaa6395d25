"""Operations and declared tensors: the nodes of a declared graph, and their outputs, which a session computes."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, ClassVar, Final, Protocol, TypeVar

from runnel import ops
from runnel.core import tracebacks
from runnel.core.dtypes import DType
from runnel.core.errors import ArgumentError, GraphError
from runnel.core.overrides import Override, overridden
from runnel.core.records import record
from runnel.declarative.graph import Graph
from runnel.tensor.methods import ArrayMethods

Dims = tuple[int | None, ...]


@record
class Static:
    """Known facts about a declared tensor: its sizes, with None for unknown ones (or all), and its dtype."""

    shape: Dims | None
    dtype: DType | None

    @property
    def is_complete(self) -> bool:
        return self.dtype is not None and self.shape is not None and None not in self.shape

    def __str__(self) -> str:
        sizes = "..." if self.shape is None else ",".join("?" if n is None else str(n) for n in self.shape)
        return f"{'?' if self.dtype is None else self.dtype.name}[{sizes}]"


class Run(Protocol):
    """The services of a run that an operation can use."""

    def read(self, variable: Any) -> Any:
        """Return the current value of a variable."""

    def assign(self, variable: Any, value: Any) -> None:
        """Set the value of a variable."""

    def train(self, operation: Any, gradients: Sequence[Any]) -> None:
        """Take one step of the optimizer of ``operation``."""

    def pullback(self, operation: Any) -> Callable[..., Any] | None:
        """Return the pullback of ``operation``, which takes cotangents of its results, if it ran before."""


class Operation:
    """A node of a declared graph: it reads ``inputs``, computes ``outputs`` and runs after ``control_inputs``.

    ``where`` is the user's line. ``number`` is its position in the graph: an operation reads only earlier ones.
    """

    __slots__ = ("__weakref__", "control_inputs", "graph", "inputs", "name", "number", "outputs", "where")
    kind: ClassVar[str] = ""  # how files and texts call operations of the class

    def __init__(self, graph: Graph, name: str, inputs: Sequence[Declared], outputs: Iterable[Static]) -> None:
        for x in inputs:
            graph.require(x)
        self.graph: Final[Graph] = graph
        self.name: Final = graph.unique_name(name)
        self.inputs: tuple[Declared, ...] = tuple(inputs)
        self.control_inputs: tuple[Operation, ...] = graph.control_inputs
        self.where: Final = tracebacks.user_line()
        self.number = -1
        self.outputs: tuple[Declared, ...] = tuple([Declared(self, i, x) for i, x in enumerate(outputs)])
        graph.add(self)

    def compute(self, values: Sequence[Any], run: Run) -> Sequence[Any]:
        """Return the values of the outputs, given the values of the inputs."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """One word for what it does."""
        return self.kind

    def attributes(self) -> dict[str, Any]:
        """Return its properties besides its inputs, as printed and saved."""
        return {}

    def add_control_inputs(self, *operations: Operation) -> None:
        """Run after ``operations`` whenever they run together; GraphError if these need it."""
        before = self.graph.own(operations)
        if self in closure(before):
            raise GraphError(
                f"[graph] '{self.name}' cannot run after {', '.join(repr(x.name) for x in before)}, which needs it "
                "itself: that is a cycle. Leave one of the dependencies out."
            )
        self.control_inputs = tuple(dict.fromkeys((*self.control_inputs, *before)))
        self.graph.version += 1

    def __repr__(self) -> str:
        return f"<operation '{self.name}' ({self.label})>"


_Recorder = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
_RecorderT = TypeVar("_RecorderT", bound=_Recorder)
_RECORDER: list[_Recorder] = []  # what declares a call: it makes operations, and stands above this file


def recorder(function: _RecorderT) -> _RecorderT:
    """Register ``function``, which declares a call with declared tensors among its arguments."""
    _RECORDER[:] = [function]
    return function


class PendingError(Override, RuntimeError):
    """The value of a declared tensor was needed, which only a session's ``run`` computes."""

    def handle(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Declare the call."""
        return _RECORDER[0](function, args, kwargs)


class Declared(ArrayMethods[Any]):
    """Output number ``index`` of ``operation``. Operators, methods and functions of ``rn`` on it declare operations.

    It has no value until a session runs it. ``static`` is what is known of its shape and dtype before.
    """

    __slots__ = ("__weakref__", "index", "operation", "static")

    def __init__(self, operation: Operation, index: int, static: Static) -> None:
        self.operation = operation
        self.index = index
        self.static = static

    @property
    def name(self) -> str:
        """Name of its operation, followed by a colon and the number of the output if that is not 0."""
        return f"{self.operation.name}:{self.index}" if self.index else self.operation.name

    def _pending(self) -> PendingError:
        return PendingError(
            f"[declarative] '{self.name}', declared at {self.operation.where}, has no value before it is run; "
            "fetch it with session.run(...), or compute with it by functions of rn."
        )

    # What users may know, and functions of the library may not: they would compute with it --------------------------

    @property
    def aval(self) -> Any:
        raise self._pending()

    @property
    def shape(self) -> Any:
        """Sizes, with None for unknown ones; None if the number of axes is unknown."""
        if tracebacks.is_own_frame(sys._getframe(1)):
            raise self._pending()
        return self.static.shape

    @property
    def dtype(self) -> Any:
        """Dtype, or None if it is unknown."""
        if tracebacks.is_own_frame(sys._getframe(1)):
            raise self._pending()
        return self.static.dtype

    @property
    def ndim(self) -> Any:
        """Number of axes, or None if it is unknown."""
        if tracebacks.is_own_frame(sys._getframe(1)):
            raise self._pending()
        return None if self.static.shape is None else len(self.static.shape)

    @property
    def size(self) -> Any:
        raise self._pending()

    @property
    def data(self) -> Any:
        raise self._pending()

    @property
    def T(self) -> Any:
        """Tensor with its axes in reverse order."""
        return overridden(self._pending(), ops.transpose, (self,), {})

    @property
    def mT(self) -> Any:
        """Tensor with its last two axes swapped."""
        return overridden(self._pending(), ops.swapaxes, (self, -2, -1), {})

    def detach(self) -> Any:
        """Return the same value, through which no gradient flows."""
        return overridden(self._pending(), ops.stop_gradient, (self,), {})

    def apply_op(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        raise self._pending()

    def summary(self) -> str:
        return f"'{self.name}' {self.static}"

    def read(self) -> Any:
        raise self._pending()

    def handle(self) -> Any:
        raise self._pending()

    def numpy(self, *, force: bool = False) -> Any:
        raise self._pending()

    def item(self, *args: Any) -> Any:
        raise self._pending()

    def tolist(self) -> Any:
        raise self._pending()

    def update(self, name: str, change: Any) -> Any:
        raise ArgumentError(f"[{name}] '{self.name}' is declared, and never changes; assign to a Variable.")

    def __pos__(self) -> Any:
        return self

    def __iter__(self) -> Any:
        raise ArgumentError(f"[iter] '{self.name}' is declared; take its parts by x[i], or rn.unstack(x).")

    def __len__(self) -> int:
        raise self._pending()

    def __bool__(self) -> bool:
        raise self._pending()

    def __float__(self) -> float:
        raise self._pending()

    def __int__(self) -> int:
        raise self._pending()

    def __index__(self) -> int:
        raise self._pending()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise self._pending()

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ArgumentError(f"[setitem] '{self.name}' is declared, and never changes; use rn.scatter or rn.where.")

    def __copy__(self) -> Declared:
        return self

    def __deepcopy__(self, memo: Any) -> Declared:
        return self

    def __reduce__(self) -> Any:
        raise ArgumentError(f"[pickle] '{self.name}' is a part of a graph; save that with declarative.save.")

    def __repr__(self) -> str:
        return f"<declared '{self.name}' {self.static}>"


def needed(operation: Operation) -> Iterable[Operation]:
    """Yield the operations that must run before ``operation``."""
    yield from (x.operation for x in operation.inputs)
    yield from operation.control_inputs


def closure(operations: Iterable[Operation]) -> set[Operation]:
    """Return ``operations`` and all that they need."""
    reached = set(operations)
    rest = list(reached)
    while rest:
        for x in needed(rest.pop()):
            if x not in reached:
                reached.add(x)
                rest.append(x)
    return reached


def ancestors(fetched: Iterable[Operation], fed: Collection[Declared] = ()) -> set[Operation]:
    """Return ``fetched`` and all operations that they need, given tensors ``fed``.

    Fed placeholders do not run.
    """
    there = {x.operation for x in fed if x.operation.kind == "placeholder"}
    reached = set(fetched) - there
    rest = list(reached)
    while rest:
        operation = rest.pop()
        for x in (*(x.operation for x in operation.inputs if x not in fed), *operation.control_inputs):
            if x not in reached and x not in there:
                reached.add(x)
                rest.append(x)
    return reached


def ordered(operations: Collection[Operation]) -> list[Operation]:
    """Return ``operations`` in an order in which each comes after those it needs, else in declaration order.

    GraphError if they need each other in a cycle.
    """
    by_number = sorted(operations, key=lambda x: x.number)
    inside = set(operations)
    if all(before.number < x.number for x in by_number for before in needed(x)):
        return by_number
    waits = {x: len({before for before in needed(x) if before in inside}) for x in by_number}
    readers: dict[Operation, list[Operation]] = {x: [] for x in by_number}
    for x in by_number:
        for before in {before for before in needed(x) if before in inside}:
            readers[before].append(x)
    ready = [(x.number, x) for x in by_number if not waits[x]]
    heapq.heapify(ready)
    order: list[Operation] = []
    while ready:
        _, operation = heapq.heappop(ready)
        order.append(operation)
        for x in readers[operation]:
            waits[x] -= 1
            if not waits[x]:
                heapq.heappush(ready, (x.number, x))
    if len(order) < len(by_number):
        ring = ", ".join(repr(x.name) for x in by_number if waits[x])
        raise GraphError(f"[graph] these operations need one another, in a ring or behind one: {ring}.")
    return order
