"""Branches and loops in a declared graph: functions of declared tensors become inner graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from runnel.core import pytree
from runnel.core.errors import ArgumentError, GraphError, ShapeError
from runnel.declarative.calls import constant, declared_call
from runnel.declarative.graph import Graph, default_graph, set_entry, whole
from runnel.declarative.operation import Declared, ancestors, ordered
from runnel.declarative.plan import Replay
from runnel.declarative.state import Placeholder
from runnel.tensor.creation import zeros
from runnel.transforms.control import cond as cond_transform, while_loop as while_transform
from runnel.transforms.scan import scan as scan_transform


class BodyGraph(Graph):
    """The graph of a branch's or loop's function.

    Tensors of the outer graphs become inputs; ``captures`` maps each to its placeholder.
    """

    def __init__(self, parent: Graph, name: str) -> None:
        super().__init__(name)
        self.parent: Final = parent
        self.captures: dict[Declared, Declared] = {}

    def capture(self, x: Declared) -> Declared:
        if x.operation.graph is self:
            return x
        x = self.parent.capture(x)
        if x not in self.captures:
            set_entry(self.captures, x, Placeholder(self, x.operation.name, x.static).outputs[0])
        return self.captures[x]

    def require_outermost(self, name: str) -> None:
        raise GraphError(
            f"[{name}] branches and loops cannot change variables; return the value, and assign it after '{self.name}'."
        )

    def require_run(self, name: str) -> None:
        raise GraphError(
            f"[{name}] it would never have a value in '{self.name}'; declare it outside branches and loops."
        )

    def graph_of(self, x: Declared) -> Graph:
        return self


class Body:
    """A function as a graph, called with values for its parameters and for the tensors that it captures."""

    def __init__(
        self, graph: Graph, parameters: Sequence[Declared], outputs: Sequence[Declared], structure: Any
    ) -> None:
        self.graph: Final = graph
        self.parameters: Final = tuple(parameters)  # of the function, and then what it captures
        self.outputs: Final = tuple(outputs)
        self.structure: Final = structure
        here = set(self.parameters)
        self.operations: Final = ordered(ancestors([x.operation for x in self.outputs if x not in here], here))

    def __call__(self, *values: Any) -> Any:
        known = Replay(self.operations, {}, {})(dict(zip(self.parameters, values, strict=True)))
        return pytree.unflatten(self.structure, [known[x] for x in self.outputs])

    @classmethod
    def of_tree(cls, graph: Graph, parameters: Sequence[Declared], outputs: Sequence[Declared], tree: Any) -> Body:
        """Return a body whose results are nested like the numbers in ``tree``."""
        leaves, structure = pytree.flatten(tree)
        if leaves != list(range(len(outputs))):
            raise ValueError(f"the results of a body are numbered {leaves}")
        return cls(graph, parameters, outputs, structure)

    def filled(self, leaves: Sequence[Any]) -> Any:
        """Return ``leaves`` nested like its results."""
        return pytree.unflatten(self.structure, leaves)

    def __repr__(self) -> str:
        return f"<body of {len(self.operations)} operations>"


class _Recorded:
    """A function that was called on placeholders."""

    def __init__(self, name: str, function: Callable[..., Any], operands: Any) -> None:
        if not callable(function):
            raise ArgumentError(f"[{name}] takes functions of declared tensors; got {function!r}.")
        self.graph: Final = BodyGraph(default_graph(), name)
        leaves, structure = pytree.flatten(operands)
        self._own = [Placeholder(self.graph, "operand", x.static).outputs[0] for x in leaves]
        with self.graph:
            results, self._structure = pytree.flatten(function(*pytree.unflatten(structure, self._own)))
            results = [x if isinstance(x, Declared) else constant(x) for x in results]
        self._outputs = [self.graph.capture(x) for x in results]

    def body(self, captured: Sequence[Declared]) -> Body:
        """Return the body as a function of its operands and of ``captured``, which include its captures."""
        behind: list[Declared] = []
        for x in captured:
            inside = self.graph.captures.get(x)
            behind.append(Placeholder(self.graph, "unused", x.static).outputs[0] if inside is None else inside)
        return Body(self.graph, [*self._own, *behind], self._outputs, self._structure)


def _recorded(name: str, functions: Sequence[tuple[Callable[..., Any], Any]]) -> tuple[list[Body], list[Declared]]:
    """Return functions with their operands as bodies that capture the same tensors, and these tensors."""
    recorded = [_Recorded(name, function, operands) for function, operands in functions]
    captured = list(dict.fromkeys(x for each in recorded for x in each.graph.captures))
    return [each.body(captured) for each in recorded], captured


@whole
def cond(predicate: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """Return ``true_fn(*operands)`` if ``predicate``, one bool, is true in a run, else ``false_fn(*operands)``.

    Only the chosen function runs. Both must return trees of the same structure, shapes and dtypes, and can read outer
    tensors.
    """
    taken = _declared(operands)
    bodies, captured = _recorded("cond", [(true_fn, taken), (false_fn, taken)])
    return declared_call(run_cond, (predicate, *bodies, taken, captured), {}, "cond")


@whole
def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], init: Any) -> Any:
    """Repeat ``carry = body_fn(*carry)`` while ``cond_fn(*carry)`` is true, and return the last carry.

    ``init`` is the first carry, a tuple or list. Both functions take its parts as arguments; ``body_fn`` returns a
    carry of the same structure. The loop has no gradient; use :func:`scan` if you need one.
    """
    carry = _declared(init if isinstance(init, (tuple, list)) else (init,))
    bodies, captured = _recorded("while_loop", [(cond_fn, carry), (body_fn, carry)])
    before, after = len(pytree.flatten(carry)[0]), len(bodies[1].outputs)
    if before != after:
        raise ShapeError(f"[while_loop] body_fn must return the {before} tensors of the carry; got {after}.")
    return declared_call(run_while, (*bodies, carry, captured), {}, "while_loop")


@whole
def scan(fn: Callable[..., Any], init: Any, xs: Any) -> Any:
    """Apply ``carry, y = fn(carry, x)`` to each ``x`` along axis 0 of ``xs``; return the last carry and all ``y``."""
    carry, rows = _declared((init,))[0], _declared((xs,))[0]
    steps = pytree.flatten(rows)
    first = pytree.unflatten(steps[1], [declared_call(_first_row, (x,), {}, "scan/row") for x in steps[0]])
    bodies, captured = _recorded("scan", [(fn, (carry, first))])
    return declared_call(run_scan, (*bodies, carry, rows, captured), {}, "scan")


def run_cond(predicate: Any, then: Body, otherwise: Body, operands: Any, captured: list[Any]) -> Any:
    """Execute :func:`cond`."""
    leaves = pytree.flatten(operands)[0]
    return cond_transform(predicate, lambda: then(*leaves, *captured), lambda: otherwise(*leaves, *captured))


def run_while(condition: Body, body: Body, carry: Any, captured: list[Any]) -> Any:
    """Execute :func:`while_loop`."""

    def on(function: Body) -> Callable[[Any], Any]:
        return lambda now: function(*pytree.flatten(now)[0], *captured)

    structure = pytree.flatten(carry)[1]

    def step(now: Any) -> Any:
        after = on(body)(now)
        return pytree.unflatten(structure, pytree.flatten(after)[0])

    return while_transform(on(condition), step, carry)


def run_scan(step: Body, carry: Any, xs: Any, captured: list[Any]) -> Any:
    """Execute :func:`scan`."""
    return scan_transform(lambda now, x: step(*pytree.flatten((now, x))[0], *captured), carry, xs)


def _first_row(x: Any) -> Any:
    """Return a row of the shape and dtype of ``x``'s rows, even if it has no rows."""
    return zeros(x.shape[1:], dtype=x.dtype)


def _declared(tree: Any) -> Any:
    """Declare constants for leaves of ``tree`` that are not declared tensors."""
    leaves, structure = pytree.flatten(tree)
    return pytree.unflatten(structure, [x if isinstance(x, Declared) else constant(x) for x in leaves])
