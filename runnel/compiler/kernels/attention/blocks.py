"""Shared parts of the kernels of attention and of its gradient: blocks of queries, their table, and their matrices.

The scores of a block of queries are a matrix in the thread's scratch memory, buffer ``s``. A table has for each block
the offsets of its operands and its numbers of queries and keys. With concatenated sequences, a block is processed
sequence by sequence (``attention_varlen``).
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.compiler.kernels.attention.masks import DROPPED, DropoutMask, SequenceBounds
from runnel.compiler.lowering.operands import Operands
from runnel.compiler.lowering.parts import Parts, binary, clipped, count
from runnel.compiler.plan_ir.calls import BufferView, Call, constant
from runnel.core.dtypes import DType, bool_, int64
from runnel.core.lengths import expected
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.ops.attention.reference import operands, roles

KEYS: Final = 512  # most keys at once
SCORES: Final = 24576  # most scores of a block, unless it would have less than
FEWEST, MOST = 64, 192  # least and most queries of a block
FEW_BLOCKS: Final = 16  # with fewer blocks than this, blocks have the fewest queries

QUERY, KEY, ELEMENT = ir.Var("i"), ir.Var("j"), ir.Var("d")  # a query of the block, a key, an element of a head
KEY_STEP = ir.Var("key_step")  # over keys
Matrix = tuple[str, ir.Index, ir.Stride, ir.Stride]  # buffer, first element, strides along rows and columns
Line = tuple[tuple[ir.Var, ir.Stride], ...]  # the position of a block's line in the table


def heads_first(x: BufferView) -> BufferView:
    """View [B, T, H, D] as [B, H, T, D]."""
    allocation, offset, (b, t, h, d) = x
    return allocation, offset, (b, h, t, d)


def unpacked(x: BufferView) -> tuple[BufferView, BufferView, BufferView]:
    """Return the three parts of [B, T, 3, H, D], each as [B, H, T, D]."""
    allocation, offset, (b, t, part, h, d) = x
    first, second, third = ((allocation, offset + i * part, (b, h, t, d)) for i in range(3))
    return first, second, third


def at(name: str, *terms: tuple[ir.Var, ir.Stride]) -> ir.Index:
    """Return the element whose number is bound to ``name``, plus ``terms``."""
    return ir.Index(terms, gathered=((count(name), 1),))


class Column(NamedTuple):
    """The offset of a block in an operand, by the steps along batches, heads (of keys, if shared) and queries."""

    batch: int
    head: int
    query: int
    is_shared: bool


_OWN_COLUMNS: Final = ("first", "height", "keys", "batch")  # the block's first query, queries, keys, and batch


def _lines(
    is_triangle: bool, shared: tuple[bool, ...], batches: int, heads: int, blocks: int, group: int, most: int,
    queries: int, keys: int, *steps: int,
) -> np.ndarray:  # fmt: skip
    """Return a line for each block: the own columns, and one for each of ``shared``, three ``steps`` each."""
    shape = (batches, heads, blocks)
    batch, head, block = np.indices(shape, np.int64)
    first = block * most
    height = np.minimum(most, queries - first)
    seen = np.minimum(keys, first + height) if is_triangle else np.full(shape, keys)
    places = [
        batch * steps[3 * i] + (head // group if is_shared else head) * steps[3 * i + 1] + first * steps[3 * i + 2]
        for i, is_shared in enumerate(shared)
    ]
    return np.stack([first, height, seen, batch, *places], -1).reshape(-1)


class AttentionKernel:
    """The extents, the operands and their matrices. Scratch holds ``at_once`` keys of a query."""

    def __init__(self, node: Value, arrays: tuple[Value, ...], x: Operands, at_once: int) -> None:
        attrs = node.attrs
        operand_roles = roles(arrays, **attrs)
        self.node = node
        self.at = operands(tuple(n.aval for n in arrays), **attrs).heads
        self.causal = attrs["causal"]
        self.dtype: DType = node.aval.dtype
        self.factor = ir.Const(float(attrs["scale"]), self.dtype)
        self.parts = Parts()
        self.columns: dict[str, Column] = {}
        self.at_once = at_once
        keys = at_once if attrs["ragged"] else min(at_once, max(self.at.keys, 1))
        self.height = self._height(keys)
        self.row = -(-keys // 16) * 16 + 16  # not a power of two, so that rows do not compete for cache sets
        self.row_step = self.parts.param(self.row)
        self.parts.scratch("s", self.dtype, self.height * self.row)
        self.s_cell = ir.Index(((QUERY, self.row_step), (KEY, 1)))
        self.depth, self.values = self.parts.param(self.at.depth), self.parts.param(self.at.values)
        views = [x.view(n) for n in operand_roles.main]
        self.q, self.k, self.v = unpacked(views[0]) if attrs["packed"] else views
        self.q_steps = self.operand("q", self.q)
        self.k_steps = self.operand("k", self.k, shared=True)
        self.v_steps = self.operand("v", self.v, shared=True)
        self.mask = None if operand_roles.mask is None else self._mask(operand_roles.mask, x)
        self.lengths = None if operand_roles.lengths is None else self._lengths(operand_roles.lengths, x)
        self.dropout_mask = None if operand_roles.key is None else self._dropout_mask(operand_roles.key, x)
        self.bounds = None if operand_roles.bounds is None else self._bounds(operand_roles.bounds, x)

    def _height(self, keys: int) -> int:
        """Return the number of queries of a block, a function of the extents."""
        at = self.at
        queries = max(at.queries, 1)
        if self.node.attrs["ragged"]:  # the same for all lengths
            self.blocks = -(-queries // FEWEST)
            return FEWEST
        if queries <= FEWEST:
            self.blocks = 1
            return queries
        height = min(max(SCORES // keys, FEWEST), MOST, queries)
        if at.batch * at.heads * -(-queries // height) < FEW_BLOCKS:
            height = min(height, FEWEST)
        self.blocks = operator.index(-(-queries // height))
        return -(-queries // self.blocks)

    # Operands and the table -------------------------------------------------------------------------------------------

    def operand(
        self, name: str, view: BufferView, mode: str = "in", *, shared: bool = False
    ) -> tuple[ir.Param, ir.Param]:
        """Declare a buffer over [B, heads, T, D]; the table has the offsets of a block's queries or (``shared``) of the
        keys of its head. Returns the strides along time and elements."""
        allocation, offset, (b, h, t, d) = view
        self.parts.buffer(name, allocation, offset, mode)
        self.columns[f"{name}_at"] = Column(b, h, 0 if shared else t, shared)
        return self.parts.param(t), self.parts.param(d)

    def _step(self, stride: int) -> ir.Stride:
        return stride if stride in (0, 1) else self.parts.param(stride)

    def _mask(self, mask: Value, x: Operands) -> ir.Load:
        allocation, offset, strides = x.view(mask)
        mask_strides = tuple(0 if n == 1 else s for n, s in zip(mask.aval.shape, strides, strict=True))
        self.operand("mask", (allocation, offset, mask_strides))
        self.mask_row, self.mask_key = self._step(mask_strides[2]), self._step(mask_strides[3])
        self.mask_stride = mask_strides[3]
        return ir.Load("mask", self._mask_at(), mask.aval.dtype)

    def _mask_at(self, *more: tuple[ir.Var, ir.Stride]) -> ir.Index:
        terms = ((QUERY, self.mask_row), (KEY, self.mask_key), *more)
        return at("mask_at", *[(v, s) for v, s in terms if s != 0])

    def _lengths(self, lengths: Value, x: Operands) -> ir.Expr:
        allocation, offset, strides = x.view(lengths)
        self.parts.buffer("lengths", allocation, offset)
        index = ir.Index(gathered=((count("batch"), self._step(strides[0])),))
        length: ir.Expr = ir.Load("lengths", index, allocation.dtype)
        return length if allocation.dtype is int64 else ir.Apply(scalar.cast, (length,), int64)

    def _dropout_mask(self, key: Value, x: Operands) -> DropoutMask:
        at = self.at
        allocation, offset, (step,) = x.view(key)
        self.columns["line"] = Column(at.heads * at.queries, at.queries, 1, False)
        positions = at.batch * at.heads * at.queries * at.keys
        return DropoutMask(
            self.parts, (allocation, offset, step), self.node.attrs["dropout"], self.dtype, positions, at.keys
        )

    def _bounds(self, bounds: Value, x: Operands) -> SequenceBounds:
        at = self.at
        return SequenceBounds(self.parts, x.dense(bounds), bounds.aval.shape[0], at.queries, at.keys, KEYS)

    @property
    def names(self) -> list[str]:
        """The columns of the table."""
        return [*_OWN_COLUMNS, *self.columns]

    def table(self) -> int:
        """Declare the table, which has a line for each block; return the number of its columns."""
        numbers, make = self._numbers_of_table()
        size = len(self.names) * self.at.batch * self.at.heads * max(self.blocks, 1)
        self.parts.buffer("table", constant("table", int64, size, make, numbers), 0)
        return len(self.names)

    def _numbers_of_table(self) -> tuple[tuple[Any, ...], Callable[..., np.ndarray]]:
        """Return the numbers that the table follows from, and the function that makes it of them."""
        at, columns = self.at, self.columns.values()
        sizes = (at.batch, at.heads, max(self.blocks, 1), max(at.group, 1), self.height, at.queries, at.keys)
        is_triangle = self.causal and not self.node.attrs["ragged"]
        steps = itertools.chain.from_iterable(column[:3] for column in columns)
        return (*sizes, *steps), functools.partial(_lines, is_triangle, tuple(c.is_shared for c in columns))

    def lets(self, line: Line, names: list[str] | None = None) -> list[ir.Stmt]:
        """Bind the columns ``names`` (None: all) of a line of the table."""
        return [
            ir.Let(name, ir.Load("table", ir.Index(line, number), int64))
            for number, name in enumerate(self.names)
            if names is None or name in names
        ]

    def draw_words(self) -> list[ir.Stmt]:
        """Return the values of the dropout mask for the whole kernel."""
        return [] if self.dropout_mask is None else self.dropout_mask.begin()

    # Visible keys -----------------------------------------------------------------------------------------------------

    def visible_keys(self) -> ir.Let:
        """Return the number of keys that the block attends to: no more than its sequence has."""
        keys = count("keys")
        return ir.Let("seen", keys if self.lengths is None else clipped(self.lengths, 0, keys))

    def by_k_blocks(self) -> list[ir.Stmt]:
        """Bind ``seen`` and the number of k-blocks, ``turns``; declare the table of their first keys."""
        starts = np.arange(0, self.at.keys, KEYS)
        self.parts.table("starts", starts)
        ended = binary(scalar.add, count("seen"), ir.Const(KEYS - 1, int64))
        k_blocks = binary(scalar.floor_divide, ended, ir.Const(KEYS, int64))
        if self.mask is not None:
            step = self.mask_key if self.mask_key == 0 else self.parts.param(KEYS * self.mask_stride)
            self.mask = ir.Load("mask", self._mask_at((KEY_STEP, step)), self.mask.dtype)
        return [self.visible_keys(), ir.Let("k_blocks", clipped(k_blocks, 0, self.parts.param(len(starts))))]

    def sequence(
        self, bounds: SequenceBounds, queries: dict[str, ir.Param], keys: dict[str, ir.Param]
    ) -> list[ir.Stmt]:
        """Return the visible keys of the next sequence, and the offsets of its queries and keys in operands with these
        strides along time."""
        begins = [*((n, "from", s) for n, s in queries.items()), *((n, "key_begin", s) for n, s in keys.items())]
        return [
            *bounds.lets(self.causal),
            *(
                ir.Let(f"{name}_from", binary(scalar.add, count(f"{name}_at"), binary(scalar.mul, count(begin), step)))
                for name, begin, step in begins
            ),
        ]

    def turn(self) -> list[ir.Stmt]:
        """Return the ``start`` of a k-block, and its number of keys, ``now``."""
        start: ir.Expr = ir.Load("starts", ir.Index(((KEY_STEP, 1),)), int64)
        if self.bounds is not None:
            start = binary(scalar.mul, ir.Position(KEY_STEP, int64), ir.Const(KEYS, int64))
        now = clipped(binary(scalar.sub, count("seen"), count("start")), 0, ir.Const(KEYS, int64))
        return [ir.Let("start", start), ir.Let("now", now)]

    # Matrices ---------------------------------------------------------------------------------------------------------

    @property
    def row_begin(self) -> ir.Bound:
        """The first row of the block that is computed."""
        return 0 if self.bounds is None else count("from")

    @property
    def row_end(self) -> ir.Ref:
        return count("height" if self.bounds is None else "to")

    @property
    def row_count(self) -> ir.Ref:
        return count("height" if self.bounds is None else "rows")

    def first_of(self, name: str, *terms: tuple[ir.Var, ir.Stride]) -> ir.Index:
        """Return the first of the current queries, or of the keys, in an operand."""
        return at(f"{name}_at" if self.bounds is None else f"{name}_from", *terms)

    def own(self, step: ir.Stride) -> ir.Index:
        """Return the first of the current rows in scratch memory with row stride ``step``."""
        return ir.Index() if self.bounds is None else ir.Index(gathered=((count("from"), step),))

    def product(
        self,
        a: Matrix,
        b: Matrix,
        c: tuple[str, ir.Index, ir.Stride],
        m: ir.Count,
        n: ir.Count,
        k: ir.Count,
        *,
        accumulate: bool = False,
    ) -> ir.Product:
        """Return the product C = A·B, or C + A·B."""
        return ir.Product(
            a[0], a[1], b[0], b[1], c[0], c[1], self.dtype, m, n, k, a[2], a[3], b[2], b[3], c[2], accumulate
        )  # fmt: skip

    def scores(self, keys: ir.Index, number: ir.Ref) -> ir.Product:
        """Multiply the block's queries by ``number`` keys from ``keys`` on, into scratch ``s``."""
        q = ("q", self.first_of("q"), *self.q_steps)
        k = ("k", keys, self.k_steps[1], self.k_steps[0])
        return self.product(q, k, ("s", self.own(self.row_step), self.row_step), self.row_count, number, self.depth)

    def call(self, prefix: str, body: tuple[ir.Stmt, ...], rows: int, products: int) -> Call:
        """Return the kernel with its cost: ``products`` for each element of a head, and about 20 operations on each
        score."""
        at = self.at
        numbers, make = self._numbers_of_table()
        lines = make(*map(expected, numbers)).reshape(-1, len(self.names))
        pairs = lines[:, self.names.index("keys")].sum() * expected(self.height)
        if self.bounds is not None:
            pairs = pairs / max(expected(self.bounds.count), 1)  # as if all sequences had the same length
        return self.parts.call(prefix, body, (rows, 1), pairs * (products * (at.depth + at.values) + 20), self.node)


class Rows(AttentionKernel):
    """AttentionKernel of queries with statements on row I of their scores, ``s``."""

    @property
    def score(self) -> ir.Load:
        return ir.Load("s", self.s_cell, self.dtype)

    @property
    def here(self) -> ir.Index:
        """Row I of a scratch array with one number per row."""
        return ir.Index(((QUERY, 1),))

    def number(self, name: str) -> ir.Ref:
        """Return a number bound to ``name``."""
        return ir.Ref(name, self.dtype)

    def zero(self) -> ir.Const:
        return ir.Const(0.0, self.dtype)

    def over_rows(self, body: tuple[ir.Stmt, ...]) -> ir.For:
        """Run ``body`` for each row I of the block."""
        return ir.For(QUERY, self.row_begin, self.row_end, "seq", body)

    def over_limit(self, body: tuple[ir.Stmt, ...]) -> ir.For:
        """Run ``body`` for each key that row I attends to."""
        return ir.For(KEY, 0, count("limit"), "vec", body)

    def row_limit(self, visible: ir.Ref, before: ir.Ref | None = None) -> ir.Let:
        """Return the number ``limit`` of the ``visible`` keys in scratch, after ``before`` others, that query I attends
        to."""
        if not self.causal:
            return ir.Let("limit", visible)
        begin: ir.Expr = count("first" if self.bounds is None else "ahead")
        own = binary(scalar.add, begin, ir.Position(QUERY, int64))
        if self.bounds is None:
            own = binary(scalar.add, own, ir.Const(1, int64))
        return ir.Let("limit", clipped(own if before is None else binary(scalar.sub, own, before), 0, visible))

    def top_of_row(self) -> list[ir.Stmt]:
        """Return the greatest score of row I as accumulator ``top``; masked scores are stored."""
        if self.mask is None:
            return [ir.Acc("top", "max", self.dtype), self.over_limit((ir.Update("top", self.score),))]
        return [
            ir.Acc("top", "max", self.dtype),
            self.over_limit((*self._masked(), ir.Update("top", self.number("score")))),
        ]

    def masked_row(self) -> list[ir.Stmt]:
        """Return the masked scores of row I, stored."""
        return [] if self.mask is None else [self.over_limit(self._masked())]

    def _masked(self) -> tuple[ir.Stmt, ...]:
        mask = self.mask
        if mask is None:
            return ()
        if mask.dtype is bool_:
            value: ir.Expr = ir.Apply(
                scalar.select, (mask, self.score, ir.Const(float("-inf"), self.dtype)), self.dtype
            )
        else:
            value = binary(scalar.add, binary(scalar.mul, self.score, self.factor), mask)
        return ir.Let("score", value), ir.Store("s", self.s_cell, self.number("score"))

    def scaled(self, score: ir.Expr) -> ir.Expr:
        """Return a difference of scores, scaled; where a mask is added they are scaled already."""
        if self.mask is not None and self.mask.dtype is not bool_:
            return score
        return binary(scalar.mul, score, self.factor)

    def powers_of_row(self, end: ir.Ref, beside: ir.Expr | None = None) -> list[ir.Stmt]:
        """Turn scores of row I into powers exp(scale·(score - shift)), and 0 from ``limit`` to ``end``; ``total`` is
        their sum, ``dot`` the sum of their products with ``beside``."""
        below = self.scaled(binary(scalar.sub, self.score, self.number("shift")))
        power = self.number("power")
        body: tuple[ir.Stmt, ...] = (
            ir.Let("power", ir.Apply(scalar.exp, (below,), self.dtype)),
            ir.Store("s", self.s_cell, power),
            ir.Update("total", power),
        )
        sums: list[ir.Stmt] = [self.sum_of_row("total")]
        if beside is not None:
            sums.append(self.sum_of_row("dot"))
            body = (*body, ir.Update("dot", binary(scalar.mul, power, beside)))
        return [*sums, self.over_limit(body), *self.cleared_row("s", end)]

    def sum_of_row(self, name: str) -> ir.Acc:
        """Return a sum over the keys in scratch."""
        return ir.Acc(name, "sum", self.dtype, "short" if self.row <= ir.CHAIN * ir.LANES else "blocks")

    def drawn_row(self, before: ir.Expr | None, body: tuple[ir.Stmt, ...]) -> list[ir.Stmt]:
        """Run ``body`` for each key that row I attends to, with ``dropped``, whether its weight is dropped. ``before``
        is the number of the sequence's keys before those in scratch."""
        if self.dropout_mask is None:
            return []
        row = binary(scalar.add, count("line"), ir.Position(QUERY, int64))
        first = before
        if self.bounds is not None:
            first = count("key_begin") if before is None else binary(scalar.add, count("key_begin"), before)
        return [*self.dropout_mask.row(row, first), self.over_limit((*self.dropout_mask.draw(KEY), *body))]

    def unless_dropped(self, value: ir.Expr) -> ir.Expr:
        return ir.Apply(scalar.select, (DROPPED, self.zero(), value), self.dtype)

    def cleared_row(self, name: str, end: ir.Ref) -> list[ir.Stmt]:
        """Store zeros in row I of scratch ``name`` from ``limit`` to ``end``, where queries attend to different
        keys."""
        if not self.causal:
            return []
        return [ir.For(KEY, count("limit"), end, "vec", (ir.Store(name, self.s_cell, self.zero()),))]

    # The running maximum and sum over k-blocks ------------------------------------------------------------------------

    def no_turn_yet(self, sums: tuple[str, ...]) -> tuple[ir.Stmt, ...]:
        """Initialize ``tops`` and ``sums`` of row I before its first k-block."""
        lowest = ir.Const(float("-inf"), self.dtype)
        return ir.Store("tops", self.here, lowest), *(ir.Store(name, self.here, self.zero()) for name in sums)

    def shift_to_top(self) -> list[ir.Stmt]:
        """Return the ``highest`` score of row I so far, and the one ``before`` this k-block; powers are
        shifted by it."""
        return [
            ir.Let("before", ir.Load("tops", self.here, self.dtype)),
            ir.Let("highest", binary(scalar.maximum, self.number("before"), self.number("top"))),
            ir.Let("shift", self.finite(self.number("highest"))),
        ]

    def join_turn(self, sums: tuple[tuple[str, str], ...]) -> list[ir.Stmt]:
        """Add the k-block's sums to the sums of row I so far, which are rescaled by ``factor``."""
        before = self.number("before")
        shrunk = ir.Apply(scalar.exp, (self.scaled(binary(scalar.sub, before, self.number("shift"))),), self.dtype)
        factor = ir.Apply(scalar.select, (self.is_lowest(before), self.zero(), shrunk), self.dtype)
        joined = [
            ir.Store(so_far, self.here,
                  binary(scalar.add, binary(scalar.mul, ir.Load(so_far, self.here, self.dtype), self.number("factor")),
                         self.number(turn)))
            for so_far, turn in sums
        ]  # fmt: skip
        return [ir.Let("factor", factor), ir.Store("tops", self.here, self.number("highest")), *joined]

    # Numbers of a row -------------------------------------------------------------------------------------------------

    def is_lowest(self, value: ir.Expr) -> ir.Expr:
        return ir.Apply(scalar.eq, (value, ir.Const(float("-inf"), self.dtype)), bool_)

    def finite(self, top: ir.Expr) -> ir.Expr:
        """Return ``top``, or 0 where no key is visible: then every power is 0."""
        return ir.Apply(scalar.select, (self.is_lowest(top), self.zero(), top), self.dtype)

    def inverse(self, total: ir.Expr) -> ir.Expr:
        """Return 1 / total, or 0 where no key is visible."""
        none = ir.Apply(scalar.eq, (total, self.zero()), bool_)
        one = ir.Const(1.0, self.dtype)
        return ir.Apply(scalar.select, (none, self.zero(), binary(scalar.div, one, total)), self.dtype)

    def rescaled(self, value: ir.Expr) -> ir.Expr:
        """Return a weight that is not dropped, rescaled."""
        return value if self.dropout_mask is None else binary(scalar.mul, value, self.number("kept"))
