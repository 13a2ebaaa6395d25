"""The gradients of attention as a kernel: weights are recomputed for each block of queries, in scratch memory.

A call's rows are the heads of keys; the thread of a head sums its keys' and values' gradients over all blocks of all
query heads that read it, so that no thread waits for another. With more than K_BLOCK queries, the sum of each block is
computed separately and added to those before, so that no chain is as long as the sequence. More than WHOLE keys are
processed in k-blocks, in two passes: for each query's greatest score and sums, then for the gradients (T. Dao et al.,
"FlashAttention", 2022; here the forward kernel's pass is repeated).
"""

from __future__ import annotations

from typing import Final

from runnel.compiler.kernels.attention.blocks import (
    ELEMENT,
    KEY,
    KEY_STEP,
    KEYS,
    QUERY,
    Matrix,
    Rows,
    at,
    heads_first,
    unpacked,
)
from runnel.compiler.kernels.attention.masks import DROPPED, SEQUENCE, SequenceBounds
from runnel.compiler.lowering.operands import Operands
from runnel.compiler.lowering.parts import binary, clipped, count
from runnel.compiler.lowering.protocol import Lowering, Request
from runnel.compiler.plan_ir.calls import Allocation, BufferView, Call
from runnel.core.avals import row_major
from runnel.core.dtypes import bool_, int64
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.ops.attention.reference import operands as sorted_operands

WHOLE: Final = 2048  # most keys that are processed at once: each k-block costs two more products
ROW, BLOCK, AGAIN = ir.Var("row"), ir.Var("block"), ir.Var("once_more")


class _Backward(Rows):
    """The kernel of one node."""

    def __init__(self, node: Value, x: Operands, results: list[Allocation]) -> None:
        keys = sorted_operands(tuple(n.aval for n in node.inputs[1:]), **node.attrs).heads.keys
        self.is_whole = not node.attrs["ragged"] and keys <= WHOLE
        super().__init__(node, node.inputs[1:], x, WHOLE if self.is_whole else KEYS)
        self.g_steps = self.operand("g", heads_first(x.view(node.inputs[0])))
        dq, dk, dv = self._results(results)
        self.dq_row, _ = self.operand("dq", dq, "out")
        self.dk_row, _ = self.operand("dk", dk, "out", shared=True)
        self.dv_row, _ = self.operand("dv", dv, "out", shared=True)
        self.parts.scratch("t", self.dtype, self.height * self.row)
        extents = self.at
        self.is_long = not self.is_whole or extents.queries * extents.group > ir.K_BLOCK
        if self.is_long:
            keys = self.at_once if node.attrs["ragged"] else min(self.at_once, max(extents.keys, 1))
            rows = max(keys, self.height)
            self.parts.scratch("part", self.dtype, rows * max(extents.depth, extents.values))

    def _results(self, results: list[Allocation]) -> tuple[BufferView, BufferView, BufferView]:
        if self.node.attrs["packed"]:
            return unpacked((results[0], 0, row_major(self.node.aval.shape)))
        dq, dk, dv = (heads_first((x, 0, row_major(p))) for x, p in zip(results, self.at.parts, strict=True))
        return dq, dk, dv

    def build(self) -> Call:
        width = self.table()
        blocks = self.at.group * max(self.blocks, 1)
        line = ((ROW, self.parts.param(blocks * width)), (BLOCK, width))
        shared = ["dk_at", "dv_at"]
        each = self.lets(line, [n for n in self.names if n not in shared])
        if self.is_whole:
            each += [self.visible_keys(), *self._whole()]
        elif self.bounds is None:
            each += [*self.by_k_blocks(), *self._by_k_blocks(self._turns())]
        else:
            each += self._by_k_blocks(self._by_sequence(self.bounds))
        body = (
            *self.lets(line[:1], shared),
            *self.draw_words(),
            self._zeros(),
            ir.For(BLOCK, 0, self.parts.param(blocks), "seq", tuple(each)),
        )
        loop = ir.For(ROW, ir.RangeBound.I0, ir.RangeBound.I1, "seq", body)
        return self.call("attention_gradient", (loop,), self.at.batch * self.at.kv_heads, 5)

    def _zeros(self) -> ir.Stmt:
        """Set the gradients of keys and values to zero."""
        zero = self.zero()
        dk = ir.For(
            ELEMENT, 0, self.depth, "vec", (ir.Store("dk", at("dk_at", (KEY, self.dk_row), (ELEMENT, 1)), zero),)
        )
        dv = ir.For(
            ELEMENT, 0, self.values, "vec", (ir.Store("dv", at("dv_at", (KEY, self.dv_row), (ELEMENT, 1)), zero),)
        )
        return ir.For(KEY, 0, self.parts.param(self.at.keys), "seq", (dk, dv))

    # Rows -------------------------------------------------------------------------------------------------------------

    @property
    def _incoming(self) -> ir.Load:
        """The gradient of a weight: the product of a query's gradient and a key's value; later the score's gradient."""
        return ir.Load("t", self.s_cell, self.dtype)

    def _powers(self, end: ir.Ref, before: ir.Ref | None) -> list[ir.Stmt]:
        """Turn scores of row I into powers, with their sum ``total`` and their product ``dot`` with weights' gradients.
        A dropped power is stored with a minus sign."""
        if self.dropout_mask is None:
            return self.powers_of_row(end, self._incoming)
        power, incoming = self.number("power"), self.number("came")
        body = (
            ir.Let("power", self.score),
            ir.Let("came", self.unless_dropped(self.rescaled(self._incoming))),
            ir.Store(
                "s", self.s_cell, ir.Apply(scalar.select, (DROPPED, self._of(scalar.neg, power), power), self.dtype)
            ),
            ir.Store("t", self.s_cell, incoming),
            ir.Update("dot", binary(scalar.mul, power, incoming)),
        )
        return [*self.powers_of_row(end), self.sum_of_row("dot"), *self.drawn_row(before, body)]

    def _gradients(self, end: ir.Ref) -> list[ir.Stmt]:
        """From powers of row I, their ``ratio`` to weights and the ``mean`` of the weights' gradients: the weights
        after dropout in ``s``, and the gradients of the scores in ``t``."""
        power, ratio, dtype = self.number("power"), self.number("ratio"), self.dtype
        size: ir.Expr = power if self.dropout_mask is None else self._of(scalar.abs_, power)
        weight: ir.Expr = self.number("weight")
        if self.dropout_mask is not None:
            weight = binary(scalar.mul, self._of(scalar.maximum, power, self.zero()), self.rescaled(ratio))
        inner = binary(scalar.mul, self.number("weight"), binary(scalar.sub, self._incoming, self.number("mean")))
        body = (
            ir.Let("power", ir.Load("s", self.s_cell, dtype)),
            ir.Let("weight", binary(scalar.mul, size, ratio)),
            ir.Store("s", self.s_cell, weight),
            ir.Store("t", self.s_cell, binary(scalar.mul, inner, self.factor)),
        )
        return [self.over_limit(body), *self.cleared_row("t", end)]

    def _of(self, op: scalar.ScalarOp, *values: ir.Expr) -> ir.Expr:
        return ir.Apply(op, values, self.dtype)

    # Matrices ---------------------------------------------------------------------------------------------------------

    def _both(
        self, turn: tuple[tuple[ir.Var, ir.Param], ...], turn_v: tuple[tuple[ir.Var, ir.Param], ...], number: ir.Ref
    ) -> list[ir.Stmt]:
        """Return the scores in ``s`` and the gradients of their weights in ``t``."""
        g = ("g", self.first_of("g"), *self.g_steps)
        v = ("v", self.first_of("v", *turn_v), self.v_steps[1], self.v_steps[0])
        t = ("t", self.own(self.row_step), self.row_step)
        return [
            self.scores(self.first_of("k", *turn), number),
            self.product(g, v, t, self.row_count, number, self.values),
        ]

    def _turned(self, name: str) -> Matrix:
        """Return the transpose of a scratch matrix."""
        return name, self.own(self.row_step), 1, self.row_step

    # All keys at once -------------------------------------------------------------------------------------------------

    def _whole(self) -> list[ir.Stmt]:
        """Compute the results by three products from weights and gradients of the scores."""
        height, visible = count("height"), count("seen")
        row = (
            self.row_limit(visible),
            *self.top_of_row(),
            ir.Let("shift", self.finite(self.number("top"))),
            *self._powers(visible, None),
            ir.Let("ratio", self.inverse(self.number("total"))),
            ir.Let("mean", binary(scalar.mul, self.number("dot"), self.number("ratio"))),
            *self._gradients(visible),
        )
        q, g = ("q", at("q_at"), *self.q_steps), ("g", at("g_at"), *self.g_steps)
        return [
            *self._both((), (), visible),
            self.over_rows(row),
            *self._add_to_keys("dv", self._turned("s"), g, self.dv_row, self.values, visible),
            self.product(
                ("t", ir.Index(), self.row_step, 1), ("k", at("k_at"), *self.k_steps), ("dq", at("dq_at"), self.dq_row),
                height, self.depth, visible,
            ),
            *self._add_to_keys("dk", self._turned("t"), q, self.dk_row, self.depth, visible),
        ]  # fmt: skip

    # Keys in k-blocks -------------------------------------------------------------------------------------------------

    def _by_k_blocks(self, k_blocks: list[ir.Stmt]) -> list[ir.Stmt]:
        """Store for each query the largest score, the sum of powers and the sum of their products with gradients of
        weights in ``tops``, ``sums`` and ``dots``."""
        for name in ("tops", "sums", "dots"):
            self.parts.scratch(name, self.dtype, self.height)
        own = self.bounds is not None
        if own:
            self.parts.scratch("own", self.dtype, self.height * self.at.depth)
        result = at("dq_at", (QUERY, self.dq_row), (ELEMENT, 1))
        cell = ir.Index(((QUERY, self.depth), (ELEMENT, 1)))
        clear = ir.Store("own", cell, self.zero()) if own else ir.Store("dq", result, self.zero())
        begin = (*self.no_turn_yet(("sums", "dots")), ir.For(ELEMENT, 0, self.depth, "vec", (clear,)))
        statements: list[ir.Stmt] = [ir.For(QUERY, 0, count("height"), "seq", begin), *k_blocks]
        if own:
            copy = ir.For(ELEMENT, 0, self.depth, "vec", (ir.Store("dq", result, ir.Load("own", cell, self.dtype)),))
            statements.append(ir.For(QUERY, 0, count("height"), "seq", (copy,)))
        return statements

    def _by_sequence(self, bounds: SequenceBounds) -> list[ir.Stmt]:
        """Return the k-blocks of each sequence that the block of queries overlaps."""
        queries = {"q": self.q_steps[0], "g": self.g_steps[0]}
        keys = {"k": self.k_steps[0], "v": self.v_steps[0]}
        each = (*self.sequence(bounds, queries, keys), *self._turns())
        return [ir.For(SEQUENCE, 0, bounds.sequences, "seq", each)]

    def _turns(self) -> list[ir.Stmt]:
        """Run two passes. The second reuses the powers of the first if there is only one k-block."""
        again = ir.Apply(scalar.gt, (count("k_blocks"), ir.Const(1, int64)), bool_)
        zero, one = ir.Const(0, int64), ir.Const(1, int64)
        self.k_turn, self.v_turn = (((KEY_STEP, self.parts.param(KEYS * view[2][2])),) for view in (self.k, self.v))
        return [
            ir.For(KEY_STEP, 0, count("k_blocks"), "seq", self._look()),
            ir.Let("again", ir.Apply(scalar.select, (again, one, zero), int64)),
            ir.For(KEY_STEP, 0, count("k_blocks"), "seq", self._add()),
        ]

    def _look(self) -> tuple[ir.Stmt, ...]:
        now, start = count("now"), count("start")
        row = (
            self.row_limit(now, start),
            *self.top_of_row(),
            *self.shift_to_top(),
            *self._powers(now, start),
            *self.join_turn((("sums", "total"), ("dots", "dot"))),
        )
        return *self.turn(), *self._both(self.k_turn, self.v_turn, now), self.over_rows(row)

    def _add(self) -> tuple[ir.Stmt, ...]:
        now, start, dtype = count("now"), count("start"), self.dtype
        once_more = (
            self.row_limit(now, start),
            *self.masked_row(),
            ir.Let("shift", self.finite(ir.Load("tops", self.here, dtype))),
            *self._powers(now, start),
        )
        row = (
            self.row_limit(now, start),
            ir.Let("ratio", self.inverse(ir.Load("sums", self.here, dtype))),
            ir.Let("mean", binary(scalar.mul, ir.Load("dots", self.here, dtype), self.number("ratio"))),
            *self._gradients(now),
        )
        g, q = ("g", self.first_of("g"), *self.g_steps), ("q", self.first_of("q"), *self.q_steps)
        k = ("k", self.first_of("k", *self.k_turn), *self.k_steps)
        t = ("t", self.own(self.row_step), self.row_step, 1)
        dq_cell = at("dq_at", (QUERY, self.dq_row), (ELEMENT, 1))
        dq = "dq"
        if self.bounds is not None:
            dq, dq_cell = "own", ir.Index(((QUERY, self.depth), (ELEMENT, 1)))
        both = self._both(self.k_turn, self.v_turn, now)
        return (
            *self.turn(),
            ir.For(AGAIN, 0, count("again"), "seq", (*both, self.over_rows(once_more))),
            self.over_rows(row),
            *self._add_to_keys("dv", self._turned("s"), g, self.dv_row, self.values, now),
            self.product(t, k, ("part", self.own(self.depth), self.depth), self.row_count, self.depth, now),
            self.over_rows((ir.For(ELEMENT, 0, self.depth, "vec", (self._added(dq, dq_cell, self.depth, QUERY),)),)),
            *self._add_to_keys("dk", self._turned("t"), q, self.dk_row, self.depth, now),
        )

    def _added(self, name: str, cell: ir.Index, width: ir.Param, row: ir.Var) -> ir.Stmt:
        """Add the current row of ``part`` to ``name``."""
        part = ir.Load("part", ir.Index(((row, width), (ELEMENT, 1))), self.dtype)
        return ir.Store(name, cell, binary(scalar.add, ir.Load(name, cell, self.dtype), part))

    def _add_to_keys(
        self, name: str, a: Matrix, b: Matrix, step: ir.Param, width: ir.Param, now: ir.Ref
    ) -> list[ir.Stmt]:
        """Add A·B to the gradient ``name`` of the ``now`` keys in scratch. For concatenated sequences the row of each
        key is computed, and clamped to the operand; the chain of a sum goes on where the block before ended, so that no
        result depends on where the blocks divide a sequence."""
        if self.bounds is None:
            part = self.product(a, b, ("part", ir.Index(), width), now, width, self.row_count)
            turn = () if self.is_whole else ((KEY_STEP, self.parts.param(KEYS * self._row_of(name))),)
            if not self.is_long:
                c = (name, at(f"{name}_at", *turn), step)
                return [self.product(a, b, c, now, width, self.row_count, accumulate=True)]
            cell = at(f"{name}_at", *turn, (KEY, step), (ELEMENT, 1))
            added = ir.For(ELEMENT, 0, width, "vec", (self._added(name, cell, width, KEY),))
            return [part, ir.For(KEY, 0, now, "seq", (added,))]
        first = binary(scalar.add, count("key_begin"), count("start"))
        row = clipped(binary(scalar.add, first, ir.Position(KEY, int64)), 0, self.bounds.last_key)
        cell = ir.Index(((ELEMENT, 1),), gathered=((count(f"{name}_at"), 1), (count("its_row"), step)))
        inside = ir.Index(((KEY, width), (ELEMENT, 1)))

        def copied(target: str, to: ir.Index, source: str, place: ir.Index) -> ir.Stmt:
            copy = ir.Store(target, to, ir.Load(source, place, self.dtype))
            return ir.For(KEY, 0, now, "seq", (ir.Let("its_row", row), ir.For(ELEMENT, 0, width, "vec", (copy,))))

        return [
            copied("part", inside, name, cell),
            self.product(a, b, ("part", ir.Index(), width), now, width, self.row_count, accumulate=True),
            copied(name, cell, "part", inside),
        ]

    def _row_of(self, name: str) -> int:
        """Return the row stride of a gradient."""
        return self.parts.values[self.parts.params.index(self.dk_row if name == "dk" else self.dv_row)]


def attention_gradient(node: Value, operands: Operands, results: list[Allocation]) -> Call:
    """Return the call of the gradients of one attention."""
    return _Backward(node, operands, results).build()


class AttentionGradientLowering(Lowering):
    """All gradients of one attention by one kernel."""

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [attention_gradient(request.node, request.operands, results)]
