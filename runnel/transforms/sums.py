"""Gradient accumulation sinking: move the sums over steps of a loop's backward pass behind the loop.

The gradient of a constant is a sum over steps. If each term is a matrix product aₜ·bₜ, the sum is one product of the
stacked factors, contracted over steps and rows at once. If each term is a sum over axes, it is one sum over steps and
axes. The loop then only stacks the factors, most of which it stacks anyway.
"""

from __future__ import annotations

from runnel.core.avals import aval
from runnel.core.dispatch import apply
from runnel.core.records import record
from runnel.graph.node import Value, applied
from runnel.ops import permute, reshape
from runnel.ops.elementwise.arithmetic import add_p
from runnel.ops.linear_algebra.contraction import matmul_p
from runnel.ops.shapes.broadcasting import sum_keepdims, sum_p
from runnel.ops.shapes.views import permute_p, reshape_p
from runnel.tensor.tensor import Tensor


@record
class Term:
    """A term of a sum over steps: ``views``, the last first, of a product or sum of stacked ``factors``.

    The left factor of a product is stacked transposed, so that its steps and columns can be one axis.
    """

    op: Value
    views: tuple[Value, ...]
    factors: tuple[Value, ...]

    def total(self, stacks: list[Tensor], length: int) -> Tensor:
        """Return the term summed over all steps."""
        if self.op.op is matmul_p:
            left, right = (reshape(x, (length * x.shape[1], x.shape[2])) for x in stacks)
            value: Tensor = apply(matmul_p, permute(left, (1, 0)), right)
        else:
            axes = (0, *(a + 1 for a in self.op.attrs["axes"]))
            value = reshape(sum_keepdims(stacks[0], axes), self.op.aval.shape)
        for view in reversed(self.views):
            value = apply(view.op, value, **view.attrs)  # type: ignore[arg-type]
        return value


def terms(node: Value) -> list[Term] | None:
    """Return the terms of ``node``, or None unless all of them can be summed after the loop."""
    if node.op is add_p and node.inputs[0].aval is node.inputs[1].aval:
        parts = [terms(x) for x in node.inputs]
        return None if None in parts else [term for part in parts if part is not None for term in part]
    views: list[Value] = []
    while node.op in (permute_p, reshape_p):
        views.append(node)
        node = node.inputs[0]
    if node.op is matmul_p and node.aval.ndim == 2:
        return [Term(node, tuple(views), (_transposed(node.inputs[0]), node.inputs[1]))]
    if node.op is sum_p:
        return [Term(node, tuple(views), node.inputs)]
    return None


def _transposed(node: Value) -> Value:
    if node.op is permute_p:
        return node.inputs[0]
    flipped = aval(node.aval.shape[::-1], node.aval.dtype)
    return applied(permute_p, (node,), {"axes": (1, 0)}, flipped, node.where)
