"""Blocks of products: extents in even parts, rows in tiles, columns in panels, and long sums in blocks of k.

There is one product for each K_BLOCK steps of k, and the partial sums are combined pairwise. The exported functions of
``contract`` and ``dot_contract`` are generated here; both call a driver for short k with the same parameters. Of n
blocks the first h, where h is the largest power of two below n, are added to the rest: pending partial sums are in the
thread's scratch memory, one level for each bit that is set in the number of blocks before, and the first level is C
itself. This is pairwise summation (N. Higham, "The accuracy of floating point summation", 1993) of blocks. Blocks, and
therefore bits, depend only on k; the number of rows at a time depends on the memory.
"""

from __future__ import annotations

from typing import Final

from runnel.backends.cpu.codegen.text import Flow, Operand, element
from runnel.backends.cpu.target import InstructionSet
from runnel.core.dtypes import DType
from runnel.core.records import record
from runnel.loops.ir import K_BLOCK, TILE_BYTES


def even(em: Flow, extent: str, limit: Operand, multiple: int) -> str:
    """Return the size of a part when ``extent`` is cut into as few parts of at most ``limit`` as possible, rounded up
    to a ``multiple`` (of which ``limit`` is one); the last part gets what is left."""
    parts = em.ceil_div(em.select(em.test("sgt", extent, 1), extent, 1), limit)
    share = em.ceil_div(extent, parts)
    rounded = em.mul(em.ceil_div(share, multiple), multiple)
    return em.select(em.test("sgt", rounded, 1), rounded, 1)


@record
class RowPartition:
    """Rows partitioned evenly into ``count`` tiles: the first ``larger`` tiles have one more than ``share``."""

    count: str
    share: str
    larger: str

    def tile(self, em: Flow, t: str) -> tuple[str, str]:
        """Return the number of rows of tile ``t``, and its first."""
        rows = em.add(self.share, em.value(f"zext i1 {em.test('slt', t, self.larger)} to i64"))
        return rows, em.add(em.mul(t, self.share), em.minimum(t, self.larger))

    def or_else(self, em: Flow, condition: str, other: RowPartition) -> RowPartition:
        """Return ``other`` if ``condition`` holds, else self."""
        pairs = ((other.count, self.count), (other.share, self.share), (other.larger, self.larger))
        return RowPartition(*(em.select(condition, a, b) for a, b in pairs))


def partition_rows(em: Flow, height: str, limit: int) -> RowPartition:
    """Partition ``height`` rows into as few tiles of at most ``limit`` as possible."""
    count = em.ceil_div(height, limit)
    share = em.divide(height, count)
    return RowPartition(count, share, em.sub(height, em.mul(share, count)))


def partition_rows_if(em: Flow, condition: str, height: str, limit: int, otherwise: RowPartition) -> RowPartition:
    """Call :func:`partition_rows` if ``condition`` holds: a division costs a small product too much."""
    before, then, after = em.block, em.new_label("partition"), em.new_label("partitioned")
    em.branch(condition, then, after)
    em.start(then)
    row_tiles = partition_rows(em, height, limit)
    em.jump(after)
    em.start(after)
    pairs = (
        (row_tiles.count, otherwise.count),
        (row_tiles.share, otherwise.share),
        (row_tiles.larger, otherwise.larger),
    )
    return RowPartition(*(em.phi("i64", (a, then), (b, before)) for a, b in pairs))


@record
class ColumnPartition:
    """A block's columns, the number of panels, the start of the last one and whether it is wider by a vector."""

    columns: str
    count: str
    last: str
    wide: str


def partition_columns(em: Flow, columns: str, may_widen: str) -> ColumnPartition:
    """Partition ``columns`` into panels of the tiles' width. If ``may_widen``, and the target has tiles for it, the
    last one includes a vector that would be a panel by itself."""
    width = em.target.panel_columns(em.dtype)
    count, wide = em.ceil_div(columns, width), "false"
    if em.target.wide_panel_rows:
        vectors = em.ceil_div(columns, em.lanes)
        left = em.sub(vectors, em.mul(em.sub(count, 1), em.target.tile_vectors))
        alone = em.both(em.test("eq", left, 1), em.test("sgt", count, 1))
        wide = em.both(alone, may_widen)
        count = em.sub(count, em.value(f"zext i1 {wide} to i64"))
    return ColumnPartition(columns, count, em.mul(em.sub(count, 1), width), wide)


PARTIALS: Final = 2 << 20  # bytes of scratch for pending partial sums
MEET: Final = "ptr %lower, i64 %lower_row, ptr %upper, i64 %upper_row, i64 %rows, i64 %columns"
_LINE: Final = 64  # bytes of a cache line
_ENTRY: Final = 4  # bytes of an entry of an offset table


@record
class Long:
    """The exported function: ``short`` names the driver, ``parameters`` are the parameters of both, ``operand`` is the
    dtype of A and B, ``partials`` the offset in scratch memory of the partial sums."""

    short: str
    parameters: str
    operand: DType
    partials: int

    def body(self, target: InstructionSet, dtype: DType) -> Flow:
        """Return the function for sums of ``dtype``."""
        em = Flow(target, dtype)
        whole, blocks = em.new_label("whole"), em.new_label("blocks")
        em.branch(em.test("sle", "%k", K_BLOCK), whole, blocks)
        em.start(whole)
        em.effect(f"musttail call void @{self.short}({self.parameters})")
        em.effect("ret void")
        em.start(blocks)
        self._blocks(em, target)
        em.effect("ret void")
        return em

    def _blocks(self, em: Flow, target: InstructionSet) -> None:
        count = em.value(f"lshr i64 {em.add('%k', K_BLOCK - 1)}, {K_BLOCK.bit_length() - 1}")
        levels = em.sub(63, em.intrinsic("llvm.ctlz.i64", "i64", ("i64", count), ("i1", "true")))
        at_once = TILE_BYTES // em.dtype.itemsize
        row_bytes = _row_bytes(em, em.minimum(em.sub("%j1", "%j0"), at_once))
        room = em.divide(PARTIALS, em.mul(levels, row_bytes))
        room = em.mul(em.divide(room, target.tile_rows), target.tile_rows)
        i_step = even(em, em.sub("%i1", "%i0"), room, target.tile_rows)
        scratch = em.value("load ptr, ptr " + em.value("getelementptr i64, ptr %thread, i64 1"))
        waiting = em.value(f"getelementptr i8, ptr {scratch}, i64 {self.partials}")
        row = em.divide(row_bytes, em.dtype.itemsize)
        level = em.mul(i_step, row)
        indirect = em.value("icmp ne ptr %a_rows, null")
        b_step = em.select(em.test("ne", "%b_panel", 0), target.panel_columns(em.dtype), "%b_k")
        has_epilogue = em.value("icmp ne ptr %epilogue, null")
        with em.loop("%j0", "%j1", at_once) as j:
            j_end = em.minimum(em.add(j, at_once), "%j1")
            with em.loop("%i0", "%i1", i_step) as i:
                i_end = em.minimum(em.add(i, i_step), "%i1")
                sums = _Sums(em.at("%C", em.mul(i, "%c_row"), j), waiting, row, level)
                with em.loop(0, count, 1) as number:
                    begin = em.mul(number, K_BLOCK)
                    depth = em.minimum(em.sub("%k", begin), K_BLOCK)
                    at = em.intrinsic("llvm.ctpop.i64", "i64", ("i64", number))
                    place, c_row = sums.at(em, at)
                    c = em.at(place, em.sub(0, em.add(em.mul(i, c_row), j)))
                    entries = em.value(f"getelementptr i8, ptr %a_ks, i64 {em.mul(begin, _ENTRY)}")
                    ks = em.select(indirect, entries, "%a_ks", "ptr")
                    a, b = self._moved(em, "%A", em.mul(begin, "%a_k")), self._moved(em, "%B", em.mul(begin, b_step))
                    resumes = em.select(em.test("eq", number, 0), "%resume", 0)
                    em.effect(
                        f"call void @{self.short}(ptr {a}, ptr {b}, ptr {c}, i64 %a_row, i64 %a_k, i64 %b_k, "
                        f"i64 %b_col, i64 {c_row}, i64 {depth}, i64 {i}, i64 {i_end}, i64 {j}, i64 {j_end}, ptr null, "
                        f"ptr %thread, ptr %args, i64 0, i64 {resumes}, ptr %a_rows, ptr {ks}, i64 %b_panel)"
                    )
                    is_last = em.test("eq", number, em.sub(count, 1))
                    zeros = em.value(f"xor i64 {number}, -1")
                    full = em.intrinsic("llvm.cttz.i64", "i64", ("i64", zeros), ("i1", "false"))
                    with em.loop(0, em.select(is_last, at, full), 1) as merge:
                        upper, upper_row = sums.at(em, em.sub(at, merge))
                        lower, lower_row = sums.at(em, em.sub(em.sub(at, merge), 1))
                        em.effect(
                            f"call void @meet(ptr {lower}, i64 {lower_row}, ptr {upper}, i64 {upper_row}, "
                            f"i64 {em.sub(i_end, i)}, i64 {em.sub(j_end, j)})"
                        )
                with em.when(has_epilogue):
                    em.effect(
                        f"call void %epilogue(ptr %thread, ptr %args, i64 {i}, i64 {i_end}, i64 {j}, i64 {j_end})"
                    )

    def _moved(self, em: Flow, pointer: str, offset: str) -> str:
        return em.value(f"getelementptr {element(self.operand)}, ptr {pointer}, i64 {offset}")


@record
class _Sums:
    """Partial sums of a block of C: the first level is in C, at ``corner``; the others are ``level`` elements apart
    from ``waiting`` on, with rows of ``row`` elements."""

    corner: str
    waiting: str
    row: str
    level: str

    def at(self, em: Flow, number: str) -> tuple[str, str]:
        """Return the address of a level's sums, and the stride of their rows."""
        is_first = em.test("eq", number, 0)
        place = em.at(self.waiting, em.mul(em.sub(number, 1), self.level))
        return em.select(is_first, self.corner, place, "ptr"), em.select(is_first, "%c_row", self.row)


def _row_bytes(em: Flow, columns: str) -> str:
    """Return bytes of a row, an odd number of cache lines: rows an even number apart would compete for few
    cache sets."""
    lines = em.divide(em.add(em.mul(columns, em.dtype.itemsize), _LINE - 1), _LINE)
    return em.mul(em.value(f"or i64 {lines}, 1"), _LINE)


def meet(target: InstructionSet, dtype: DType) -> Flow:
    """Emit ``meet(lower, lower_row, upper, upper_row, rows, columns)``: ``lower`` += ``upper``."""
    em = Flow(target, dtype)
    whole = em.value(f"and i64 %columns, {-em.lanes}")
    rest = em.sub("%columns", whole)
    with em.loop(0, "%rows", 1) as row:
        lower = em.at("%lower", em.mul(row, "%lower_row"))
        upper = em.at("%upper", em.mul(row, "%upper_row"))
        with em.loop(0, whole, em.lanes) as column:
            place = em.at(lower, column)
            total = em.value(f"fadd {em.vector_kind} {em.load(place)}, {em.load(em.at(upper, column))}")
            em.store(total, place)
        if target.has_masks:
            mask, place = em.first_lanes(rest), em.at(lower, whole)
            parts = (em.masked_load(p, mask) for p in (place, em.at(upper, whole)))
            em.masked_store(em.value(f"fadd {em.vector_kind} {', '.join(parts)}"), place, mask)
        else:
            with em.loop(whole, "%columns", 1) as column:
                place = em.at(lower, column)
                parts = (em.load(p, em.scalar_kind) for p in (place, em.at(upper, column)))
                em.store(em.value(f"fadd {em.scalar_kind} {', '.join(parts)}"), place, em.scalar_kind)
    em.effect("ret void")
    return em
