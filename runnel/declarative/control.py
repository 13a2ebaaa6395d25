"""Branches and loops in a declared graph: functions of declared tensors become graphs of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from runnel.core import pytree
from runnel.core.errors import ArgumentError, GraphError, ShapeError
from runnel.declarative.calls import constant, declared_call
from runnel.declarative.graph import Graph, default_graph, set_entry, whole
from runnel.declarative.operation import Declared
from runnel.declarative.order import ancestors, ordered
from runnel.declarative.replay import Replay
from runnel.declarative.state import Placeholder
from runnel.tensor.creation import zeros
from runnel.transforms import control as cond_transform, control as while_transform, scan as scan_transform


class BodyGraph(Graph):
    """The graph of a function that a branch or a loop carries out. Tensors of the graphs around it become inputs:
    ``captures`` has the placeholder that stands for each."""

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
            f"[{name}] branches and loops change no variables; return the value, and assign it behind '{self.name}'."
        )

    def require_run(self, name: str) -> None:
        raise GraphError(
            f"[{name}] it would never have a value in '{self.name}'; declare it outside of branches and loops."
        )

    def graph_of(self, x: Declared) -> Graph:
        return self


class Body:
    """A function as a graph. Called with values for its parameters and for the tensors that it captures, it gives what
    the function does."""

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
        """A body whose results are nested as the numbers of ``tree``."""
        leaves, structure = pytree.flatten(tree)
        if leaves != list(range(len(outputs))):
            raise ValueError(f"the results of a body are numbered {leaves}")
        return cls(graph, parameters, outputs, structure)

    def filled(self, leaves: Sequence[Any]) -> Any:
        """``leaves`` nested as its results are."""
        return pytree.unflatten(self.structure, leaves)

    def __repr__(self) -> str:
        return f"<body of {len(self.operations)} operations>"


class _Recorded:
    """A function that was carried out on placeholders."""

    def __init__(self, name: str, function: Callable[..., Any], operands: Any) -> None:
        if not callable(function):
            raise ArgumentError(f"[{name}] takes functions of declared tensors; received {function!r}.")
        self.graph: Final = BodyGraph(default_graph(), name)
        leaves, structure = pytree.flatten(operands)
        self._own = [Placeholder(self.graph, "operand", x.static).outputs[0] for x in leaves]
        with self.graph:
            results, self._structure = pytree.flatten(function(*pytree.unflatten(structure, self._own)))
            results = [x if isinstance(x, Declared) else constant(x) for x in results]
        self._outputs = [self.graph.capture(x) for x in results]

    def body(self, captured: Sequence[Declared]) -> Body:
        """It as a function of its operands and of ``captured``, tensors outside, among which its captures are."""
        behind: list[Declared] = []
        for x in captured:
            inside = self.graph.captures.get(x)
            behind.append(Placeholder(self.graph, "unused", x.static).outputs[0] if inside is None else inside)
        return Body(self.graph, [*self._own, *behind], self._outputs, self._structure)


def _recorded(name: str, functions: Sequence[tuple[Callable[..., Any], Any]]) -> tuple[list[Body], list[Declared]]:
    """Functions with their operands as bodies that capture the same tensors, and these."""
    recorded = [_Recorded(name, function, operands) for function, operands in functions]
    captured = list(dict.fromkeys(x for each in recorded for x in each.graph.captures))
    return [each.body(captured) for each in recorded], captured


@whole
def cond(predicate: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """``true_fn(*operands)`` where ``predicate``, one bool, holds in a run, else ``false_fn(*operands)``, which does
    not run then. Both give trees of the same structure, shapes and dtypes, and may read tensors from outside.
    """
    taken = _declared(operands)
    bodies, captured = _recorded("cond", [(true_fn, taken), (false_fn, taken)])
    return declared_call(run_cond, (predicate, *bodies, taken, captured), {}, "cond")


@whole
def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], init: Any) -> Any:
    """``while cond_fn(*carry): carry = body_fn(*carry)`` from the tuple or list ``init``; gives the last carry.

    Both functions take the parts of the carry as arguments; ``body_fn`` gives a carry of the same structure. There is
    no gradient through it; :func:`scan` has one.
    """
    carry = _declared(init if isinstance(init, (tuple, list)) else (init,))
    bodies, captured = _recorded("while_loop", [(cond_fn, carry), (body_fn, carry)])
    before, after = len(pytree.flatten(carry)[0]), len(bodies[1].outputs)
    if before != after:
        raise ShapeError(
            f"[while_loop] the body gives {after} tensors, and the carry has {before}; give all of the next."
        )
    return declared_call(run_while, (*bodies, carry, captured), {}, "while_loop")


@whole
def scan(fn: Callable[..., Any], init: Any, xs: Any) -> Any:
    """``carry, y = fn(carry, x)`` for each ``x`` along axis 0 of ``xs``: the last carry, and all ``y`` stacked."""
    carry, rows = _declared((init,))[0], _declared((xs,))[0]
    steps = pytree.flatten(rows)
    first = pytree.unflatten(steps[1], [declared_call(_first_row, (x,), {}, "scan/row") for x in steps[0]])
    bodies, captured = _recorded("scan", [(fn, (carry, first))])
    return declared_call(run_scan, (*bodies, carry, rows, captured), {}, "scan")


def run_cond(predicate: Any, then: Body, otherwise: Body, operands: Any, captured: list[Any]) -> Any:
    """What :func:`cond` declares."""
    leaves = pytree.flatten(operands)[0]
    return cond_transform(predicate, lambda: then(*leaves, *captured), lambda: otherwise(*leaves, *captured))


def run_while(condition: Body, body: Body, carry: Any, captured: list[Any]) -> Any:
    """What :func:`while_loop` declares."""

    def on(function: Body) -> Callable[[Any], Any]:
        return lambda now: function(*pytree.flatten(now)[0], *captured)

    structure = pytree.flatten(carry)[1]

    def step(now: Any) -> Any:
        after = on(body)(now)
        return pytree.unflatten(structure, pytree.flatten(after)[0])

    return while_transform(on(condition), step, carry)


def run_scan(step: Body, carry: Any, xs: Any, captured: list[Any]) -> Any:
    """What :func:`scan` declares."""
    return scan_transform(lambda now, x: step(*pytree.flatten((now, x))[0], *captured), carry, xs)


def _first_row(x: Any) -> Any:
    """A row of ``x``, whose shape and dtype are asked for: also where there is none."""
    return zeros(x.shape[1:], dtype=x.dtype)


def _declared(tree: Any) -> Any:
    """``tree`` with constants declared for what is no declared tensor."""
    leaves, structure = pytree.flatten(tree)
    return pytree.unflatten(structure, [x if isinstance(x, Declared) else constant(x) for x in leaves])
