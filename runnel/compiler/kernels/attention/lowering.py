"""The lowerings of attention and of its gradients."""

from __future__ import annotations

from runnel.compiler.kernels.allocations import Allocation, Call
from runnel.compiler.kernels.attention.forward import attention
from runnel.compiler.kernels.attention.gradient import attention_gradient
from runnel.compiler.kernels.lowering import Lowering, Request


class AttentionLowering(Lowering):
    """Blocks of queries, with strided operands."""

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [attention(request.node, request.operands, results[0])]


class AttentionGradientLowering(Lowering):
    """All gradients of one attention by one kernel."""

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [attention_gradient(request.node, request.operands, results)]
