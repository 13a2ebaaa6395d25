"""Attention as a kernel: scores and weights of a block of queries are in the thread's scratch memory.

A call's rows are the blocks of queries of all heads. More than KEYS keys are processed in k-blocks, with a running
maximum and sum for each query (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018).
"""

from __future__ import annotations

from runnel.compiler.kernels.attention.blocks import ELEMENT, KEY_STEP, KEYS, QUERY, Rows, at, heads_first
from runnel.compiler.kernels.attention.masks import SEQUENCE, SequenceBounds
from runnel.compiler.lowering.operands import Operands
from runnel.compiler.lowering.parts import binary, count
from runnel.compiler.lowering.protocol import Lowering, Request
from runnel.compiler.plan_ir.calls import Allocation, Call
from runnel.core.avals import row_major
from runnel.graph.node import Value
from runnel.loops import scalar
from runnel.loops.ir import Expr, For, Index, Let, Load, RangeBound, Stmt, Store, Var

ROW = Var("row")


class _Forward(Rows):
    """The kernel of one node."""

    def __init__(self, node: Value, x: Operands, result: Allocation) -> None:
        super().__init__(node, node.inputs, x, KEYS)
        self.o_row, _ = self.operand("o", heads_first((result, 0, row_major(node.aval.shape))), "out")
        self.out = at("o_at", (QUERY, self.o_row), (ELEMENT, 1))

    def build(self) -> Call:
        body = [*self.lets(((ROW, self.table()),)), *self.draw_words()]
        if self.bounds is not None:
            body += self._by_k_blocks(self._by_sequence(self.bounds))
        elif self.at.keys <= KEYS:
            body += [self.visible_keys(), *self._whole()]
        else:
            body += [
                *self.by_k_blocks(),
                *self._by_k_blocks([For(KEY_STEP, 0, count("k_blocks"), "seq", self._k_block())]),
            ]
        loop = For(ROW, RangeBound.I0, RangeBound.I1, "seq", tuple(body))
        return self.call("attention", (loop,), self.at.batch * self.at.heads * max(self.blocks, 1), 2)

    def _whole(self) -> list[Stmt]:
        """Return all keys at once; ``ratios`` holds the factor of each query's values."""
        height, visible = count("height"), count("seen")
        self.parts.scratch("ratios", self.dtype, self.height)
        rows = (
            self.row_limit(visible),
            *self.top_of_row(),
            Let("shift", self.finite(self.number("top"))),
            *self.powers_of_row(visible),
            *self._drop(None),
            Store("ratios", self.here, self.rescaled(self.inverse(self.number("total")))),
        )
        return [
            self.scores(at("k_at"), visible),
            self.over_rows(rows),
            self.product(
                ("s", Index(), self.row_step, 1), ("v", at("v_at"), *self.v_steps), ("o", at("o_at"), self.o_row),
                height, self.values, visible,
            ),
            self._finish(Load("ratios", self.here, self.dtype), Load("o", self.out, self.dtype)),
        ]  # fmt: skip

    def _drop(self, before: Expr | None) -> list[Stmt]:
        """Replace the dropped powers of row I by zeros."""
        return self.drawn_row(before, (Store("s", self.s_cell, self.unless_dropped(self.score)),))

    def _finish(self, ratio: Expr, value: Expr) -> Stmt:
        """Multiply each query's values by its ratio."""
        result = Store("o", self.out, binary(scalar.mul, value, self.number("ratio")))
        return For(
            QUERY, 0, count("height"), "seq", (Let("ratio", ratio), For(ELEMENT, 0, self.values, "vec", (result,)))
        )

    # Keys in k-blocks -------------------------------------------------------------------------------------------------

    def _by_k_blocks(self, k_blocks: list[Stmt]) -> list[Stmt]:
        """Store for each query the largest score and the sum of powers so far in ``tops`` and ``sums``, its values in
        ``values``, and the factor by which a k-block rescales earlier values in ``shrink``."""
        for name in ("tops", "sums", "shrink"):
            self.parts.scratch(name, self.dtype, self.height)
        for name in ("values", "more"):
            self.parts.scratch(name, self.dtype, self.height * self.at.values)
        clear = For(ELEMENT, 0, self.values, "vec", (Store("values", self._cell, self.zero()),))
        ratio = self.rescaled(self.inverse(Load("sums", self.here, self.dtype)))
        return [
            For(QUERY, 0, count("height"), "seq", (*self.no_turn_yet(("sums",)), clear)),
            *k_blocks,
            self._finish(ratio, Load("values", self._cell, self.dtype)),
        ]

    def _by_sequence(self, bounds: SequenceBounds) -> list[Stmt]:
        """Return the k-blocks of each sequence that the block of queries overlaps."""
        own = self.sequence(bounds, {"q": self.q_steps[0]}, {"k": self.k_steps[0], "v": self.v_steps[0]})
        each = (*own, For(KEY_STEP, 0, count("k_blocks"), "seq", self._k_block()))
        return [For(SEQUENCE, 0, bounds.sequences, "seq", each)]

    @property
    def _cell(self) -> Index:
        return Index(((QUERY, self.values), (ELEMENT, 1)))

    def _k_block(self) -> tuple[Stmt, ...]:
        dtype, now, start, factor = self.dtype, count("now"), count("start"), self.number("factor")
        rows = (
            self.row_limit(now, start),
            *self.top_of_row(),
            *self.shift_to_top(),
            *self.powers_of_row(now),
            *self._drop(start),
            *self.join_turn((("sums", "total"),)),
            Store("shrink", self.here, factor),
        )
        old = binary(scalar.mul, Load("values", self._cell, dtype), factor)
        join = (
            Let("factor", Load("shrink", self.here, dtype)),
            For(ELEMENT, 0, self.values, "vec",
                (Store("values", self._cell, binary(scalar.add, old, Load("more", self._cell, dtype))),)),
        )  # fmt: skip
        k_turn, v_turn = (self.parts.param(KEYS * view[2][2]) for view in (self.k, self.v))
        return (
            *self.turn(),
            self.scores(self.first_of("k", (KEY_STEP, k_turn)), now),
            self.over_rows(rows),
            self.product(
                ("s", self.own(self.row_step), self.row_step, 1),
                ("v", self.first_of("v", (KEY_STEP, v_turn)), *self.v_steps),
                ("more", self.own(self.values), self.values),
                self.row_count, self.values, now,
            ),
            self.over_rows(join),
        )  # fmt: skip


def attention(node: Value, operands: Operands, result: Allocation) -> Call:
    """Return the call of one attention."""
    return _Forward(node, operands, result).build()


class AttentionLowering(Lowering):
    """Blocks of queries, with strided operands."""

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [attention(request.node, request.operands, results[0])]
