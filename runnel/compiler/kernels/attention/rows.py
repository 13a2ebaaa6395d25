"""Rows of scores in attention's kernels: statements that compute weights, apply dropout, and sum."""

from __future__ import annotations

from runnel.compiler.kernels.attention.blocks import KEY, QUERY, AttentionKernel
from runnel.compiler.kernels.attention.masks import DROPPED
from runnel.compiler.lowering.parts import binary, clipped, count
from runnel.core.dtypes import bool_, int64
from runnel.loops import scalar
from runnel.loops.ir import (
    CHAIN,
    LANES,
    Acc,
    Apply,
    Const,
    Expr,
    For,
    Index,
    Let,
    Load,
    Position,
    Ref,
    Stmt,
    Store,
    Update,
)


class Rows(AttentionKernel):
    """AttentionKernel of queries with statements on row I of their scores, ``s``."""

    @property
    def score(self) -> Load:
        return Load("s", self.s_cell, self.dtype)

    @property
    def here(self) -> Index:
        """Row I of a scratch array with one number per row."""
        return Index(((QUERY, 1),))

    def number(self, name: str) -> Ref:
        """Return a number bound to ``name``."""
        return Ref(name, self.dtype)

    def zero(self) -> Const:
        return Const(0.0, self.dtype)

    def over_rows(self, body: tuple[Stmt, ...]) -> For:
        """``body`` for each row I of the block."""
        return For(QUERY, self.row_begin, self.row_end, "seq", body)

    def over_limit(self, body: tuple[Stmt, ...]) -> For:
        """``body`` for each key that row I attends to."""
        return For(KEY, 0, count("limit"), "vec", body)

    def row_limit(self, visible: Ref, before: Ref | None = None) -> Let:
        """Return the number ``limit`` of the ``visible`` keys in scratch, after ``before`` others, that query I attends
        to."""
        if not self.causal:
            return Let("limit", visible)
        begin: Expr = count("first" if self.bounds is None else "ahead")
        own = binary(scalar.add, begin, Position(QUERY, int64))
        if self.bounds is None:
            own = binary(scalar.add, own, Const(1, int64))
        return Let("limit", clipped(own if before is None else binary(scalar.sub, own, before), 0, visible))

    def top_of_row(self) -> list[Stmt]:
        """Return the greatest score of row I as accumulator ``top``; masked scores are stored."""
        if self.mask is None:
            return [Acc("top", "max", self.dtype), self.over_limit((Update("top", self.score),))]
        return [Acc("top", "max", self.dtype), self.over_limit((*self._masked(), Update("top", self.number("score"))))]

    def masked_row(self) -> list[Stmt]:
        """Return the masked scores of row I, stored."""
        return [] if self.mask is None else [self.over_limit(self._masked())]

    def _masked(self) -> tuple[Stmt, ...]:
        mask = self.mask
        if mask is None:
            return ()
        if mask.dtype is bool_:
            value: Expr = Apply(scalar.select, (mask, self.score, Const(float("-inf"), self.dtype)), self.dtype)
        else:
            value = binary(scalar.add, binary(scalar.mul, self.score, self.factor), mask)
        return Let("score", value), Store("s", self.s_cell, self.number("score"))

    def scaled(self, score: Expr) -> Expr:
        """Return a difference of scores, scaled; where a mask is added they are scaled already."""
        if self.mask is not None and self.mask.dtype is not bool_:
            return score
        return binary(scalar.mul, score, self.factor)

    def powers_of_row(self, end: Ref, beside: Expr | None = None) -> list[Stmt]:
        """Scores of row I to powers exp(scale·(score - shift)), and 0 from ``limit`` to ``end``; ``total`` is their
        sum, ``dot`` that of their products with ``beside``."""
        below = self.scaled(binary(scalar.sub, self.score, self.number("shift")))
        power = self.number("power")
        body: tuple[Stmt, ...] = (
            Let("power", Apply(scalar.exp, (below,), self.dtype)),
            Store("s", self.s_cell, power),
            Update("total", power),
        )
        sums: list[Stmt] = [self.sum_of_row("total")]
        if beside is not None:
            sums.append(self.sum_of_row("dot"))
            body = (*body, Update("dot", binary(scalar.mul, power, beside)))
        return [*sums, self.over_limit(body), *self.cleared_row("s", end)]

    def sum_of_row(self, name: str) -> Acc:
        """Return a sum over the keys in scratch."""
        return Acc(name, "sum", self.dtype, "short" if self.row <= CHAIN * LANES else "blocks")

    def drawn_row(self, before: Expr | None, body: tuple[Stmt, ...]) -> list[Stmt]:
        """``body`` for each key that row I attends to, with ``dropped``, whether its weight is dropped. ``before`` is
        the number of the sequence's keys before those in scratch."""
        if self.dropout_mask is None:
            return []
        row = binary(scalar.add, count("line"), Position(QUERY, int64))
        first = before
        if self.bounds is not None:
            first = count("key_begin") if before is None else binary(scalar.add, count("key_begin"), before)
        return [*self.dropout_mask.row(row, first), self.over_limit((*self.dropout_mask.draw(KEY), *body))]

    def unless_dropped(self, value: Expr) -> Expr:
        return Apply(scalar.select, (DROPPED, self.zero(), value), self.dtype)

    def cleared_row(self, name: str, end: Ref) -> list[Stmt]:
        """Zeros in row I of scratch ``name`` from ``limit`` to ``end``, where queries attend to different keys."""
        if not self.causal:
            return []
        return [For(KEY, count("limit"), end, "vec", (Store(name, self.s_cell, self.zero()),))]

    # The running maximum and sum over k-blocks ------------------------------------------------------------------------

    def no_turn_yet(self, sums: tuple[str, ...]) -> tuple[Stmt, ...]:
        """``tops`` and ``sums`` of row I before its first k-block."""
        lowest = Const(float("-inf"), self.dtype)
        return Store("tops", self.here, lowest), *(Store(name, self.here, self.zero()) for name in sums)

    def shift_to_top(self) -> list[Stmt]:
        """Return the ``highest`` score of row I so far, and the one ``before`` this k-block; powers are
        shifted by it."""
        return [
            Let("before", Load("tops", self.here, self.dtype)),
            Let("highest", binary(scalar.maximum, self.number("before"), self.number("top"))),
            Let("shift", self.finite(self.number("highest"))),
        ]

    def join_turn(self, sums: tuple[tuple[str, str], ...]) -> list[Stmt]:
        """Return the k-block's sums added to those of row I so far, which are rescaled by ``factor``."""
        before = self.number("before")
        shrunk = Apply(scalar.exp, (self.scaled(binary(scalar.sub, before, self.number("shift"))),), self.dtype)
        factor = Apply(scalar.select, (self.is_lowest(before), self.zero(), shrunk), self.dtype)
        joined = [
            Store(so_far, self.here,
                  binary(scalar.add, binary(scalar.mul, Load(so_far, self.here, self.dtype), self.number("factor")),
                         self.number(turn)))
            for so_far, turn in sums
        ]  # fmt: skip
        return [Let("factor", factor), Store("tops", self.here, self.number("highest")), *joined]

    # Numbers of a row -------------------------------------------------------------------------------------------------

    def is_lowest(self, value: Expr) -> Expr:
        return Apply(scalar.eq, (value, Const(float("-inf"), self.dtype)), bool_)

    def finite(self, top: Expr) -> Expr:
        """``top``, or 0 where no key is visible: then every power is 0."""
        return Apply(scalar.select, (self.is_lowest(top), self.zero(), top), self.dtype)

    def inverse(self, total: Expr) -> Expr:
        """1 / total, or 0 where no key is visible."""
        none = Apply(scalar.eq, (total, self.zero()), bool_)
        one = Const(1.0, self.dtype)
        return Apply(scalar.select, (none, self.zero(), binary(scalar.div, one, total)), self.dtype)

    def rescaled(self, value: Expr) -> Expr:
        """Return a weight that is not dropped, rescaled."""
        return value if self.dropout_mask is None else binary(scalar.mul, value, self.number("kept"))
