"""Attention as a kernel: scores and weights of a block of queries live in the thread's scratch memory.

A call's rows are the blocks of queries of all heads. Where a sequence has more than KEYS keys they are taken in blocks,
with a running maximum and sum for each query (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax",
2018).
"""

from __future__ import annotations

import numpy as np

from runnel.core.avals import row_major
from runnel.core.dtypes import int64
from runnel.graph.graph import Node
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr, For, Index, Let, Load, RangeBound, Ref, Stmt, Store, Var
from runnel.lowering.attention_blocks import ELEMENT, QUERY, Blocks, at, heads_lie
from runnel.lowering.operands import Operands
from runnel.lowering.parts import binary, clipped, count
from runnel.lowering.places import Call, Place

KEYS = 512  # of a block, where there are more
ROW, BLOCK = Var("row"), Var("block")


class _Forward(Blocks):
    """The kernel of one node."""

    def __init__(self, node: Node, x: Operands, result: Place) -> None:
        super().__init__(node, node.inputs, x, KEYS)
        self.o_row, _ = self.operand("o", heads_lie((result, 0, row_major(node.aval.shape))), "out")
        self.out = at("o_at", (QUERY, self.o_row), (ELEMENT, 1))
        self.here = Index(((QUERY, 1),))

    def build(self) -> Call:
        table = self.table()
        body = [*self.lets(((ROW, table.shape[-1]),)), self.seen()]
        body += self._whole() if self.at.keys <= KEYS else self._in_blocks()
        loop = For(ROW, RangeBound.I0, RangeBound.I1, "seq", tuple(body))
        return self.call("attention", (loop,), table[..., 0].size, 2)

    def _whole(self) -> list[Stmt]:
        """All keys at once; ``ratio`` keeps what each query's values are to be multiplied by."""
        dtype, height, seen = self.dtype, count("height"), count("seen")
        self.parts.scratch("ratios", dtype, self.height)
        rows = (
            self.row_limit(seen),
            *self.top_of_row(),
            Let("shift", self.finite(Ref("top", dtype))),
            *self.powers_of_row(seen),
            Store("ratios", self.here, self.inverse(Ref("total", dtype))),
        )
        return [
            self.scores(at("k_at"), seen),
            For(QUERY, 0, height, "seq", rows),
            self.product(
                ("s", Index(), self.row_step, 1), ("v", at("v_at"), *self.v_steps), ("o", at("o_at"), self.o_row),
                height, self.values, seen,
            ),
            self._finish(Load("ratios", self.here, dtype), Load("o", self.out, dtype)),
        ]  # fmt: skip

    def _finish(self, ratio: Expr, value: Expr) -> Stmt:
        """Each query's values times its ratio."""
        result = Store("o", self.out, binary(scalar.mul, value, Ref("ratio", self.dtype)))
        return For(
            QUERY, 0, count("height"), "seq", (Let("ratio", ratio), For(ELEMENT, 0, self.values, "vec", (result,)))
        )

    def _in_blocks(self) -> list[Stmt]:
        """Keys in blocks. For each query: the greatest score and the sum of powers so far in ``tops`` and ``sums``, its
        values in ``values``, and what those of before a block shrink by in ``shrink``."""
        parts, dtype, here = self.parts, self.dtype, self.here
        height, start, now = count("height"), count("start"), count("now")
        for name in ("tops", "sums", "shrink"):
            parts.scratch(name, dtype, self.height)
        for name in ("values", "more"):
            parts.scratch(name, dtype, self.height * self.at.values)
        starts = np.arange(0, self.at.keys, KEYS)
        parts.table("starts", starts)
        cell = Index(((QUERY, self.values), (ELEMENT, 1)))
        zero = Const(0.0, dtype)
        begin = (
            Store("tops", here, Const(float("-inf"), dtype)),
            Store("sums", here, zero),
            For(ELEMENT, 0, self.values, "vec", (Store("values", cell, zero),)),
        )
        if self.mask is not None:
            step = self.mask_key if self.mask_key == 0 else parts.param(KEYS * self.mask_stride)
            self.mask = Load("mask", self._mask_at((BLOCK, step)), self.mask.dtype)
        before, shift, factor = Ref("before", dtype), Ref("shift", dtype), Ref("factor", dtype)
        kept = Apply(scalar.exp, (self.scaled(binary(scalar.sub, before, shift)),), dtype)
        total = binary(scalar.add, binary(scalar.mul, Load("sums", here, dtype), factor), Ref("total", dtype))
        rows = (
            self.row_limit(now, start),
            *self.top_of_row(),
            Let("before", Load("tops", here, dtype)),
            Let("highest", binary(scalar.maximum, before, Ref("top", dtype))),
            Let("shift", self.finite(Ref("highest", dtype))),
            *self.powers_of_row(now),
            Let("factor", Apply(scalar.select, (self.is_lowest(before), zero, kept), dtype)),
            Store("tops", here, Ref("highest", dtype)),
            Store("shrink", here, factor),
            Store("sums", here, total),
        )
        old = binary(scalar.mul, Load("values", cell, dtype), factor)
        join = (
            Let("factor", Load("shrink", here, dtype)),
            For(ELEMENT, 0, self.values, "vec",
                (Store("values", cell, binary(scalar.add, old, Load("more", cell, dtype))),)),
        )  # fmt: skip
        block = (
            Let("start", Load("starts", Index(((BLOCK, 1),)), int64)),
            Let("now", clipped(binary(scalar.sub, count("seen"), start), 0, Const(KEYS, int64))),
            self.scores(at("k_at", (BLOCK, parts.param(KEYS * self.k[2][2]))), now),
            For(QUERY, 0, height, "seq", rows),
            self.product(
                ("s", Index(), self.row_step, 1),
                ("v", at("v_at", (BLOCK, parts.param(KEYS * self.v[2][2]))), *self.v_steps),
                ("more", Index(), self.values),
                height, self.values, now,
            ),
            For(QUERY, 0, height, "seq", join),
        )  # fmt: skip
        ratio = self.inverse(Load("sums", here, dtype))
        return [
            For(QUERY, 0, height, "seq", begin),
            For(BLOCK, 0, parts.param(len(starts)), "seq", block),
            self._finish(ratio, Load("values", cell, dtype)),
        ]


def attention(node: Node, operands: Operands, results: list[Place]) -> list[Call]:
    """The call of one attention."""
    return [_Forward(node, operands, results[0]).build()]
