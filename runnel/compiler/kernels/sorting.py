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
from runnel.loops import scalar
from runnel.loops.ir import (
    Acc,
    Apply,
    Const,
    Expr,
    For,
    Index,
    Let,
    Load,
    Position,
    RangeBound,
    Ref,
    Stmt,
    Store,
    Update,
    Var,
)

SHORT: Final = 128  # most elements of a row that is sorted by ranks
_DIGITS: Final = 256
_UNSIGNED: Final = {1: uint8, 2: uint16, 4: uint32, 8: uint64}
_ROW, _AT, _OTHER, _DIGIT = Var("row"), Var("at"), Var("other"), Var("digit")


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
        loop = For(_ROW, RangeBound.I0, RangeBound.I1, "seq", tuple(body))
        work = self.n * (self.n / 4 if self.n <= SHORT else 12 * self.dtype.itemsize)
        name = "sort_ranked" if self.n <= SHORT else "sort_radix"
        return self.parts.call(name, (loop,), (self.rows, 1), float(self.rows * work), self.node)

    # Keys -------------------------------------------------------------------------------------------------------------

    def _keys(self, target: str) -> For:
        """Compute the key of each element of the row."""
        element = Load("x", self._in_row(_AT), self.dtype)
        return For(_AT, 0, self.length, "vec", (Let("element", element), Store(target, _cell(_AT), self._key())))

    def _key(self) -> Expr:
        """Return the key of ``element``: equal for equal elements; NaN, of either sign, is above all numbers."""
        x, to = Ref("element", self.dtype), self.key_dtype
        if self.dtype.is_float:
            bits = 8 * self.dtype.itemsize
            one_zero = Apply(
                scalar.select, (compared(scalar.eq, x, Const(0.0, x.dtype)), Const(0.0, x.dtype), x), x.dtype
            )
            word: Expr = Apply(scalar.bitcast, (one_zero,), to)
            sign = binary(scalar.shift_right, word, Const(bits - 1, to))
            everything, top = Const((1 << bits) - 1, to), Const(1 << (bits - 1), to)
            flipped = Apply(scalar.select, (compared(scalar.ne, sign, Const(0, to)), everything, top), to)
            word = binary(scalar.xor, word, flipped)
            word = Apply(scalar.select, (Apply(scalar.isnan, (x,), bool_), everything, word), to)
        elif self.dtype.kind == "int":
            word = binary(scalar.xor, Apply(scalar.bitcast, (x,), to), Const(1 << (8 * self.dtype.itemsize - 1), to))
        else:
            word = x if self.dtype is to else Apply(scalar.cast, (x,), to)
        return Apply(scalar.not_, (word,), to) if self.descending else word

    # Short rows -------------------------------------------------------------------------------------------------------

    def _ranked(self) -> list[Stmt]:
        self.parts.scratch("keys", self.key_dtype, max(self.n, 1))
        self.parts.scratch("ranks", int32, max(self.n, 1))
        mine, other = Ref("mine", self.key_dtype), Ref("theirs", self.key_dtype)
        earlier = compared(scalar.lt, Position(_OTHER, int64), Position(_AT, int64))
        before = Apply(scalar.and_, (compared(scalar.eq, other, mine), earlier), bool_)
        before = Apply(scalar.or_, (compared(scalar.lt, other, mine), before), bool_)
        count: tuple[Stmt, ...] = (
            Let("theirs", Load("keys", _cell(_OTHER), self.key_dtype)),
            Update("rank", Apply(scalar.cast, (before,), int32)),
        )
        ranks = For(_AT, 0, self.length, "vec", (
            Let("mine", Load("keys", _cell(_AT), self.key_dtype)),
            Acc("rank", "sum", int32),
            For(_OTHER, 0, self.length, "seq", count),
            Store("ranks", _cell(_AT), Ref("rank", int32)),
        ))  # fmt: skip
        scatter = For(_AT, 0, self.length, "seq", (
            Let("position", self._clamped(Load("ranks", _cell(_AT), int32))),
            Store("values", self._at("position"), Load("x", self._in_row(_AT), self.dtype)),
            Store("indices", self._at("position"), Position(_AT, int64)),
        ))  # fmt: skip
        return [self._keys("keys"), ranks, scatter]

    # Long rows --------------------------------------------------------------------------------------------------------

    def _radix(self) -> list[Stmt]:
        for name in ("keys0", "keys1"):
            self.parts.scratch(name, self.key_dtype, self.n)
        for name in ("order0", "order1"):
            self.parts.scratch(name, int32, self.n)
        passes = self.dtype.itemsize
        self.parts.scratch("counts", int32, _DIGITS * passes)
        self.parts.scratch("before", int32, passes)
        zero = Const(0, int32)
        numbers = For(_AT, 0, self.length, "vec", (Store("order0", _cell(_AT), Position(_AT, int32)),))
        cleared = For(_DIGIT, 0, _DIGITS * passes, "vec", (Store("counts", _cell(_DIGIT), zero),))
        counted: list[Stmt] = [Let("key", Load("keys0", _cell(_AT), self.key_dtype))]
        started: list[Stmt] = []
        summed: list[Stmt] = []
        for p in range(passes):
            cell = Index((), p * _DIGITS, ((Ref(f"digit{p}", int64), 1),))
            counted += [Let(f"digit{p}", self._digit(p)), Store("counts", cell, _one_more(Load("counts", cell, int32)))]
            started.append(Store("before", Index((), p), zero))
            so_far = Ref(f"so_far{p}", int32)
            here, total = Index(((_DIGIT, 1),), p * _DIGITS), Load("before", Index((), p), int32)
            summed += [
                Let(f"so_far{p}", total),
                Store("before", Index((), p), binary(scalar.add, so_far, Load("counts", here, int32))),
                Store("counts", here, so_far),
            ]
        body: list[Stmt] = [self._keys("keys0"), numbers, cleared, For(_AT, 0, self.length, "seq", tuple(counted))]
        body += [*started, For(_DIGIT, 0, _DIGITS, "seq", tuple(summed))]
        return [*body, *map(self._pass, range(passes)), self._gathered(passes % 2)]

    def _digit(self, number: int) -> Expr:
        """Return byte ``number`` of ``key``, the lowest first."""
        word = binary(scalar.shift_right, Ref("key", self.key_dtype), Const(8 * number, self.key_dtype))
        return Apply(scalar.cast, (binary(scalar.and_, word, Const(_DIGITS - 1, self.key_dtype)),), int64)

    def _pass(self, number: int) -> For:
        """Scatter each key and its number to the next slot of its digit."""
        source, target = number % 2, 1 - number % 2
        cell = Index((), number * _DIGITS, ((Ref("its_digit", int64), 1),))
        there = Index((), 0, ((Ref("position", int64), 1),))
        body: tuple[Stmt, ...] = (
            Let("key", Load(f"keys{source}", _cell(_AT), self.key_dtype)),
            Let("its_digit", self._digit(number)),
            Let("free", Load("counts", cell, int32)),
            Let("position", self._clamped(Ref("free", int32))),
            Store(f"keys{target}", there, Ref("key", self.key_dtype)),
            Store(f"order{target}", there, Load(f"order{source}", _cell(_AT), int32)),
            Store("counts", cell, _one_more(Ref("free", int32))),
        )
        return For(_AT, 0, self.length, "seq", body)

    def _gathered(self, source: int) -> For:
        """Store the elements in sorted order."""
        position = Let("position", self._clamped(Load(f"order{source}", _cell(_AT), int32)))
        value = Load("x", self._at("position"), self.dtype)
        stores = (
            Store("values", self._in_row(_AT), value),
            Store("indices", self._in_row(_AT), Ref("position", int64)),
        )
        return For(_AT, 0, self.length, "vec", (position, *stores))

    # Places -----------------------------------------------------------------------------------------------------------

    def _in_row(self, var: Var) -> Index:
        return Index(((_ROW, self.length), (var, 1)))

    def _at(self, name: str) -> Index:
        return Index(((_ROW, self.length),), 0, ((Ref(name, int64), 1),))

    def _clamped(self, position: Expr) -> Expr:
        """Return a position clamped to the row."""
        return clipped(Apply(scalar.cast, (position,), int64), 0, self.last)


def _cell(var: Var) -> Index:
    return Index(((var, 1),))


def _one_more(x: Expr) -> Expr:
    return binary(scalar.add, x, Const(1, int32))
