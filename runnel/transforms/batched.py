"""A part of a loop's body carried out for all steps at once: values that differ from step to step are stacked along a
new axis 0. For the ops that leave loops this way: pointwise ones, views, sums and matrix products.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.core.dispatch import apply
from runnel.core.tables import lower
from runnel.graph.node import Node, Result, Value
from runnel.loops.rules import Pointwise, Reduction, View
from runnel.ops import broadcast_to, reshape
from runnel.ops.broadcasting import broadcast_p
from runnel.ops.contraction import matmul_p
from runnel.ops.pieces import concat_p, slice_p
from runnel.ops.views import permute_p, reshape_p
from runnel.tensor.bodies import leaf, results
from runnel.tensor.tensor import Tensor


def is_batchable(node: Value) -> bool:
    """Whether :class:`Batched` knows how to carry out ``node`` for all steps at once."""
    if node.op is None:
        return node.is_constant
    if isinstance(lower.get(node.op), Reduction) or type(lower.get(node.op)) is Pointwise:
        return True
    return node.op in (reshape_p, permute_p, broadcast_p, slice_p, concat_p, matmul_p)


def is_view(node: Value) -> bool:
    """Whether ``node`` computes nothing."""
    return node.op is not None and isinstance(lower.get(node.op), View)


class Batched:
    """Values of a body's nodes over ``length`` steps, from some that are known."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.fixed: dict[Value, Any] = {}  # the same at every step
        self.stacked: dict[Value, Tensor] = {}
        self._made: dict[Node, tuple[Any, ...]] = {}

    def reaches(self, node: Value) -> bool:
        """Whether ``node`` can be computed from what is known."""
        pending, seen = [node], set()
        while pending:
            at = pending.pop()
            if at in seen or at in self.fixed or at in self.stacked:
                continue
            seen.add(at)
            if not is_batchable(at):
                return False
            pending += at.inputs
        return True

    def compute(self, wanted: Iterable[Value]) -> None:
        """Compute these nodes, and what they need of what is not known."""
        stack = list(wanted)
        while stack:
            node = stack[-1]
            missing = [] if self._knows(node) else [x for x in node.inputs if not self._knows(x)]
            if missing:
                stack += missing
                continue
            stack.pop()
            if self._knows(node):
                continue
            if any(x in self.stacked for x in node.inputs):
                self.stacked[node] = self._all_steps(node)
            else:
                self.fixed[node] = self._once(node)

    def _once(self, value: Value) -> Any:
        """A value that is the same at every step; what is computed with it is kept."""
        if not isinstance(value, Result):
            return leaf(value)
        if value.node not in self._made:
            self._made[value.node] = results(value.node, [self.fixed[x] for x in value.inputs])
        return self._made[value.node][value.index]

    def _knows(self, node: Value) -> bool:
        return node in self.fixed or node in self.stacked

    def all_steps(self, node: Value) -> Tensor:
        """The stacked value of ``node``, repeated if it is the same at every step."""
        if node in self.stacked:
            return self.stacked[node]
        value: Tensor = broadcast_to(self._one(node), (self.length, *node.aval.shape))
        return value

    def _one(self, node: Value) -> Tensor:
        """The value of ``node`` with an axis 0, of size 1 if it is the same at every step."""
        if node in self.stacked:
            return self.stacked[node]
        value: Tensor = reshape(self.fixed[node], (1, *node.aval.shape))
        return value

    def _all_steps(self, node: Value) -> Tensor:
        attrs = dict(node.attrs)
        if node.op is matmul_p:
            return self._product(*node.inputs)
        if node.op is concat_p:
            attrs["axis"] += 1
            return self._applied(node, [self.all_steps(x) for x in node.inputs], attrs)
        if node.op is reshape_p or node.op is broadcast_p:
            attrs["shape"] = (self.length, *attrs["shape"])
        elif node.op is permute_p:
            attrs["axes"] = (0, *(a + 1 for a in attrs["axes"]))
        elif node.op is slice_p:
            attrs = {
                "starts": (0, *attrs["starts"]),
                "sizes": (self.length, *attrs["sizes"]),
                "steps": (1, *attrs["steps"]),
            }
        elif "axes" in attrs:
            attrs["axes"] = tuple(a + 1 for a in attrs["axes"])
        return self._applied(node, [self._one(x) for x in node.inputs], attrs)

    def _product(self, x: Value, y: Value) -> Tensor:
        """With a right operand that stays the same, the steps become rows of one large product."""
        if y in self.stacked or y.aval.ndim != 2:
            return apply(matmul_p, self.all_steps(x), self.all_steps(y))
        rows, inner = x.aval.shape
        flat = reshape(self.stacked[x], (self.length * rows, inner))
        product: Tensor = reshape(apply(matmul_p, flat, self.fixed[y]), (self.length, rows, y.aval.shape[1]))
        return product

    @staticmethod
    def _applied(node: Value, inputs: list[Tensor], attrs: dict[str, Any]) -> Tensor:
        made: Tensor = apply(node.op, *inputs, **attrs)  # type: ignore[arg-type]
        return made
