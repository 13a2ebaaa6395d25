"""Dropout on attention's weights, generated inside its kernels: the words of :func:`runnel.ops.random.random_bits`.

A weight's word is a function of dropout's key and of the weight's position among all weights, so that the gradient
generates the same ones again and nothing is stored.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from runnel.compiler.kernels.allocations import Allocation
from runnel.compiler.kernels.parts import Parts, binary, count
from runnel.core.dtypes import DType, bool_, int32, uint32, uint64
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr, Index, Let, Load, Position, Ref, Stmt, Var
from runnel.ops.random import philox

WORDS: Final = 1 << 32  # positions that one word counts
_BITS: Final = 24  # bits of a word that are compared with the probability


class DropoutMask:
    """Declares the key and the params of the probability ``p``; ``positions`` is the number of all weights, ``keys``
    that of a row."""

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
        """The key's words, and ``kept``, the factor of weights that are not dropped."""
        bits: Expr = self.scale if self.dtype.itemsize == 8 else Apply(scalar.cast, (self.scale,), int32)
        return [
            Let("word0", Load("key", Index(), uint32)),
            Let("word1", Load("key", Index(offset=self.step), uint32)),
            Let("kept", Apply(scalar.bitcast, (bits,), self.dtype)),
            Let("least", Apply(scalar.cast, (self.limit,), int32)),
        ]

    def row(self, row: Expr, first: Expr | None) -> list[Stmt]:
        """The first word of ``row`` (a number among the rows of all heads), from key ``first`` on."""
        position: Expr = binary(scalar.mul, row, self.keys)
        if first is not None:
            position = binary(scalar.add, position, first)
        low: list[Stmt] = [Let("position", position), Let("low", Apply(scalar.cast, (count("position"),), uint32))]
        if not self.is_wide:
            return low
        whole = Apply(scalar.cast, (count("position"),), uint64)
        return [*low, Let("high", Apply(scalar.cast, (binary(scalar.shift_right, whole, Const(32, uint64)),), uint32))]

    def draw(self, key: Var) -> list[Stmt]:
        """``dropped``: whether the weight of ``key`` in this row is zeroed."""
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
