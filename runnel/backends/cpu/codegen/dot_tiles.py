"""The innermost kernels of products of bfloat16, and the packing of their operands into panels of pairs.

A dot instruction adds the products of two pairs of bfloat16 to each float32 of a vector. So a step of k is two steps
of the matrix, a vector of B holds one pair of each column, and a pair of A is broadcast. The strides and offset tables
of A count single bfloat16; pairs are adjacent. Otherwise the tiles equal the tiles of ``tiles``.

A panel holds ``width`` columns; the pair of elements 2p and 2p + 1 along k of column c is at p·width + c, in units of
four bytes. An odd last k is paired with zero. A strip of fewer columns than lanes is padded with its last column or
with zeros, which are read but not used. Nothing outside the block is accessed.
"""

from __future__ import annotations

from runnel.backends.cpu.codegen import tiles
from runnel.backends.cpu.codegen.text import Flow, Operand, vector
from runnel.backends.cpu.codegen.tiles import Strided, Tile, transposed
from runnel.backends.cpu.target import InstructionSet
from runnel.core.dtypes import bfloat16, float32, int32


def emit(tile: Tile, target: InstructionSet) -> Flow:
    """Return the body of one kernel: ``k`` counts pairs, and C is float32."""
    return tiles.emit(tile, target, float32, IndirectPairs if tile.indirect else Pairs)


def moved(em: Flow, pointer: str, *offsets: Operand) -> str:
    """Move ``pointer`` by the sum of ``offsets``, in bfloat16."""
    for offset in offsets:
        if offset != 0:
            pointer = em.value(f"getelementptr i16, ptr {pointer}, i64 {offset}")
    return pointer


class Pairs(Strided):
    """The pairs of A that a step needs, with stride a_row between rows and a_k between steps."""

    def addresses(self) -> list[str]:
        return [moved(self.em, self.at, row) for row in self.rows]

    def step(self, block: str) -> None:
        self.em.add_edge(self.at, moved(self.em, self.at, "%a_k"), block)

    def everywhere(self, place: str) -> str:
        em = self.em
        pair = em.value(f"load i32, ptr {place}, align {bfloat16.itemsize}")
        return _halves(em, em.broadcast(pair, int32, em.lanes), vector(int32, em.lanes))

    def multiply_add(self, factor: str, column: str, total: str) -> str:
        """Add both products to ``total``, rounded as in docs/internals/kernels.md."""
        em, kind, pairs = self.em, self.em.vector_kind, vector(bfloat16, 2 * self.em.lanes)
        return em.intrinsic(em.target.dot, kind, (kind, total), (pairs, factor), (pairs, _halves(em, column, kind)))


class IndirectPairs(Pairs):
    """The same with an offset table for the rows and one for k, of which every other entry is read."""

    def __init__(self, em: Flow, rows: int) -> None:
        self.em = em
        lists = [em.value(f"inttoptr i64 {x} to ptr") for x in ("%a_row", "%a_k")]
        self.places = [moved(em, "%A", em.indirect(lists[0], r)) for r in range(rows)]
        self.ks = lists[1]

    def begin(self, before: str) -> None:
        self.at = self.em.phi("ptr", (self.ks, before))

    def addresses(self) -> list[str]:
        offset = self.em.indirect(self.at, 0)
        return [moved(self.em, place, offset) for place in self.places]

    def step(self, block: str) -> None:
        self.em.add_edge(self.at, self.em.value(f"getelementptr i32, ptr {self.at}, i64 2"), block)


def _halves(em: Flow, operand: str, kind: str) -> str:
    """Return a vector of 32-bit numbers as one of bfloat16."""
    return em.value(f"bitcast {kind} {operand} to {vector(bfloat16, 2 * em.lanes)}")


MICRO_PANEL = "ptr %from, i64 %k_step, i64 %c_step, i64 %k, i64 %columns, ptr %to, i64 %width"
INDIRECT_MICRO_PANEL = "ptr %from, ptr %ks, ptr %cs, i64 %k, i64 %columns, ptr %to, i64 %width"
PANELS = "ptr %from, i64 %k_step, i64 %c_step, i64 %k, i64 %columns, ptr %to"


class _Steps:
    """The addresses of a strip's elements: ``columns[c]`` after :meth:`row`. A missing column counts as the last
    one."""

    def __init__(self, em: Flow) -> None:
        self.em = em
        last = em.sub("%columns", 1)
        self.numbers: list[Operand] = [0, *(em.minimum(c, last) for c in range(1, em.lanes))]
        self.columns = [self.column(number) for number in self.numbers]

    def column(self, number: Operand) -> Operand:
        return self.em.mul(number, "%c_step")

    def row(self, k: Operand) -> str:
        return moved(self.em, "%from", self.em.mul(k, "%k_step"))

    def adjacent(self) -> str:
        """Return whether columns are adjacent."""
        return self.em.test("eq", "%c_step", 1)

    def paired(self) -> str:
        """Return whether the elements along k are adjacent, with enough pairs for a square."""
        return self.em.both(self.em.test("eq", "%k_step", 1), self.em.test("sge", "%k", 2 * self.em.lanes))


class _IndirectSteps(_Steps):
    """The same with offset tables."""

    def column(self, number: Operand) -> Operand:
        return self.em.indirect("%cs", number)

    def row(self, k: Operand) -> str:
        return moved(self.em, "%from", self.em.indirect("%ks", k))

    def adjacent(self) -> str:
        em, adjacent = self.em, "true"
        for number, column in zip(self.numbers, self.columns, strict=True):
            adjacent = em.both(adjacent, em.test("eq", em.sub(column, self.columns[0]), number))
        return adjacent

    def paired(self) -> str:
        return "false"


def strip(target: InstructionSet) -> Flow:
    """Emit ``strip(from, k_step, c_step, k, columns, to, width)``, which copies 1…lanes columns to one vector of each
    row of a panel."""
    return _strip(target, _Steps)


def indirect_micro_panel(target: InstructionSet) -> Flow:
    """Emit ``indirect_micro_panel(from, ks, cs, k, columns, to, width)``: like ``strip`` with element (k, c) at ks[k] +
    cs[c]."""
    return _strip(target, _IndirectSteps)


def _strip(target: InstructionSet, kind: type[_Steps]) -> Flow:
    """Interleave rows of adjacent columns in twos; where a column's elements are adjacent, transpose squares of pairs
    in registers; copy anything else, and an odd last k, element by element."""
    em = _flow(target)
    steps = kind(em)
    count = em.value("lshr i64 %k, 1")
    vectors, other, squares, elements, finish = (
        em.new_label(n) for n in ("vector", "other", "square", "each", "finish")
    )
    full = em.test("eq", "%columns", em.lanes)
    adjacent = steps.adjacent()
    em.branch(adjacent if em.masked_loads else em.both(adjacent, full), vectors, other)

    em.start(vectors)
    mask = em.first_lanes("%columns") if em.masked_loads else ""
    with em.loop(0, count, 1) as p:
        k = em.mul(p, 2)
        rows = [_half_vector(em, moved(em, steps.row(x), steps.columns[0]), mask) for x in (k, em.add(k, 1))]
        em.store(_interleaved(em, *rows), em.at("%to", em.mul(p, "%width")), _words(em))
    em.jump(finish)

    em.start(other)
    em.branch(steps.paired(), squares, elements)

    em.start(squares)
    last = em.sub(count, em.lanes)
    # The last square is moved back to end with the pairs: it writes some rows twice with the same elements.
    with em.loop(0, count, em.lanes) as p:
        at = em.minimum(p, last)
        source, place = steps.row(em.mul(at, 2)), em.at("%to", em.mul(at, "%width"))
        for row in transposed(em, [moved(em, source, column) for column in steps.columns]):
            em.store(row, place)
            place = em.at(place, "%width")
    em.jump(finish)

    em.start(elements)
    with em.loop(0, count, 1) as p:
        k, place = em.mul(p, 2), em.at("%to", em.mul(p, "%width"))
        sources = [steps.row(k), steps.row(em.add(k, 1))]
        for c, column in enumerate(steps.columns):
            for half, source in enumerate(sources):
                em.store(em.load(moved(em, source, column), "i16"), moved(em, em.at(place, c), half), "i16")
    em.jump(finish)

    em.start(finish)
    with em.when(_is_odd(em, "%k")):
        source, place = steps.row(em.sub("%k", 1)), em.at("%to", em.mul(count, "%width"))
        for c, column in enumerate(steps.columns):
            alone = em.load(moved(em, source, column), "i16")
            em.store(em.value(f"zext i16 {alone} to i32"), em.at(place, c), "i32")
    em.effect("ret void")
    return em


def panels(target: InstructionSet) -> Flow:
    """Emit ``panels(from, k_step, c_step, k, columns, to)``, which copies a block of B to panels of a tile's width.

    Rows of adjacent columns are copied two whole rows at a time, so that memory is read in order.
    """
    em = _flow(target)
    width = target.panel_columns(em.dtype)
    count = em.value(f"lshr i64 {em.add('%k', 1)}, 1")
    whole = em.mul(em.value(f"sdiv i64 %columns, {width}"), width)
    whole = em.select(em.test("eq", "%c_step", 1), whole, 0)
    with em.loop(0, count, 1) as p:
        k = em.mul(p, 2)
        row = moved(em, "%from", em.mul(k, "%k_step"))
        follows = em.test("slt", em.add(k, 1), "%k")
        following = moved(em, row, em.select(follows, "%k_step", 0))  # for an odd last k the row itself: not used
        base = em.at("%to", em.mul(p, width))
        with em.loop(0, whole, width) as column:
            place = em.at(base, em.mul(column, count))
            for v in range(target.tile_vectors):
                at = em.add(column, v * em.lanes)
                first, second = (_half_vector(em, moved(em, r, at), "") for r in (row, following))
                second = em.select(follows, second, "zeroinitializer", _half_kind(em))
                em.store(_interleaved(em, first, second), em.at(place, v * em.lanes), _words(em))

    with em.loop(whole, "%columns", width) as first_column:
        panel_columns = em.minimum(width, em.sub("%columns", first_column))
        base = em.at("%to", em.mul(first_column, count))
        with em.loop(0, panel_columns, em.lanes) as column:
            source = moved(em, "%from", em.mul(em.add(first_column, column), "%c_step"))
            few = em.minimum(em.lanes, em.sub(panel_columns, column))
            em.effect(
                f"call void @pack_micro_panel(ptr {source}, i64 %k_step, i64 %c_step, i64 %k, i64 {few}, "
                f"ptr {em.at(base, column)}, i64 {width})"
            )
    em.effect("ret void")
    return em


def paired(target: InstructionSet) -> Flow:
    """Emit ``paired(ks, k)``, true if each pair of entries of a table, of even length k, is n, n + 1."""
    em = Flow(target, float32)
    head, body, good, bad = (em.new_label(n) for n in ("head", "body", "good", "bad"))
    em.jump(head)
    em.start(head)
    k = em.phi("i64", ("0", "entry"))
    em.branch(em.test("slt", k, "%k"), body, good)
    em.start(body)
    distance = em.sub(em.indirect("%ks", em.add(k, 1)), em.indirect("%ks", k))
    em.add_edge(k, em.add(k, 2), body)
    em.branch(em.test("eq", distance, 1), head, bad)
    for label, answer in ((good, "true"), (bad, "false")):
        em.start(label)
        em.effect(f"ret i1 {answer}")
    return em


def _flow(target: InstructionSet) -> Flow:
    """Return an emitter whose elements are pairs, with any alignment."""
    em = Flow(target, float32)
    em.alignment = bfloat16.itemsize
    return em


def _is_odd(em: Flow, number: str) -> str:
    return em.test("ne", em.value(f"and i64 {number}, 1"), 0)


def _half_kind(em: Flow) -> str:
    """Return the bits of as many bfloat16 as there are lanes of float32."""
    return f"<{em.lanes} x i16>"


def _words(em: Flow) -> str:
    return f"<{2 * em.lanes} x i16>"


def _half_vector(em: Flow, address: str, mask: str) -> str:
    """Return the first lanes of a row; with a mask, zeros beyond it."""
    kind = _half_kind(em)
    if not mask:
        return em.load(address, kind)
    arguments = (("ptr", address), ("i32", "2"), (em.mask_kind, mask), (kind, "zeroinitializer"))
    return em.intrinsic(f"llvm.masked.load.v{em.lanes}i16.p0", kind, *arguments)


def _interleaved(em: Flow, first: str, second: str) -> str:
    """Return the elements of two rows, interleaved."""
    kind = _half_kind(em)
    order = ", ".join(f"i32 {lane + half * em.lanes}" for lane in range(em.lanes) for half in (0, 1))
    return em.value(f"shufflevector {kind} {first}, {kind} {second}, <{2 * em.lanes} x i32> <{order}>")
