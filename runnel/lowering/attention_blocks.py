"""What the kernels of attention and of its gradient share: blocks of queries, their table, and rows of scores.

The scores of a block of queries are a matrix in the thread's scratch memory, buffer ``s``. A table says for each block
where its operands begin and how many queries and keys it has.
"""

from __future__ import annotations

import numpy as np

from runnel.core.avals import Shape
from runnel.core.dtypes import DType, bool_, int64
from runnel.graph.graph import Node
from runnel.loops import scalar
from runnel.loops.ir import (
    Acc,
    Apply,
    Const,
    Count,
    Expr,
    For,
    Index,
    Let,
    Load,
    Param,
    Position,
    Product,
    Ref,
    Stmt,
    Store,
    Stride,
    Update,
    Var,
)
from runnel.lowering.operands import Operands
from runnel.lowering.parts import Parts, binary, clipped, count
from runnel.lowering.places import Call, Place
from runnel.ops import attention_primitives as primitives

SCORES = 24576  # of a block of queries and keys, while that leaves at least
FEWEST, MOST = 64, 192  # queries of a block
FEW_BLOCKS = 16  # blocks are cut to the fewest queries where a program would have fewer of them

QUERY, KEY, ELEMENT = Var("i"), Var("j"), Var("d")  # a query of the block, a key, an element of a head
Lie = tuple[Place, int, Shape]  # place, offset, and strides along batch, heads, time and elements
Matrix = tuple[str, Index, Stride, Stride]  # buffer, first element, strides along rows and columns
Line = tuple[tuple[Var, Stride], ...]  # where in the table a block's line stands


def heads_lie(x: Lie) -> Lie:
    """[B, T, H, D] seen as [B, H, T, D]."""
    place, offset, (b, t, h, d) = x
    return place, offset, (b, h, t, d)


def packed_lies(x: Lie) -> tuple[Lie, Lie, Lie]:
    """The three parts of [B, T, 3, H, D], each as [B, H, T, D]."""
    place, offset, (b, t, part, h, d) = x
    first, second, third = ((place, offset + i * part, (b, h, t, d)) for i in range(3))
    return first, second, third


def at(name: str, *terms: tuple[Var, Stride]) -> Index:
    """The element whose number is bound to ``name``, and steps from there."""
    return Index(terms, gathered=((count(name), 1),))


class Blocks:
    """The extents, the operands, and the statements on rows of scores. Scratch holds ``at_once`` keys of a query."""

    def __init__(self, node: Node, arrays: tuple[Node, ...], x: Operands, at_once: int) -> None:
        attrs = node.attrs
        given = primitives.operands(tuple(n.aval for n in arrays), **attrs)
        self.node = node
        self.at = given.heads
        self.causal = attrs["causal"]
        self.dtype: DType = node.aval.dtype
        self.factor = Const(float(attrs["scale"]), self.dtype)
        self.parts = Parts()
        self.columns: dict[str, np.ndarray] = {}
        keys = min(at_once, max(self.at.keys, 1))
        self.height = self._height(keys)
        self.row = -(-keys // 16) * 16 + 16  # no power of two, lest rows compete for cache sets
        self.row_step = self.parts.param(self.row)
        self.parts.scratch("s", self.dtype, self.height * self.row)
        self.s_cell = Index(((QUERY, self.row_step), (KEY, 1)))
        self.depth, self.values = self.parts.param(self.at.depth), self.parts.param(self.at.values)
        self._begin_table()
        main = arrays[: len(given.main)]
        lies = [x.lie(n) for n in main]
        self.q, self.k, self.v = packed_lies(lies[0]) if attrs["packed"] else lies
        self.q_steps = self.operand("q", self.q)
        self.k_steps = self.operand("k", self.k, shared=True)
        self.v_steps = self.operand("v", self.v, shared=True)
        self.mask = self._mask(arrays[len(main)], x) if attrs["masked"] else None
        self.lengths = self._lengths(arrays[-1], x) if attrs["limited"] else None

    def _height(self, keys: int) -> int:
        """Queries of a block: a function of the extents."""
        at = self.at
        queries = max(at.queries, 1)
        height = min(max(SCORES // keys, FEWEST), MOST, queries)
        if at.batch * at.heads * -(-queries // height) < FEW_BLOCKS:
            height = min(height, FEWEST)
        return -(-queries // -(-queries // height))

    # Operands and the table -------------------------------------------------------------------------------------------

    def _begin_table(self) -> None:
        at = self.at
        shape = (at.batch, at.heads, max(-(-at.queries // self.height), 1))
        self.batch, self.head, self.block = np.indices(shape, np.int64)
        first = self.block * self.height
        height = np.minimum(self.height, at.queries - first)
        keys = np.minimum(at.keys, first + height) if self.causal else np.full(shape, at.keys)
        self.columns.update(first=first, height=height, keys=keys, batch=self.batch)

    def operand(self, name: str, lie: Lie, mode: str = "in", *, shared: bool = False) -> tuple[Param, Param]:
        """Declare a buffer over [B, heads, T, D]; the table says where a block's queries or (``shared``) the keys of
        its head begin. Returns the strides along time and elements."""
        self.parts.buffer(name, lie[0], lie[1], mode)
        b, h, t, _ = lie[2]
        if shared:
            self.columns[f"{name}_at"] = self.batch * b + self.head // max(self.at.group, 1) * h
        else:
            self.columns[f"{name}_at"] = self.batch * b + self.head * h + self.block * self.height * t
        return self.parts.param(lie[2][2]), self.parts.param(lie[2][3])

    def _step(self, stride: int) -> Stride:
        return stride if stride in (0, 1) else self.parts.param(stride)

    def _mask(self, mask: Node, x: Operands) -> Load:
        place, offset, strides = x.lie(mask)
        kept = tuple(0 if n == 1 else s for n, s in zip(mask.aval.shape, strides, strict=True))
        self.operand("mask", (place, offset, kept))
        self.mask_row, self.mask_key, self.mask_stride = self._step(kept[2]), self._step(kept[3]), kept[3]
        return Load("mask", self._mask_at(), mask.aval.dtype)

    def _mask_at(self, *more: tuple[Var, Stride]) -> Index:
        terms = ((QUERY, self.mask_row), (KEY, self.mask_key), *more)
        return at("mask_at", *[(v, s) for v, s in terms if s != 0])

    def _lengths(self, lengths: Node, x: Operands) -> Expr:
        place, offset, strides = x.lie(lengths)
        self.parts.buffer("lengths", place, offset)
        index = Index(gathered=((count("batch"), self._step(strides[0])),))
        length: Expr = Load("lengths", index, place.dtype)
        return length if place.dtype is int64 else Apply(scalar.cast, (length,), int64)

    def table(self) -> np.ndarray:
        """Declare the table; returns it with its lines along the last axis but one."""
        lines = np.stack(list(self.columns.values()), -1)
        self.parts.table("table", lines)
        return lines

    def lets(self, line: Line, names: list[str] | None = None) -> list[Stmt]:
        """Bind the columns ``names`` (None: all) of a line of the table."""
        return [
            Let(name, Load("table", Index(line, number), int64))
            for number, name in enumerate(self.columns)
            if names is None or name in names
        ]

    def seen(self) -> Let:
        """How many keys the block sees: no more than its sequence has."""
        keys = count("keys")
        return Let("seen", keys if self.lengths is None else clipped(self.lengths, 0, keys))

    # Matrices ---------------------------------------------------------------------------------------------------------

    def product(
        self,
        a: Matrix,
        b: Matrix,
        c: tuple[str, Index, Stride],
        m: Count,
        n: Count,
        k: Count,
        *,
        accumulate: bool = False,
    ) -> Product:
        """C = A·B, or C + A·B."""
        return Product(
            a[0], a[1], b[0], b[1], c[0], c[1], self.dtype, m, n, k, a[2], a[3], b[2], b[3], c[2], accumulate
        )  # fmt: skip

    def scores(self, keys: Index, number: Ref) -> Product:
        """Scratch ``s``: the block's queries times ``number`` keys from ``keys`` on."""
        q = ("q", at("q_at"), *self.q_steps)
        k = ("k", keys, self.k_steps[1], self.k_steps[0])
        return self.product(q, k, ("s", Index(), self.row_step), count("height"), number, self.depth)

    # Rows of scores ---------------------------------------------------------------------------------------------------

    def row_limit(self, seen: Ref, before: Ref | None = None) -> Let:
        """How many of the ``seen`` keys in scratch, with ``before`` others before them, query I sees: ``limit``."""
        if not self.causal:
            return Let("limit", seen)
        own = binary(scalar.add, binary(scalar.add, count("first"), Position(QUERY, int64)), Const(1, int64))
        return Let("limit", clipped(own if before is None else binary(scalar.sub, own, before), 0, seen))

    def top_of_row(self) -> list[Stmt]:
        """The greatest score of row I as accumulator ``top``; scores that a mask has changed are stored."""
        raw = Load("s", self.s_cell, self.dtype)
        if self.mask is None:
            return [Acc("top", "max", self.dtype), For(KEY, 0, count("limit"), "vec", (Update("top", raw),))]
        if self.mask.dtype is bool_:
            value: Expr = Apply(scalar.select, (self.mask, raw, Const(float("-inf"), self.dtype)), self.dtype)
        else:
            value = binary(scalar.add, binary(scalar.mul, raw, self.factor), self.mask)
        score = Ref("score", self.dtype)
        body = (Let("score", value), Store("s", self.s_cell, score), Update("top", score))
        return [Acc("top", "max", self.dtype), For(KEY, 0, count("limit"), "vec", body)]

    def scaled(self, score: Expr) -> Expr:
        """A difference of scores; where a mask is added they are scaled already."""
        if self.mask is not None and self.mask.dtype is not bool_:
            return score
        return binary(scalar.mul, score, self.factor)

    def powers_of_row(self, end: Ref) -> list[Stmt]:
        """Scores of row I to powers exp(scale·(score - shift)), and 0 from ``limit`` to ``end``; ``total`` adds up."""
        below = self.scaled(binary(scalar.sub, Load("s", self.s_cell, self.dtype), Ref("shift", self.dtype)))
        power = Ref("power", self.dtype)
        body = (
            Let("power", Apply(scalar.exp, (below,), self.dtype)),
            Store("s", self.s_cell, power),
            Update("total", power),
        )
        loop = For(KEY, 0, count("limit"), "vec", body)
        return [Acc("total", "sum", self.dtype), loop, *self.cleared_row("s", end)]

    def cleared_row(self, name: str, end: Ref) -> list[Stmt]:
        """Zeros in row I of scratch ``name`` from ``limit`` to ``end``, where queries see different keys."""
        if not self.causal:
            return []
        zero = Store(name, self.s_cell, Const(0.0, self.dtype))
        return [For(KEY, count("limit"), end, "vec", (zero,))]

    def is_lowest(self, value: Expr) -> Expr:
        return Apply(scalar.eq, (value, Const(float("-inf"), self.dtype)), bool_)

    def finite(self, top: Expr) -> Expr:
        """``top``, or 0 where no key is seen: then every power is 0."""
        return Apply(scalar.select, (self.is_lowest(top), Const(0.0, self.dtype), top), self.dtype)

    def inverse(self, total: Expr) -> Expr:
        """1 / total, or 0 where no key is seen."""
        zero, one = Const(0.0, self.dtype), Const(1.0, self.dtype)
        none = Apply(scalar.eq, (total, zero), bool_)
        return Apply(scalar.select, (none, zero, binary(scalar.div, one, total)), self.dtype)

    def call(self, prefix: str, body: tuple[Stmt, ...], rows: int, products: int) -> Call:
        """The kernel with its cost: ``products`` for each element of a head, and about 20 operations on each score."""
        at = self.at
        pairs = self.columns["keys"].sum() * self.height
        return self.parts.call(
            prefix, body, (rows, 1), float(pairs) * (products * (at.depth + at.values) + 20), self.node
        )
