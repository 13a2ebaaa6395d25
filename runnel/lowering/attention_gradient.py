"""The gradients of attention as a kernel: weights are made anew for each block of queries, in scratch memory.

A call's rows are the heads of keys; whoever computes one adds up its keys' and values' gradients over all blocks of all
queries' heads that read it, so that no thread waits for another.
"""

from __future__ import annotations

import math

from runnel.core.avals import row_major
from runnel.graph.graph import Node
from runnel.loops import scalar
from runnel.loops.ir import Acc, Const, For, Index, Let, Load, RangeBound, Ref, Stmt, Store, Update, Var
from runnel.lowering.attention_blocks import ELEMENT, KEY, QUERY, Blocks, Lie, at, heads_lie, packed_lies
from runnel.lowering.operands import Operands
from runnel.lowering.parts import binary, count
from runnel.lowering.places import Call, Place

ROW, BLOCK = Var("row"), Var("block")


class _Backward(Blocks):
    """The kernel of one node."""

    def __init__(self, node: Node, x: Operands, result: Place) -> None:
        super().__init__(node, node.inputs[1:], x, max(self._keys(node), 1))
        self.g_steps = self.operand("g", heads_lie(x.lie(node.inputs[0])))
        dq, dk, dv = self._results(result)
        self.dq_row, _ = self.operand("dq", dq, "out")
        self.dk_row, _ = self.operand("dk", dk, "out", shared=True)
        self.dv_row, _ = self.operand("dv", dv, "out", shared=True)
        self.parts.scratch("t", self.dtype, self.height * self.row)

    @staticmethod
    def _keys(node: Node) -> int:
        shape = (node.inputs[1] if node.attrs["packed"] else node.inputs[2]).aval.shape
        return shape[1] if node.attrs["packed"] else shape[2]

    def _results(self, result: Place) -> tuple[Lie, Lie, Lie]:
        if self.node.attrs["packed"]:
            return packed_lies((result, 0, row_major(self.node.aval.shape)))
        sizes = [math.prod(p) for p in self.at.parts]
        starts = (0, sizes[0], sizes[0] + sizes[1])
        dq, dk, dv = (heads_lie((result, s, row_major(p))) for s, p in zip(starts, self.at.parts, strict=True))
        return dq, dk, dv

    def build(self) -> Call:
        table = self.table()
        width = table.shape[-1]
        blocks = self.at.group * table.shape[2]
        line = ((ROW, self.parts.param(blocks * width)), (BLOCK, width))
        shared = ["dk_at", "dv_at"]
        each = [*self.lets(line, [n for n in self.columns if n not in shared]), self.seen(), *self._block()]
        body = (
            *self.lets(line[:1], shared),
            self._zeros(),
            For(BLOCK, 0, self.parts.param(blocks), "seq", tuple(each)),
        )
        loop = For(ROW, RangeBound.I0, RangeBound.I1, "seq", body)
        return self.call("attention_gradient", (loop,), self.at.batch * self.at.kv_heads, 5)

    def _zeros(self) -> Stmt:
        """The gradients of keys and values, before any query has been seen."""
        zero = Const(0.0, self.dtype)
        dk = For(ELEMENT, 0, self.depth, "vec", (Store("dk", at("dk_at", (KEY, self.dk_row), (ELEMENT, 1)), zero),))
        dv = For(ELEMENT, 0, self.values, "vec", (Store("dv", at("dv_at", (KEY, self.dv_row), (ELEMENT, 1)), zero),))
        return For(KEY, 0, self.parts.param(self.at.keys), "seq", (dk, dv))

    def _block(self) -> list[Stmt]:
        """The scores go to weights in ``s``, their gradients come in ``t``; three products make of them the results."""
        height, seen = count("height"), count("seen")
        t = ("t", Index(), self.row_step)
        q, g = ("q", at("q_at"), *self.q_steps), ("g", at("g_at"), *self.g_steps)
        return [
            self.scores(at("k_at"), seen),
            self.product(g, ("v", at("v_at"), self.v_steps[1], self.v_steps[0]), t, height, seen, self.values),
            For(QUERY, 0, height, "seq", self._row(seen)),
            self.product(
                ("s", Index(), 1, self.row_step), g, ("dv", at("dv_at"), self.dv_row), seen, self.values, height,
                accumulate=True,
            ),
            self.product(
                (*t, 1), ("k", at("k_at"), *self.k_steps), ("dq", at("dq_at"), self.dq_row), height, self.depth, seen
            ),
            self.product(
                ("t", Index(), 1, self.row_step), q, ("dk", at("dk_at"), self.dk_row), seen, self.depth, height,
                accumulate=True,
            ),
        ]  # fmt: skip

    def _row(self, seen: Ref) -> tuple[Stmt, ...]:
        """Row I: the weights, their product with what came in, summed, and the gradients of the scores."""
        dtype = self.dtype
        weight, score = Ref("weight", dtype), Load("t", self.s_cell, dtype)
        weigh = (
            Let("weight", binary(scalar.mul, Load("s", self.s_cell, dtype), Ref("ratio", dtype))),
            Store("s", self.s_cell, weight),
            Update("dot", binary(scalar.mul, weight, score)),
        )
        inner = binary(scalar.mul, Load("s", self.s_cell, dtype), binary(scalar.sub, score, Ref("dot", dtype)))
        return (
            self.row_limit(seen),
            *self.top_of_row(),
            Let("shift", self.finite(Ref("top", dtype))),
            *self.powers_of_row(seen),
            Let("ratio", self.inverse(Ref("total", dtype))),
            Acc("dot", "sum", dtype),
            For(KEY, 0, count("limit"), "vec", weigh),
            For(KEY, 0, count("limit"), "vec", (Store("t", self.s_cell, binary(scalar.mul, inner, self.factor)),)),
            *self.cleared_row("t", seen),
        )


def attention_gradient(node: Node, operands: Operands, results: list[Place]) -> list[Call]:
    """The call of the gradients of one attention."""
    return [_Backward(node, operands, results[0]).build()]
