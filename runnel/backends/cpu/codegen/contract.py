"""The contraction: one function for each float dtype that multiplies any two matrices of any extents and strides.

    void rn_contract_f32(ptr A, ptr B, ptr C, i64 a_row, i64 a_k, i64 b_k, i64 b_col, i64 c_row, i64 k,
                         i64 i0, i64 i1, i64 j0, i64 j1, ptr epilogue, ptr thread, ptr args, i64 tile, i64 resume,
                         ptr a_rows, ptr a_ks, i64 b_panel)

A, B and C point at element [0, 0] (if ``tile`` is 1, C points at memory for one block, where every block begins);
strides count elements, C's columns are adjacent. For i0 ≤ i < i1 and j0 ≤ j < j1 it stores C[i, j] =
Σ_k A[i, k]·B[k, j]. For each K_BLOCK steps of k an element has one chain of fused multiply-adds over ascending k, the
first of which starts at 0 or, to ``resume``, at C[i, j]; the chains' results are combined pairwise (``k_blocks``). Its
bits depend on k and the operands' values alone, not on strides, blocks or path. Unless ``a_rows`` is null, A is
*indirect*: A[i, k] is element a_rows[i] + a_ks[k] of A, and both offset tables hold i32. Unless ``b_panel`` is 0, B is
*packed* in panels already: each holds the columns from a multiple of the target's panel width on, the last one padded,
and panels are ``b_panel`` elements apart; then j0 is such a multiple. When a block of C is done,
``epilogue(thread, args, i0', i1', j0', j1')`` is called for it, unless null; the blocks cover the whole once. Panels
and pending sums use at most SCRATCH bytes of the thread's scratch memory (``docs/internals/design.md``, "The kernel
ABI").

This file has the driver for k of one block: the loops over blocks, and the choice between reading operands in place and
packing them. The loops follow Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
The rows of a block are partitioned evenly into tiles, as in LIBXSMM (Heinecke et al., 2016), so that no tile is much
smaller than the others.
"""

from __future__ import annotations

from runnel.backends import context
from runnel.backends.cpu.codegen import k_blocks, tiles
from runnel.backends.cpu.codegen.text import METADATA, Flow
from runnel.backends.cpu.target import InstructionSet
from runnel.backends.host import layout
from runnel.core.dtypes import DType
from runnel.core.errors import DTypeError
from runnel.core.records import record
from runnel.loops.ir import TILE_BYTES, TILE_K, TILE_ROWS

SCRATCH = layout.THREAD_SCRATCH
PACKED = SCRATCH - k_blocks.PARTIALS  # for panels
SHORT = "product"  # the driver
SYMBOLS = {"float32": "rn_contract_f32", "float64": "rn_contract_f64"}
_CACHE_LINE = 64
_WORD = 4  # bytes of an entry of an offset table
_K_GRAIN = 8  # runs of k end at multiples of it, so that only whole squares are transposed
PARAMETERS = (
    "ptr %A, ptr %B, ptr %C, i64 %a_row, i64 %a_k, i64 %b_k, i64 %b_col, i64 %c_row, i64 %k, "
    "i64 %i0, i64 %i1, i64 %j0, i64 %j1, ptr %epilogue, ptr %thread, ptr %args, i64 %tile, i64 %resume, "
    "ptr %a_rows, ptr %a_ks, i64 %b_panel"
)


@record
class Blocking:
    """The sizes of blocks in elements: measured with a second-level cache of 512 KiB (``benchmarks/contract.py``), and
    scaled to others."""

    columns: int  # of a block of B: with ``k`` rows it stays in the second-level cache
    columns_few: int  # where rows of A are read in place from a cache, so that reading them again is cheap
    columns_panels: int  # of a prepacked B
    small_a: int  # bytes of an A that stays in the caches
    small_a_panels: int  # the same where a prepacked B is streamed through them
    crowded: int  # bytes between a B's first and last row if that step were its largest power-of-two divisor
    rows: int = TILE_ROWS  # of a block of C, a multiple of every target's tile_rows
    k: int = TILE_K  # of a packed panel: a panel and a tile of A stay in the first-level cache
    k_few: int = 512  # the same for a block of few columns: fewer loads and stores of the sums
    k_panels: int = 768  # of a prepacked B
    k_in_place: int = 2048
    k_crowded: int = 256  # of a B in place whose rows are on separate pages
    pack_k: int = 16  # the least k to pack for
    pack_rows: int = 192  # the least rows to pack a B with adjacent columns for
    pack_rows_crowded: int = 18  # the same if its rows compete for few sets of the second-level cache
    pack_a_columns: int = 192  # the least columns to pack an A for whose rows are not adjacent in k
    pack_a_k: int = 48
    k_indirect: int = 128  # of an indirect A in sums longer than
    long_k: int = 4096  # this, where each k has a separate cache line in A: gradients of convolution weights


def blocking_of(dtype: DType, cache: int) -> Blocking:
    """Return the blocks of products of ``dtype`` on a core with ``cache`` bytes of second-level cache."""
    all_, few, panels = (widest_rows(cache) // part // dtype.itemsize for part in (1, 4, 8))
    beside_panels = max(cache // 2, 1 << 20)
    return Blocking(all_, few, panels, small_a=2 * cache, small_a_panels=beside_panels, crowded=cache // 2)


def widest_rows(cache: int) -> int:
    """Return bytes of a row of a block of B such that TILE_K rows stay in the cache."""
    return min(TILE_BYTES, cache // TILE_K)


def packs_columns(m: int, k: int, b_k: int, b_col: int, dtype: DType) -> bool:
    """Return whether the driver would pack B for a product of ``m`` rows on a machine with masks, as
    :meth:`_Driver._choose` decides at run time: a hint for splitting work that does not affect results."""
    blocks = blocking_of(dtype, context.current().cache)
    power = b_k & -b_k
    crowded = power * dtype.itemsize > _CACHE_LINE and power * k >= blocks.crowded // dtype.itemsize
    enough = m >= blocks.pack_rows or (crowded and m >= blocks.pack_rows_crowded)
    return b_col != 1 or (k >= blocks.pack_k and enough)


def emit_module(dtype: DType, target: InstructionSet, blocking: Blocking | None = None) -> str:
    """Return the LLVM module of ``dtype``'s contraction: one exported function, :data:`SYMBOLS`."""
    if dtype.name not in SYMBOLS:
        raise DTypeError(f"[contract] multiplies matrices of {', '.join(SYMBOLS)}; received {dtype.name}.")
    blocks = blocking if blocking is not None else blocking_of(dtype, context.current().cache)
    bodies: dict[str, Flow] = {}
    for tile in tiles.family(target):
        bodies[f"internal void @{tile.name}({tiles.PARAMETERS})"] = tiles.emit(tile, target, dtype)
    if not target.has_masks:
        bodies[f"internal void @tail({tiles.TAIL})"] = tiles.tail(target, dtype)
    bodies[f"internal void @pack_micro_panel({tiles.MICRO_PANEL})"] = tiles.strip(target, dtype)
    bodies[f"internal void @strips({tiles.STRIPS})"] = tiles.strips(target, dtype)
    bodies[f"internal void @panels({tiles.PANELS})"] = tiles.panels(target, dtype)
    bodies[f"internal void @{SHORT}({PARAMETERS})"] = _Driver(target, dtype, blocks).body()
    bodies[f"internal void @meet({k_blocks.MEET})"] = k_blocks.meet(target, dtype)
    whole = k_blocks.Long(SHORT, PARAMETERS, dtype, PACKED)
    bodies[f"void @{SYMBOLS[dtype.name]}({PARAMETERS})"] = whole.body(target, dtype)
    declarations = sorted(set().union(*(body.declarations for body in bodies.values())))
    functions = [body.define(signature) for signature, body in bodies.items()]
    return "\n\n".join([*declarations, tiles.table(target), *functions, METADATA])


def finish(em: Flow, is_last: str, rows: tuple[str, str], columns: tuple[str, str]) -> None:
    """Call the epilogue, where there is one, for a block of the result after its last terms; ``rows`` and ``columns``
    are the first of each and their number."""
    (i, height), (j, width) = rows, columns
    with em.when(em.both(em.value("icmp ne ptr %epilogue, null"), is_last)):
        em.effect(
            f"call void %epilogue(ptr %thread, ptr %args, i64 {i}, i64 {em.add(i, height)}, "
            f"i64 {j}, i64 {em.add(j, width)})"
        )


class _Driver:
    """The exported function under construction."""

    def __init__(self, target: InstructionSet, dtype: DType, blocks: Blocking) -> None:
        self.em = Flow(target, dtype)
        self.blocks = blocks
        self.tile_rows = target.tile_rows
        self.width = target.panel_columns(dtype)
        self.a_width = -(-target.tile_rows // self.em.lanes) * self.em.lanes  # rows of a packed tile of A, padded
        columns = (blocks.columns, blocks.columns_few, blocks.columns_panels)
        self.columns, self.columns_few, self.columns_panels = (max(n // self.width, 1) * self.width for n in columns)
        self.wide_panel_rows = target.wide_panel_rows
        a_size = -(-blocks.rows // target.tile_rows) * blocks.k * self.a_width
        if (a_size + max(self.columns * blocks.k, self.columns_few * blocks.k_few)) * dtype.itemsize > PACKED:
            raise ValueError(f"{blocks} needs more scratch memory than {PACKED} bytes.")
        steps = (blocks.k, blocks.k_in_place, blocks.k_crowded, blocks.k_indirect, blocks.k_few, blocks.k_panels)
        if blocks.rows % target.tile_rows or any(k % _K_GRAIN for k in steps):
            raise ValueError(f"{blocks} must hold whole tiles of {target.tile_rows} rows and k in steps of {_K_GRAIN}.")
        self.a_size = a_size

    def body(self) -> Flow:
        """Return the driver."""
        em, blocks = self.em, self.blocks
        some, none = em.new_label("some"), em.new_label("none")
        m, n = em.sub("%i1", "%i0"), em.sub("%j1", "%j0")
        em.branch(em.both(em.test("sgt", m, 0), em.test("sgt", n, 0)), some, none)
        em.start(none)
        em.effect("ret void")
        em.start(some)

        self.indirect = em.value("icmp ne ptr %a_rows, null")
        self.in_panels = em.test("ne", "%b_panel", 0)
        self.in_rows = em.value(f"xor i1 {self.in_panels}, true")
        self._choose(m, n)
        self.in_whole = em.sub(1, "%tile")
        in_place = em.select(self._crowds("%b_k"), blocks.k_crowded, blocks.k_in_place)
        limit = em.select(self.in_panels, blocks.small_a_panels, blocks.small_a)
        small_a = em.test("sle", em.mul(em.mul(m, "%k"), em.dtype.itemsize), limit)
        along_k = em.either(em.test("eq", "%a_k", 1), self.indirect)  # else a tile of A has a cache line for each k
        few = em.both(small_a, along_k)
        packed = em.select(few, blocks.k_few, blocks.k)
        k_limit = em.select(self.in_panels, blocks.k_panels, in_place)
        k_limit = em.select(em.either(self.packs_a, self.packs_b), packed, k_limit)
        apart = em.both(self.indirect, em.test("sgt", "%k", blocks.long_k))
        k_limit = em.select(apart, em.minimum(k_limit, blocks.k_indirect), k_limit)
        k_step = k_blocks.even(em, "%k", k_limit, _K_GRAIN)
        i_step = k_blocks.even(em, m, blocks.rows, self.tile_rows)
        self.packed_a = em.value("load ptr, ptr " + em.value("getelementptr i64, ptr %thread, i64 1"))
        packed_b = em.at(self.packed_a, self.a_size)
        self._address_a()
        at_least_once = em.select(em.test("sgt", "%k", 1), "%k", 1)  # k = 0: the tiles store zeros
        last_k = em.sub("%k", k_step)
        whole = em.test("eq", em.value(f"and i64 {n}, {em.lanes - 1}"), 0)  # else a vector would reach beyond B
        may_widen = em.both(em.either(self.packs_b, whole), em.value(f"xor i1 {self.packs_a}, true"))
        may_widen = em.both(may_widen, self.in_rows)
        in_place_next = em.select(self.in_panels, "%b_panel", self.width)

        j_step = em.select(em.both(self.packs_b, few), self.columns_few, self.columns)
        j_step = em.select(em.both(self.in_panels, few), self.columns_panels, j_step)
        with em.loop("%j0", "%j1", j_step) as j:
            block = k_blocks.partition_columns(em, em.minimum(j_step, em.sub("%j1", j)), may_widen)
            with em.loop(0, at_least_once, k_step) as p:
                depth = em.minimum(k_step, em.sub("%k", p))
                column = em.select(self.in_panels, em.mul(em.divide(j, self.width), "%b_panel"), em.mul(j, "%b_col"))
                in_place = em.at("%B", em.mul(p, "%b_k"), column)
                with em.when(self.packs_b):
                    em.effect(
                        f"call void @panels(ptr {in_place}, i64 %b_k, i64 %b_col, i64 {depth}, i64 {block.columns}, "
                        f"ptr {packed_b}, i64 {block.last})"
                    )
                b = em.select(self.packs_b, packed_b, in_place, "ptr")
                b_next = em.select(self.packs_b, em.mul(depth, self.width), in_place_next)
                with em.loop("%i0", "%i1", i_step) as i:
                    height = em.minimum(i_step, em.sub("%i1", i))
                    self._block(i, height, j, block, p, depth, b, b_next)
                    finish(em, em.test("sge", p, last_k), (i, height), (j, block.columns))
        em.effect("ret void")
        return em

    def _choose(self, m: str, n: str) -> None:
        """Choose which operands to pack, from extents and strides only; the choice does not affect the result."""
        em, blocks = self.em, self.blocks
        often = em.test("sge", m, blocks.pack_rows)
        crowded = em.both(em.test("sge", m, blocks.pack_rows_crowded), self._crowds("%b_k"))
        deep = em.test("sge", "%k", blocks.pack_k)
        self.packs_b = em.either(em.test("ne", "%b_col", 1), em.both(deep, em.either(often, crowded)))
        if not em.masked_loads:  # only a padded panel can be read beyond its last column
            ragged = em.test("ne", em.value(f"and i64 {n}, {em.lanes - 1}"), 0)
            self.packs_b = em.either(self.packs_b, ragged)
        self.packs_b = em.both(self.packs_b, self.in_rows)
        wide = em.test("sge", n, blocks.pack_a_columns)
        deep = em.test("sge", "%k", blocks.pack_a_k)
        stepping = em.both(em.test("ne", "%a_k", 1), em.value(f"xor i1 {self.indirect}, true"))
        self.packs_a = em.both(stepping, em.both(wide, deep))

    def _address_a(self) -> None:
        """Set the arguments of tiles for A: for an indirect one in place, the addresses of its offset tables instead of
        strides."""
        em = self.em
        lists = [em.value(f"ptrtoint ptr {x} to i64") for x in ("%a_rows", "%a_ks")]
        self.a_row = em.select(self.packs_a, 1, em.select(self.indirect, lists[0], "%a_row"))
        self.a_k = em.select(self.packs_a, self.a_width, em.select(self.indirect, lists[1], "%a_k"))
        self.row_words = em.select(self.indirect, _WORD, 0)
        self.row_step = em.select(self.indirect, 0, "%a_row")
        self.k_step = em.select(self.indirect, 0, "%a_k")

    def _crowds(self, stride: str) -> str:
        """Return whether k rows ``stride`` elements apart compete for few cache sets, which are chosen by low address
        bits."""
        em = self.em
        power = em.value(f"and i64 {stride}, {em.sub(0, stride)}")
        far = em.test("sge", em.mul(power, "%k"), self.blocks.crowded // em.dtype.itemsize)
        return em.both(far, em.test("sgt", power, _CACHE_LINE // em.dtype.itemsize))  # odd numbers of lines visit all

    def _block(
        self, i: str, height: str, j: str, block: k_blocks.ColumnPartition, p: str, depth: str, b: str, b_next: str
    ) -> None:
        """Emit all tiles of the block of C of ``height`` rows from i, and of its columns from j, for ``depth`` k from
        p."""
        em = self.em
        row_tiles = k_blocks.partition_rows(em, height, self.tile_rows)
        a = em.at("%A", em.mul(p, self.k_step), em.mul(i, self.row_step))
        a_tile = em.mul(depth, self.a_width)
        with em.when(self.packs_a):
            adjacent = em.both(em.test("eq", "%a_row", 1), em.test("sge", height, self.a_width))
            whole = em.add(em.divide(em.sub(height, self.a_width), self.tile_rows), 1)
            whole = em.select(adjacent, em.minimum(whole, row_tiles.count), 0)
            em.effect(
                f"call void @strips(ptr {a}, i64 %a_k, i64 {depth}, i64 {whole}, i64 {row_tiles.share}, "
                f"i64 {row_tiles.larger}, ptr {self.packed_a}, i64 {a_tile})"
            )
            with em.loop(whole, row_tiles.count, 1) as t:
                rows, first = row_tiles.tile(em, t)
                source, place = em.at(a, em.mul(first, "%a_row")), em.at(self.packed_a, em.mul(t, a_tile))
                with em.loop(0, rows, em.lanes) as r:
                    few = em.minimum(em.lanes, em.sub(rows, r))
                    em.effect(
                        f"call void @pack_micro_panel(ptr {em.at(source, em.mul(r, '%a_row'))}, i64 %a_k, i64 %a_row, "
                        f"i64 {depth}, i64 {few}, ptr {em.at(place, r)}, i64 {self.a_width})"
                    )
        a = em.select(self.packs_a, self.packed_a, a, "ptr")
        a_row = em.add(self.a_row, em.mul(i, self.row_words))
        a_k = em.add(self.a_k, em.mul(p, self.row_words))
        odd = (
            k_blocks.partition_rows_if(em, block.wide, height, self.wide_panel_rows, row_tiles)
            if self.wide_panel_rows
            else row_tiles
        )

        with em.loop(0, block.count, 1) as q:
            column = em.mul(q, self.width)
            panel = em.at(b, em.mul(q, b_next))
            is_last = em.test("eq", column, block.last)
            panel_columns = em.select(is_last, em.sub(block.columns, column), self.width)
            vectors = em.ceil_div(panel_columns, em.lanes)
            lanes = em.sub(panel_columns, em.mul(em.sub(vectors, 1), em.lanes))
            kernels = tiles.position(em, panel_columns, vectors, self.indirect)
            corner = em.at("%C", em.mul(em.mul(i, self.in_whole), "%c_row"), em.add(em.mul(j, self.in_whole), column))
            wide = em.both(is_last, block.wide)
            width = em.select(wide, self.width + em.lanes, self.width) if self.wide_panel_rows else str(self.width)
            b_stride = em.select(self.packs_b, width, "%b_k")
            here = row_tiles.or_else(em, wide, odd) if self.wide_panel_rows else row_tiles
            with em.loop(0, here.count, 1) as t:
                rows, first = here.tile(em, t)
                a_here = em.at(a, em.select(self.packs_a, em.mul(t, a_tile), em.mul(first, self.row_step)))
                c_here = em.at(corner, em.mul(first, "%c_row"))
                slot = em.value(f"getelementptr ptr, ptr @tiles, i64 {em.sub(em.add(kernels, rows), 1)}")
                em.effect(
                    f"call void {em.value(f'load ptr, ptr {slot}')}(ptr {a_here}, ptr {panel}, ptr {c_here}, "
                    f"i64 {em.add(a_row, em.mul(first, self.row_words))}, i64 {a_k}, i64 {b_stride}, i64 %c_row, "
                    f"i64 {depth}, i64 {lanes}, i64 {em.value(f'or i64 {p}, %resume')})"
                )
