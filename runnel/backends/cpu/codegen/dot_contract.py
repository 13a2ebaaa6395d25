"""The contraction of bfloat16 matrices on the processors that have dot instructions: float32 sums of exact products.

    void rn_contract_bf16(…)          the parameters of rn_contract_f32 (``contract``); ``hints`` is not called

A and B hold bfloat16 and their strides count those, C holds float32. For i0 ≤ i < i1 and j0 ≤ j < j1 it stores
C[i, j] = Σ_k A[i, k]·B[k, j]. For each K_BLOCK steps of k an element has one chain over ascending pairs of k, the last
one alone if k is odd, the first of which starts at 0 or, to ``resume``, at C[i, j]; the chains' results are combined
pairwise (``k_blocks``). The rounding of a pair is the processor's (docs/internals/kernels.md, "Products of
bfloat16"); it is a function of values alone, so strides, blocks and paths do not change a bit.

B is packed into panels of pairs, an odd last k paired with zero, unless ``b_panel`` says that it is prepacked. A is
read in place if pairs of k are adjacent in it and k is even: by strides, or through its offset tables, when each two
entries of the table for k are neighbors; otherwise it is packed, too.
"""

from __future__ import annotations

from runnel.backends import context
from runnel.backends.cpu.codegen import contract, dot_tiles, k_blocks, tiles
from runnel.backends.cpu.codegen.dot_tiles import moved
from runnel.backends.cpu.codegen.text import METADATA, Flow
from runnel.backends.cpu.target import InstructionSet
from runnel.core.dtypes import bfloat16, float32
from runnel.core.errors import DTypeError
from runnel.core.records import record
from runnel.loops.ir import TILE_K, TILE_ROWS

SYMBOL = "rn_contract_bf16"
_WORD = 4  # bytes of an entry of an offset table, and of a pair
_K_GRAIN = 8  # runs of k end at multiples of it, and so between pairs
# LLVM's models of Arm's cores know nothing of bfdot: with their tuning the largest tiles do not stay in registers.
_ATTRIBUTES = 'nounwind "tune-cpu"="generic"'


@record
class DotBlocking:
    """The sizes of blocks in elements: as many bytes as for float32 (``contract``)."""

    columns: int  # of a block of B: with ``k`` rows it stays in the second-level cache
    columns_in_place: int  # where A is read in place
    rows: int = TILE_ROWS  # of a block of C, a multiple of every target's tile_rows
    k: int = 2 * TILE_K
    k_in_place: int = 4 * TILE_K


def blocking_of(cache: int) -> DotBlocking:
    """Return the blocks on a core with ``cache`` bytes of second-level cache."""
    whole, in_place = (contract.widest_rows(cache) // part for part in (4, 16))
    return DotBlocking(whole, in_place)


def emit_module(target: InstructionSet, blocking: DotBlocking | None = None) -> str:
    """Return the LLVM module with the one exported function :data:`SYMBOL`."""
    if not target.dot:
        raise DTypeError(f"[contract] the target {target.name} has no dot instructions for bfloat16.")
    bodies: dict[str, Flow] = {}
    for tile in tiles.family(target):
        bodies[f"internal void @{tile.name}({tiles.PARAMETERS})"] = dot_tiles.emit(tile, target)
    if not target.has_masks:
        bodies[f"internal void @tail({tiles.TAIL})"] = tiles.tail(target, float32)
    bodies[f"internal void @pack_micro_panel({dot_tiles.MICRO_PANEL})"] = dot_tiles.strip(target)
    bodies[f"internal void @indirect_micro_panel({dot_tiles.INDIRECT_MICRO_PANEL})"] = dot_tiles.indirect_micro_panel(
        target
    )
    bodies[f"internal void @panels({dot_tiles.PANELS})"] = dot_tiles.panels(target)
    bodies["internal i1 @paired(ptr %ks, i64 %k)"] = dot_tiles.paired(target)
    driver = _Driver(target, blocking or blocking_of(context.current().cache))
    bodies[f"internal void @{contract.SHORT}({contract.PARAMETERS})"] = driver.body()
    bodies[f"internal void @meet({k_blocks.MEET})"] = k_blocks.meet(target, float32)
    whole = k_blocks.Long(contract.SHORT, contract.PARAMETERS, bfloat16, contract.PACKED)
    bodies[f"void @{SYMBOL}({contract.PARAMETERS})"] = whole.body(target, float32)
    declarations = sorted(set().union(*(body.declarations for body in bodies.values())))
    functions = [body.define(signature, _ATTRIBUTES) for signature, body in bodies.items()]
    return "\n\n".join([*declarations, tiles.table(target), *functions, METADATA])


class _Driver:
    """The exported function under construction. Panels are addressed in pairs, operands in bfloat16."""

    def __init__(self, target: InstructionSet, blocks: DotBlocking) -> None:
        self.em = Flow(target, float32)
        self.blocks = blocks
        self.tile_rows = target.tile_rows
        self.width = target.panel_columns(float32)
        self.a_width = -(-target.tile_rows // self.em.lanes) * self.em.lanes  # rows of a packed tile of A, padded
        self.columns, self.columns_in_place = (
            max(n // self.width, 1) * self.width for n in (blocks.columns, blocks.columns_in_place)
        )
        self.a_size = blocks.rows // target.tile_rows * (blocks.k // 2) * self.a_width
        panels = max(self.columns * blocks.k, self.columns_in_place * blocks.k_in_place) * bfloat16.itemsize
        if self.a_size * _WORD + panels > contract.PACKED:
            raise ValueError(f"{blocks} needs more scratch memory than {contract.PACKED} bytes.")
        if blocks.rows % target.tile_rows or any(k % _K_GRAIN for k in (blocks.k, blocks.k_in_place)):
            raise ValueError(f"{blocks} must hold whole tiles of {target.tile_rows} rows and k in steps of {_K_GRAIN}.")
        if target.wide_panel_rows:
            raise ValueError(f"The target {target.name} has wider panels, and dot tiles none.")

    def body(self) -> Flow:
        """Return the driver for k of one block."""
        em, blocks = self.em, self.blocks
        some, none = em.new_label("some"), em.new_label("none")
        m, n = em.sub("%i1", "%i0"), em.sub("%j1", "%j0")
        em.branch(em.both(em.test("sgt", m, 0), em.test("sgt", n, 0)), some, none)
        em.start(none)
        em.effect("ret void")
        em.start(some)

        self._choose()
        self.in_whole = em.sub(1, "%tile")
        k_step = k_blocks.even(em, "%k", em.select(self.packs_a, blocks.k, blocks.k_in_place), _K_GRAIN)
        i_step = k_blocks.even(em, m, blocks.rows, self.tile_rows)
        j_step = em.select(self.packs_a, self.columns, self.columns_in_place)
        self.packed_a = em.value("load ptr, ptr " + em.value("getelementptr i64, ptr %thread, i64 1"))
        packed_b = em.at(self.packed_a, self.a_size)
        at_least_once = em.select(em.test("sgt", "%k", 1), "%k", 1)  # k = 0: the tiles store zeros
        last_k = em.sub("%k", k_step)

        in_panels = em.test("ne", "%b_panel", 0)
        wants_panels = em.value(f"xor i1 {in_panels}, true")
        with em.loop("%j0", "%j1", j_step) as j:
            block = k_blocks.partition_columns(em, em.minimum(j_step, em.sub("%j1", j)), "false")
            with em.loop(0, at_least_once, k_step) as p:
                depth = em.minimum(k_step, em.sub("%k", p))
                source = moved(em, "%B", em.mul(p, "%b_k"), em.mul(j, "%b_col"))
                with em.when(wants_panels):
                    em.effect(
                        f"call void @panels(ptr {source}, i64 %b_k, i64 %b_col, i64 {depth}, i64 {block.columns}, "
                        f"ptr {packed_b})"
                    )
                prepacked = moved(em, "%B", em.mul(em.divide(j, self.width), "%b_panel"), em.mul(p, self.width))
                b = em.select(in_panels, prepacked, packed_b, "ptr")
                count = em.value(f"lshr i64 {em.add(depth, 1)}, 1")
                b_next = em.select(in_panels, "%b_panel", em.mul(count, 2 * self.width))
                with em.loop("%i0", "%i1", i_step) as i:
                    height = em.minimum(i_step, em.sub("%i1", i))
                    self._block(i, height, j, block, p, depth, b, b_next)
                    contract.finish(em, em.test("sge", p, last_k), (i, height), (j, block.columns))
        em.effect("ret void")
        return em

    def _choose(self) -> None:
        """Choose whether to pack A, from its strides or offset tables only; the choice does not affect the result."""
        em = self.em
        self.indirect = em.value("icmp ne ptr %a_rows, null")
        checked_k = em.select(self.indirect, em.value("and i64 %k, -2"), 0)
        by_tables = em.value(f"call i1 @paired(ptr %a_ks, i64 {checked_k})")
        adjacent = em.select(self.indirect, by_tables, em.test("eq", "%a_k", 1), "i1")
        even = em.test("eq", em.value("and i64 %k, 1"), 0)
        in_place = em.both(adjacent, even)
        self.packs_a = em.value(f"xor i1 {in_place}, true")
        self.indirect_in_place = em.both(self.indirect, in_place)
        self.strided = em.value(f"xor i1 {self.indirect}, true")
        self.strided_in_place = em.both(self.strided, in_place)

    def _block(
        self, i: str, height: str, j: str, block: k_blocks.ColumnPartition, p: str, depth: str, b: str, b_next: str
    ) -> None:
        """Emit all tiles of the block of C of ``height`` rows from i, and of its columns from j, for ``depth`` k from
        p."""
        em = self.em
        row_tiles = k_blocks.partition_rows(em, height, self.tile_rows)
        count = em.value(f"lshr i64 {em.add(depth, 1)}, 1")
        a_tile = em.mul(count, self.a_width)
        with em.when(self.packs_a), em.loop(0, row_tiles.count, 1) as t:
            rows, first = row_tiles.tile(em, t)
            self._pack(em.add(i, first), rows, p, depth, em.at(self.packed_a, em.mul(t, a_tile)))
        lists = [em.value(f"ptrtoint ptr {x} to i64") for x in ("%a_rows", "%a_ks")]
        a_k = em.select(self.indirect_in_place, em.add(lists[1], em.mul(p, _WORD)), 2)
        a_k = em.select(self.packs_a, 2 * self.a_width, a_k)

        with em.loop(0, block.count, 1) as q:
            column = em.mul(q, self.width)
            panel = moved(em, b, em.mul(q, b_next))
            panel_columns = em.minimum(em.sub(block.columns, column), self.width)
            vectors = em.ceil_div(panel_columns, em.lanes)
            lanes = em.sub(panel_columns, em.mul(em.sub(vectors, 1), em.lanes))
            kernels = tiles.position(em, panel_columns, vectors, self.indirect_in_place)
            corner = em.at("%C", em.mul(em.mul(i, self.in_whole), "%c_row"), em.add(em.mul(j, self.in_whole), column))
            with em.loop(0, row_tiles.count, 1) as t:
                rows, first = row_tiles.tile(em, t)
                row = em.add(i, first)
                offset = em.select(self.strided_in_place, em.add(p, em.mul(row, "%a_row")), 0)
                packed = em.at(self.packed_a, em.mul(t, a_tile))
                a = em.select(self.packs_a, packed, moved(em, "%A", offset), "ptr")
                a_row = em.select(self.indirect_in_place, em.add(lists[0], em.mul(row, _WORD)), "%a_row")
                c = em.at(corner, em.mul(first, "%c_row"))
                slot = em.value(f"getelementptr ptr, ptr @tiles, i64 {em.sub(em.add(kernels, rows), 1)}")
                em.effect(
                    f"call void {em.value(f'load ptr, ptr {slot}')}(ptr {a}, ptr {panel}, "
                    f"ptr {c}, i64 {em.select(self.packs_a, 2, a_row)}, i64 {a_k}, "
                    f"i64 {self.width}, i64 %c_row, i64 {count}, i64 {lanes}, i64 {em.value(f'or i64 {p}, %resume')})"
                )

    def _pack(self, row: str, rows: str, p: str, depth: str, place: str) -> None:
        """Pack a tile's ``rows`` of A from ``row`` on into a panel."""
        em = self.em
        with em.loop(0, rows, em.lanes) as r:
            few = em.minimum(em.lanes, em.sub(rows, r))
            here, first = em.at(place, r), em.add(row, r)
            with em.when(self.strided):
                source = moved(em, "%A", em.mul(p, "%a_k"), em.mul(first, "%a_row"))
                em.effect(
                    f"call void @pack_micro_panel(ptr {source}, i64 %a_k, i64 %a_row, i64 {depth}, i64 {few}, "
                    f"ptr {here}, i64 {self.a_width})"
                )
            with em.when(self.indirect):
                ks, cs = (
                    em.value(f"getelementptr i32, ptr {x}, i64 {at}") for x, at in (("%a_ks", p), ("%a_rows", first))
                )
                em.effect(
                    f"call void @indirect_micro_panel(ptr %A, ptr {ks}, ptr {cs}, i64 {depth}, i64 {few}, "
                    f"ptr {here}, i64 {self.a_width})"
                )
