"""Stable sorts of rows as kernels, by keys: unsigned integers in the order of the elements.

Long rows are sorted digit by digit, the lowest first, one byte at a time (LSD radix sort: H. Seward, 1954; D. Knuth,
"The Art of Computer Programming", volume 3, 5.2.5); the counts of all passes are taken at once. In a short row the rank
of each element is computed by comparison with all others, in vectors. Neither branches on values, so that the time is
the same for all inputs.

Positions computed from counts are clamped to the row: no kernel leaves its buffers in any case.
"""

from __future__ import annotations

from typing import Final

from runnel.compiler.lowering.operands import Operands
from runnel.compiler.lowering.parts import Parts, binary, clipped, compared
from runnel.compiler.lowering.protocol import Lowering, Request
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call
from runnel.core.dtypes import bool_, int32, int64, uint8, uint16, uint32, uint64
from runnel.graph.node import Value
from runnel.loops import ir, scalar

SHORT: Final = 128  # most elements of a row that is sorted by ranks
_DIGITS: Final = 256
_UNSIGNED: Final = {1: uint8, 2: uint16, 4: uint32, 8: uint64}
_ROW, _AT, _OTHER, _DIGIT = ir.Var("row"), ir.Var("at"), ir.Var("other"), ir.Var("digit")


class SortLowering(Lowering):
    """Sort: the elements of each row (of the last axis) in order, and their indices."""

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [_Sort(request.node, request.operands, results).call()]


class _Sort:
    """The kernel of one node: buffers ``x``, ``values`` and ``indices`` with rows of ``n``."""

    def __init__(self, node: Value, operands: Operands, results: list[Allocation]) -> None:
        (x,) = node.inputs
        self.node = node
        self.descending: bool = node.attrs["descending"]
        self.n = x.aval.shape[-1]
        self.rows = x.aval.size // self.n if self.n else 0
        self.dtype = x.aval.dtype
        self.key_dtype = _UNSIGNED[self.dtype.itemsize]
        self.parts = Parts()
        self.length, self.last = self.parts.param(self.n), self.parts.param(max(self.n - 1, 0))
        self._buffer("x", *operands.dense(x), "in")
        self._buffer("values", results[0], 0, "out")
        self._buffer("indices", results[1], 0, "out")

    def _buffer(self, name: str, allocation: Allocation, offset: int, mode: str) -> None:
        """Declare a dense matrix, of which each row of the call accesses one row."""
        self.parts.declare(BufferAccess(allocation, mode != "in", offset, self.n, 0, max(self.n, 1)), mode, name=name)

    def call(self) -> Call:
        body = self._ranked() if self.n <= SHORT else self._radix()
        loop = ir.For(_ROW, ir.RangeBound.I0, ir.RangeBound.I1, "seq", tuple(body))
        work = self.n * self.n // 4 if self.n <= SHORT else self.n * 12 * self.dtype.itemsize
        name = "sort_ranked" if self.n <= SHORT else "sort_radix"
        return self.parts.call(name, (loop,), (self.rows, 1), self.rows * work, self.node)

    # Keys -------------------------------------------------------------------------------------------------------------

    def _keys(self, target: str) -> ir.For:
        """Compute the key of each element of the row."""
        element = ir.Load("x", self._in_row(_AT), self.dtype)
        return ir.For(
            _AT, 0, self.length, "vec", (ir.Let("element", element), ir.Store(target, _cell(_AT), self._key()))
        )

    def _key(self) -> ir.Expr:
        """Return the key of ``element``: equal for equal elements; NaN, of either sign, is above all numbers."""
        x, to = ir.Ref("element", self.dtype), self.key_dtype
        if self.dtype.is_float:
            bits = 8 * self.dtype.itemsize
            one_zero = ir.Apply(
                scalar.select, (compared(scalar.eq, x, ir.Const(0.0, x.dtype)), ir.Const(0.0, x.dtype), x), x.dtype
            )
            word: ir.Expr = ir.Apply(scalar.bitcast, (one_zero,), to)
            sign = binary(scalar.shift_right, word, ir.Const(bits - 1, to))
            everything, top = ir.Const((1 << bits) - 1, to), ir.Const(1 << (bits - 1), to)
            flipped = ir.Apply(scalar.select, (compared(scalar.ne, sign, ir.Const(0, to)), everything, top), to)
            word = binary(scalar.xor, word, flipped)
            word = ir.Apply(scalar.select, (ir.Apply(scalar.isnan, (x,), bool_), everything, word), to)
        elif self.dtype.kind == "int":
            word = binary(
                scalar.xor, ir.Apply(scalar.bitcast, (x,), to), ir.Const(1 << (8 * self.dtype.itemsize - 1), to)
            )
        else:
            word = x if self.dtype is to else ir.Apply(scalar.cast, (x,), to)
        return ir.Apply(scalar.not_, (word,), to) if self.descending else word

    # Short rows -------------------------------------------------------------------------------------------------------

    def _ranked(self) -> list[ir.Stmt]:
        self.parts.scratch("keys", self.key_dtype, max(self.n, 1))
        self.parts.scratch("ranks", int32, max(self.n, 1))
        mine, other = ir.Ref("mine", self.key_dtype), ir.Ref("theirs", self.key_dtype)
        earlier = compared(scalar.lt, ir.Position(_OTHER, int64), ir.Position(_AT, int64))
        before = ir.Apply(scalar.and_, (compared(scalar.eq, other, mine), earlier), bool_)
        before = ir.Apply(scalar.or_, (compared(scalar.lt, other, mine), before), bool_)
        count: tuple[ir.Stmt, ...] = (
            ir.Let("theirs", ir.Load("keys", _cell(_OTHER), self.key_dtype)),
            ir.Update("rank", ir.Apply(scalar.cast, (before,), int32)),
        )
        ranks = ir.For(_AT, 0, self.length, "vec", (
            ir.Let("mine", ir.Load("keys", _cell(_AT), self.key_dtype)),
            ir.Acc("rank", "sum", int32),
            ir.For(_OTHER, 0, self.length, "seq", count),
            ir.Store("ranks", _cell(_AT), ir.Ref("rank", int32)),
        ))  # fmt: skip
        scatter = ir.For(_AT, 0, self.length, "seq", (
            ir.Let("position", self._clamped(ir.Load("ranks", _cell(_AT), int32))),
            ir.Store("values", self._at("position"), ir.Load("x", self._in_row(_AT), self.dtype)),
            ir.Store("indices", self._at("position"), ir.Position(_AT, int64)),
        ))  # fmt: skip
        return [self._keys("keys"), ranks, scatter]

    # Long rows --------------------------------------------------------------------------------------------------------

    def _radix(self) -> list[ir.Stmt]:
        for name in ("keys0", "keys1"):
            self.parts.scratch(name, self.key_dtype, self.n)
        for name in ("order0", "order1"):
            self.parts.scratch(name, int32, self.n)
        passes = self.dtype.itemsize
        self.parts.scratch("counts", int32, _DIGITS * passes)
        self.parts.scratch("before", int32, passes)
        zero = ir.Const(0, int32)
        numbers = ir.For(_AT, 0, self.length, "vec", (ir.Store("order0", _cell(_AT), ir.Position(_AT, int32)),))
        cleared = ir.For(_DIGIT, 0, _DIGITS * passes, "vec", (ir.Store("counts", _cell(_DIGIT), zero),))
        counted: list[ir.Stmt] = [ir.Let("key", ir.Load("keys0", _cell(_AT), self.key_dtype))]
        started: list[ir.Stmt] = []
        summed: list[ir.Stmt] = []
        for p in range(passes):
            cell = ir.Index((), p * _DIGITS, ((ir.Ref(f"digit{p}", int64), 1),))
            counted += [
                ir.Let(f"digit{p}", self._digit(p)),
                ir.Store("counts", cell, _one_more(ir.Load("counts", cell, int32))),
            ]
            started.append(ir.Store("before", ir.Index((), p), zero))
            so_far = ir.Ref(f"so_far{p}", int32)
            here, total = ir.Index(((_DIGIT, 1),), p * _DIGITS), ir.Load("before", ir.Index((), p), int32)
            summed += [
                ir.Let(f"so_far{p}", total),
                ir.Store("before", ir.Index((), p), binary(scalar.add, so_far, ir.Load("counts", here, int32))),
                ir.Store("counts", here, so_far),
            ]
        body: list[ir.Stmt] = [
            self._keys("keys0"),
            numbers,
            cleared,
            ir.For(_AT, 0, self.length, "seq", tuple(counted)),
        ]
        body += [*started, ir.For(_DIGIT, 0, _DIGITS, "seq", tuple(summed))]
        return [*body, *map(self._pass, range(passes)), self._gathered(passes % 2)]

    def _digit(self, number: int) -> ir.Expr:
        """Return byte ``number`` of ``key``, the lowest first."""
        word = binary(scalar.shift_right, ir.Ref("key", self.key_dtype), ir.Const(8 * number, self.key_dtype))
        return ir.Apply(scalar.cast, (binary(scalar.and_, word, ir.Const(_DIGITS - 1, self.key_dtype)),), int64)

    def _pass(self, number: int) -> ir.For:
        """Scatter each key and its number to the next slot of its digit."""
        source, target = number % 2, 1 - number % 2
        cell = ir.Index((), number * _DIGITS, ((ir.Ref("its_digit", int64), 1),))
        there = ir.Index((), 0, ((ir.Ref("position", int64), 1),))
        body: tuple[ir.Stmt, ...] = (
            ir.Let("key", ir.Load(f"keys{source}", _cell(_AT), self.key_dtype)),
            ir.Let("its_digit", self._digit(number)),
            ir.Let("free", ir.Load("counts", cell, int32)),
            ir.Let("position", self._clamped(ir.Ref("free", int32))),
            ir.Store(f"keys{target}", there, ir.Ref("key", self.key_dtype)),
            ir.Store(f"order{target}", there, ir.Load(f"order{source}", _cell(_AT), int32)),
            ir.Store("counts", cell, _one_more(ir.Ref("free", int32))),
        )
        return ir.For(_AT, 0, self.length, "seq", body)

    def _gathered(self, source: int) -> ir.For:
        """Store the elements in sorted order."""
        position = ir.Let("position", self._clamped(ir.Load(f"order{source}", _cell(_AT), int32)))
        value = ir.Load("x", self._at("position"), self.dtype)
        stores = (
            ir.Store("values", self._in_row(_AT), value),
            ir.Store("indices", self._in_row(_AT), ir.Ref("position", int64)),
        )
        return ir.For(_AT, 0, self.length, "vec", (position, *stores))

    # Places -----------------------------------------------------------------------------------------------------------

    def _in_row(self, var: ir.Var) -> ir.Index:
        return ir.Index(((_ROW, self.length), (var, 1)))

    def _at(self, name: str) -> ir.Index:
        return ir.Index(((_ROW, self.length),), 0, ((ir.Ref(name, int64), 1),))

    def _clamped(self, position: ir.Expr) -> ir.Expr:
        """Return a position clamped to the row."""
        return clipped(ir.Apply(scalar.cast, (position,), int64), 0, self.last)


def _cell(var: ir.Var) -> ir.Index:
    return ir.Index(((var, 1),))


def _one_more(x: ir.Expr) -> ir.Expr:
    return binary(scalar.add, x, ir.Const(1, int32))
