"""A part of a loop's body computed for all steps at once, as ``vmap`` does it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from runnel.compiler.lowering.protocol import lowering_of
from runnel.core.axes import LOOPED
from runnel.core.tables import axes
from runnel.graph.node import Node, Result, Value
from runnel.tensor.batching import Batching
from runnel.tensor.bodies import leaf, results
from runnel.tensor.tensor import Tensor


def is_batchable(node: Value) -> bool:
    """Whether ``node`` can be carried out for all steps at once. Checks and host calls stay at their steps."""
    if node.op is None:
        return node.is_constant
    return axes.get(node.op) not in (None, LOOPED) and not lowering_of(node).stays_in_step


def is_view(node: Value) -> bool:
    """Whether ``node`` computes nothing."""
    return lowering_of(node).is_view


class Steps:
    """Values of a body's nodes over ``length`` steps, from some that are known."""

    def __init__(self, length: int) -> None:
        self._level = Batching(length)
        self._known: dict[Value, Tensor] = {}
        self._results: dict[Node, tuple[Tensor, ...]] = {}

    def fix(self, nodes: Iterable[Value], values: Iterable[Tensor]) -> None:
        """``nodes`` have these values at every step."""
        self._known.update((node, self._level.lifted(x)) for node, x in zip(nodes, values, strict=True))

    def stack(self, nodes: Iterable[Value], values: Iterable[Tensor]) -> None:
        """``nodes`` have the values that are stacked here."""
        self._known.update((node, self._level.stack(x)) for node, x in zip(nodes, values, strict=True))

    def reaches(self, node: Value, further: Collection[Value]) -> bool:
        """Whether ``node`` can be computed from what is known and ``further`` nodes."""
        pending, visited = [node], set()
        while pending:
            at = pending.pop()
            if at in visited or at in self._known or at in further:
                continue
            visited.add(at)
            if not is_batchable(at):
                return False
            pending += at.inputs
        return True

    def compute(self, nodes: Iterable[Value]) -> None:
        """Compute these nodes, and what they need of what is not known."""
        stack = list(nodes)
        with self._level:
            while stack:
                node = stack[-1]
                missing = [] if node in self._known else [x for x in node.inputs if x not in self._known]
                if missing:
                    stack += missing
                    continue
                stack.pop()
                if node not in self._known:
                    result = self._computed(node)
                    self._known[node] = result if result._level is self._level else self._level.lifted(result)

    def _computed(self, value: Value) -> Tensor:
        if not isinstance(value, Result):
            return leaf(value)
        if value.node not in self._results:
            self._results[value.node] = results(value.node, [self._known[x] for x in value.inputs])
        return self._results[value.node][value.index]

    def all_steps(self, node: Value) -> Tensor:
        """The values of ``node``, stacked; repeated if it is the same at every step."""
        return self._level.all_elements(self._known[node])

    def fixed(self, node: Value) -> Tensor:
        """The value of ``node``, which is the same at every step."""
        return self._level.split(self._known[node])[0]
