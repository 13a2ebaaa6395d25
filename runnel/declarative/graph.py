"""The declared graph: operations by name, name scopes, control dependencies, and the current graph."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

from runnel.core import html, namespaces
from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, GraphError
from runnel.core.kinds import declare

Operation = Any  # defined in operation.py, above this file
Declared = Any
F = TypeVar("F", bound=Callable[..., Any])

_DRAWN: Final = 150  # operations at most of a graph that notebooks show as a picture
_NAME: Final = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.\-]*(/[A-Za-z0-9_.\-]+)*")


@declare
class Graph:
    """Operations in the order of their declaration. Declare inside ``with graph:``.

    Names are unique: the first operation named ``c`` is ``c``, the next ``c_1``; in ``name_scope("outer")`` they are
    ``outer/c`` and ``outer/c_1``. The graph owns its operations, and several sessions can run it.
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.operations: list[Operation] = []
        self.version = 0  # counts control dependencies added to operations
        self._by_name: dict[str, Operation] = {}
        self._taken: dict[str, int] = {}  # name -> number of further requests
        self._scope = ""
        self._control: tuple[Operation, ...] = ()
        self._lock = threading.Lock()

    def _repr_html_(self) -> str:
        drawing = namespaces.imported("runnel.declarative.text:to_svg")(self) if len(self.operations) <= _DRAWN else ""
        return html.folded(f"graph '{self.name}' of {len(self.operations)} operations", drawing)

    def __enter__(self) -> Graph:
        _STACK.graphs.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _STACK.graphs.pop()

    def __len__(self) -> int:
        return len(self.operations)

    def __reduce__(self) -> Any:
        raise ArgumentError(f"[pickle] the graph '{self.name}' is saved with declarative.save.")

    def __repr__(self) -> str:
        return f"<declared graph '{self.name}' of {len(self)} operations>"

    def operation(self, name: str) -> Operation:
        """Return the operation called ``name``; GraphError if it does not exist."""
        if name not in self._by_name:
            raise GraphError(f"[graph] '{self.name}' has no operation called {name!r}.")
        return self._by_name[name]

    def unique_name(self, base: str) -> str:
        """Reserve and return ``base`` in the current scope, with a number appended if it is taken."""
        if not _NAME.fullmatch(base):
            raise ArgumentError(f"[graph] a name must consist of letters, digits, '_', '.', '-' and '/'; got {base!r}.")
        first = name = f"{self._scope}{base}"
        with self._lock:
            while name in self._taken:
                number = self._taken.get(first, 0) + 1
                set_entry(self._taken, first, number)
                name = f"{first}_{number}"
            set_entry(self._taken, name, 0)
        return name

    def add(self, operation: Operation) -> None:
        """Add a new operation, whose name :meth:`unique_name` returned."""
        with self._lock:
            operation.number = len(self.operations)
            self.operations.append(operation)
            self._by_name[operation.name] = operation
            if _STACK.undo is not None:
                _STACK.undo.append(functools.partial(self._remove, operation))

    def _remove(self, operation: Operation) -> None:
        """Remove an operation that is not used. Operations of other threads may follow it."""
        with self._lock:
            del self.operations[operation.number], self._by_name[operation.name]
            for behind in self.operations[operation.number :]:
                behind.number -= 1

    def capture(self, x: Declared) -> Declared:
        """Return ``x`` as operations of this graph read it; GraphError if it belongs to another one."""
        self.require(x)
        return x

    def require(self, x: Declared) -> None:
        """Raise GraphError if ``x`` belongs to another graph."""
        if x.operation.graph is not self:
            raise GraphError(
                f"[graph] '{x.name}' is of the graph '{x.operation.graph.name}', and operations are declared in "
                f"'{self.name}' now; declare both in one."
            )

    def require_outermost(self, name: str) -> None:
        """Raise GraphError in the graph of a branch or a loop, which cannot change anything outside."""

    def require_run(self, name: str) -> None:
        """Raise GraphError in the graph of a branch or a loop, where nothing is fed or initialized."""

    def graph_of(self, x: Declared) -> Graph:
        """Return the graph in which operations on ``x`` are declared while this is the default graph."""
        return x.operation.graph

    def own(self, operations: Iterable[Any]) -> list[Operation]:
        """Return ``operations``, or the operations of tensors; ArgumentError or GraphError for others."""
        each = [getattr(x, "operation", x) for x in operations]
        for x in each:
            if not isinstance(getattr(x, "graph", None), Graph):
                raise ArgumentError(
                    f"[graph] takes operations and declared tensors to be run before others; got {short_repr(x)}."
                )
            if x.graph is not self:
                raise GraphError(
                    f"[graph] '{x.name}' is of the graph '{x.graph.name}', and cannot run in '{self.name}'."
                )
        return each

    @property
    def control_inputs(self) -> tuple[Operation, ...]:
        """Operations that run before operations declared now."""
        return self._control

    @contextmanager
    def name_scope(self, name: str) -> Iterator[str]:
        """Prefix names declared in the block with ``name/``. Scopes have unique names too."""
        before = self._scope
        self._scope = f"{self.unique_name(name)}/"
        try:
            yield self._scope
        finally:
            self._scope = before

    @contextmanager
    def control_dependencies(self, operations: Iterable[Operation]) -> Iterator[None]:
        """Let operations declared in the block run after ``operations`` whenever they run together."""
        before = self._control
        self._control = (*before, *self.own(operations))
        try:
            yield
        finally:
            self._control = before


class _Stack(threading.local):
    """The graphs being declared on a thread, innermost last, and the undo list of a declaration that may fail."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = [Graph()]
        self.undo: list[Callable[[], None]] | None = None


_STACK: Final = _Stack()


def set_entry(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Set an entry of a graph's table; a declaration that fails undoes it."""
    if _STACK.undo is not None:
        _STACK.undo.append(functools.partial(_reset, table, key, table.get(key)))
    table[key] = value


def _reset(table: dict[Any, Any], key: Any, before: Any) -> None:
    if before is None:
        del table[key]
    else:
        table[key] = before


def whole(function: F) -> F:
    """Restore all graphs, including names, if the decorated function raises an error."""

    @functools.wraps(function)
    def declaring(*args: Any, **kwargs: Any) -> Any:
        outer = _STACK.undo
        undo = _STACK.undo = [] if outer is None else outer
        begin = len(undo)
        try:
            return function(*args, **kwargs)
        except BaseException:
            while len(undo) > begin:
                undo.pop()()
            raise
        finally:
            _STACK.undo = outer

    return cast(F, declaring)


def default_graph() -> Graph:
    """Return the current graph: the innermost ``with graph:``, or the thread's default."""
    return _STACK.graphs[-1]


def reset_default_graph() -> None:
    """Replace the thread's default graph by an empty one. Not allowed inside ``with graph:``."""
    if len(_STACK.graphs) > 1:
        raise GraphError("[reset_default_graph] a graph is being declared; leave its `with` block first.")
    _STACK.graphs[0] = Graph()
