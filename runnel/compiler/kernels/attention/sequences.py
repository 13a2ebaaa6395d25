"""Concatenated sequences in an attention's operands: the part of each that a block of queries overlaps.

Their bounds are known only at run time. An offset outside of the operands counts as 0 and a length beyond their end is
cut, so that no input makes a kernel access memory outside its buffers.
"""

from __future__ import annotations

from runnel.compiler.kernels.allocations import Allocation
from runnel.compiler.kernels.parts import Parts, binary, clipped, count
from runnel.core.dtypes import bool_, int64
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr, Index, Let, Load, Param, Ref, Stmt, Var

SEQUENCE = Var("sequence")
_COLUMNS = 4


class SequenceBounds:
    """Declares the table of sequences; ``queries`` and ``keys`` are their totals, ``at_once`` the keys of a k-block."""

    def __init__(
        self, parts: Parts, table: tuple[Allocation, int], sequences: int, queries: int, keys: int, at_once: int
    ) -> None:
        parts.buffer("bounds", *table)
        self.count = sequences
        self.sequences = parts.param(sequences)
        self.queries, self.keys = parts.param(queries), parts.param(keys)
        self.last_key = parts.param(max(keys - 1, 0))
        self.most_turns = parts.param(-(-keys // at_once))
        self.at_once = at_once

    def lets(self, causal: bool) -> list[Stmt]:
        """For the sequence and the block of ``height`` queries from ``first`` on: the rows [``from``, ``to``) of the
        block that belong to the sequence (``rows`` of them), the number ``seen`` of keys from ``key_begin`` on that
        these attend to, and the number of k-blocks, ``turns``; causal, row i attends to those before i + ``ahead``."""
        zero, first, height = Const(0, int64), count("first"), count("height")
        many, key_many = count("many"), count("key_many")
        statements: list[Stmt] = [
            Let("begin", _clamped_offset(self._column(0), self.queries)),
            Let("many", _clamped_length(self._column(1), count("begin"), self.queries)),
            Let("key_begin", _clamped_offset(self._column(2), self.keys)),
            Let("key_many", _clamped_length(self._column(3), count("key_begin"), self.keys)),
            Let("away", binary(scalar.sub, count("begin"), first)),
            Let("from", _select(scalar.lt, count("away"), zero, zero, binary(scalar.minimum, count("away"), height))),
            Let("to", clipped(binary(scalar.add, count("away"), many), 0, height)),
            Let("rows", clipped(binary(scalar.sub, count("to"), count("from")), 0, height)),
        ]
        most: Expr = key_many
        if causal:
            shift = binary(scalar.sub, key_many, binary(scalar.add, count("begin"), many))
            statements.append(Let("ahead", binary(scalar.add, shift, binary(scalar.add, first, Const(1, int64)))))
            last = binary(scalar.sub, binary(scalar.add, count("ahead"), count("to")), Const(1, int64))
            most = clipped(last, 0, key_many)
        k_blocks = binary(
            scalar.floor_divide,
            binary(scalar.add, count("seen"), Const(self.at_once - 1, int64)),
            Const(self.at_once, int64),
        )
        return [
            *statements,
            Let("seen", _select(scalar.gt, count("rows"), zero, most, zero)),
            Let("k_blocks", clipped(k_blocks, 0, self.most_turns)),
        ]

    def _column(self, number: int) -> Expr:
        return Load("bounds", Index(((SEQUENCE, _COLUMNS),), number), int64)


def _select(comparison: scalar.ScalarOp, x: Expr, y: Expr, then: Expr, otherwise: Expr) -> Expr:
    return Apply(scalar.select, (Apply(comparison, (x, y), bool_), then, otherwise), int64)


def _clamped_offset(value: Expr, most: Expr) -> Expr:
    """An offset within [0, ``most``]; any other counts as 0."""
    known = _select(scalar.le, value, most, value, Const(0, int64))
    return _select(scalar.ge, value, Const(0, int64), known, Const(0, int64))


def _clamped_length(value: Expr, begin: Ref, end: Param) -> Expr:
    """A length from ``begin`` to ``end`` at most."""
    return clipped(value, 0, binary(scalar.sub, end, begin))
