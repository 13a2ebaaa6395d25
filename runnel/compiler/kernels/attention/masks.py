"""Dropout masks and bounds of concatenated sequences in the kernels of attention.

The kernels generate dropout's random words (:func:`runnel.ops.random.random_bits`) themselves. A weight's word is a
function of dropout's key and of the weight's position among all weights, so the gradient generates the same words
again and nothing is stored.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from runnel.compiler.lowering.parts import Parts, binary, clipped, count
from runnel.compiler.plan_ir.calls import Allocation
from runnel.core.dtypes import DType, bool_, int32, int64, uint32, uint64
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr, Index, Let, Load, Param, Position, Ref, Stmt, Var
from runnel.ops.random import philox

WORDS: Final = 1 << 32  # positions that one word counts
_BITS: Final = 24  # bits of a word that are compared with the probability


class DropoutMask:
    """Declares the key and the params of the probability ``p``; ``positions`` is the number of all weights, ``keys``
    the number of weights in a row."""

    def __init__(
        self, parts: Parts, key: tuple[Allocation, int, int], p: float, dtype: DType, positions: int, keys: int
    ) -> None:
        allocation, offset, step = key
        parts.buffer("key", allocation, offset)
        self.step = parts.param(step)
        self.keys = parts.param(keys)
        self.limit = parts.param(math.ceil(float(np.float32(p)) * 2**_BITS))
        self.dtype = dtype
        scale = np.asarray(0.0 if p == 1 else 1 / (1 - p), dtype.numpy)
        self.scale = parts.param(int(scale.view(f"i{dtype.itemsize}")))
        self.is_wide = positions > WORDS

    def begin(self) -> list[Stmt]:
        """Return the key's words, and ``kept``, the factor of weights that are not dropped."""
        bits: Expr = self.scale if self.dtype.itemsize == 8 else Apply(scalar.cast, (self.scale,), int32)
        return [
            Let("word0", Load("key", Index(), uint32)),
            Let("word1", Load("key", Index(offset=self.step), uint32)),
            Let("kept", Apply(scalar.bitcast, (bits,), self.dtype)),
            Let("least", Apply(scalar.cast, (self.limit,), int32)),
        ]

    def row(self, row: Expr, first: Expr | None) -> list[Stmt]:
        """Return the first word of ``row`` (a number among the rows of all heads), from key ``first`` on."""
        position: Expr = binary(scalar.mul, row, self.keys)
        if first is not None:
            position = binary(scalar.add, position, first)
        low: list[Stmt] = [Let("position", position), Let("low", Apply(scalar.cast, (count("position"),), uint32))]
        if not self.is_wide:
            return low
        whole = Apply(scalar.cast, (count("position"),), uint64)
        return [*low, Let("high", Apply(scalar.cast, (binary(scalar.shift_right, whole, Const(32, uint64)),), uint32))]

    def draw(self, key: Var) -> list[Stmt]:
        """Bind ``dropped``, whether the weight of ``key`` in this row is zeroed."""
        statements: list[Stmt] = []

        def let(name: str, value: Expr) -> Ref:
            statements.append(Let(name, value))
            return Ref(name, value.dtype)

        def operation(op: scalar.ScalarOp) -> object:
            return lambda x, y: let(f"drawn{len(statements)}", binary(op, x, y))

        def word(value: int) -> Expr:
            return Const(value, uint32)

        begin = Ref("low", uint32)
        low = let("counted", binary(scalar.add, begin, Position(key, uint32)))
        high: Expr = word(0)
        if self.is_wide:
            above = Ref("high", uint32)
            carried = Apply(scalar.lt, (low, begin), bool_)
            high = let("upper", Apply(scalar.select, (carried, binary(scalar.add, above, word(1)), above), uint32))
        names = (Ref("word0", uint32), Ref("word1", uint32))
        rules = [operation(op) for op in (scalar.add, scalar.mul, scalar.mul_high, scalar.xor)]
        bits = philox((low, high, word(0), word(0)), names, word, *rules)[0]  # type: ignore[arg-type]
        part = Apply(scalar.cast, (binary(scalar.shift_right, bits, word(32 - _BITS)),), int32)
        statements.append(Let("dropped", Apply(scalar.lt, (part, Ref("least", int32)), bool_)))
        return statements


DROPPED: Final = Ref("dropped", bool_)


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
        """Bind, for the sequence and the block of ``height`` queries from ``first`` on, the rows [``from``, ``to``) of
        the block that belong to the sequence (``rows`` of them), the number ``seen`` of keys from ``key_begin`` on that
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
    """Return an offset within [0, ``most``]; any other counts as 0."""
    known = _select(scalar.le, value, most, value, Const(0, int64))
    return _select(scalar.ge, value, Const(0, int64), known, Const(0, int64))


def _clamped_length(value: Expr, begin: Ref, end: Param) -> Expr:
    """Return a length from ``begin`` to ``end`` at most."""
    return clipped(value, 0, binary(scalar.sub, end, begin))
