"""The contraction's innermost kernels: a tile of C of 1…MR rows × 1…NV vectors stays in registers for a run of k.

``tile(A, B, C, a_row, a_k, b_k, c_row, k, lanes, resume)`` computes C[r, j] = start + Σ_k A[r, k]·B[k, j] for its rows
and columns; ``start`` is 0 or, to ``resume``, C[r, j] itself. Each element is one chain of fused multiply-adds in order
of k. A is read one element at a time, with any strides; B one vector at a time, with adjacent columns. An *edge* tile
has only ``lanes`` columns in its last vector: it writes no others and, where masked loads are cheap, reads no others
(elsewhere, and in the wider panel, B must be padded). In an *indirect* tile ``a_row`` and ``a_k`` are the addresses of
two offset tables of i32, and A[r, k] is element rows[r] + ks[k] of A: rows are looked up once, k in the loop, as in
Dukhan, "The Indirect Convolution Algorithm" (2019), but with one table for the kernel offsets instead of a pointer for
each pixel and kernel offset.

The register blocking is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008). The
driver looks the tiles up in one table, so that the tail of a block of rows runs in a kernel of exactly its size. On
targets with few registers, an odd number of vectors ends with a panel of one vector more (and fewer rows): one vector
alone would be too few independent chains.
"""

from __future__ import annotations

from collections.abc import Iterator

from runnel.backends.cpu.codegen.flow import Flow, Operand, rolled_branch
from runnel.backends.cpu.target import InstructionSet
from runnel.core.dtypes import DType
from runnel.core.records import record

PARAMETERS = "ptr %A, ptr %B, ptr %C, i64 %a_row, i64 %a_k, i64 %b_k, i64 %c_row, i64 %k, i64 %lanes, i64 %resume"
TAIL = "ptr %from, ptr %to, i64 %c_row, i64 %rows, i64 %lanes"


@record
class Tile:
    """One kernel of the family."""

    rows: int
    vectors: int
    edge: bool
    indirect: bool

    @property
    def name(self) -> str:
        return f"{'listed' if self.indirect else 'tile'}_{self.rows}x{self.vectors}{'_edge' if self.edge else ''}"


def family(target: InstructionSet) -> list[Tile]:
    """Return all tiles of a target, in the order of the table: edge tiles by vectors and rows, the whole ones, those of
    the wider panel; then the same for indirect operands.

    A full panel has tiles without masks, unless predicate registers make masks free.
    """
    return [Tile(*kind, indirect) for indirect in (False, True) for kind in _kinds(target)]


def _kinds(target: InstructionSet) -> Iterator[tuple[int, int, bool]]:
    """Rows, vectors and whether it is an edge."""
    rows = range(1, target.tile_rows + 1)
    whole = [] if target.has_masks else [(target.tile_vectors, False)]
    for vectors, edge in [*((v, True) for v in range(1, target.tile_vectors + 1)), *whole]:
        yield from ((r, vectors, edge) for r in rows)
    for edge in (True,) if target.has_masks else (True, False):
        yield from ((r, target.tile_vectors + 1, edge) for r in range(1, target.wide_panel_rows + 1))


def table(target: InstructionSet) -> str:
    """Return the table of kernels, a constant of the module."""
    members = ", ".join(f"ptr @{tile.name}" for tile in family(target))
    return f"@tiles = internal constant [{len(family(target))} x ptr] [{members}]"


def position(em: Flow, columns: str, vectors: str, indirect: str) -> str:
    """Return the index in the table of the kernel of one row for so many columns and vectors: an operand."""
    target = em.target
    group = em.sub(vectors, 1)
    if not target.has_masks:
        full = em.test("eq", columns, target.panel_columns(em.dtype))
        group = em.select(full, target.tile_vectors, group)
    place = em.mul(group, target.tile_rows)
    if target.wide_panel_rows:
        kinds = list(_kinds(target))
        full = em.test("eq", columns, (target.tile_vectors + 1) * em.lanes)
        edge, whole = (kinds.index((1, target.tile_vectors + 1, e)) for e in (True, target.has_masks))
        wide = em.test("sgt", vectors, target.tile_vectors)
        place = em.select(wide, em.select(full, whole, edge), place)
    return em.add(place, em.select(indirect, len(family(target)) // 2, 0))


def emit(tile: Tile, target: InstructionSet, dtype: DType, operand_type: type[Strided] | None = None) -> Flow:
    """Return the body of one kernel. ``operand_type`` reads and multiplies the elements of A; by default one
    at a time."""
    em = Flow(target, dtype)
    kind, step = em.vector_kind, em.lanes
    cells = [(r, v) for r in range(tile.rows) for v in range(tile.vectors)]
    mask = em.first_lanes("%lanes") if tile.edge else ""
    a_elements = (operand_type or (Indirect if tile.indirect else Strided))(em, tile.rows)
    c_rows = ["%C"] + [em.at("%C", em.mul("%c_row", r)) for r in range(1, tile.rows)]
    is_tail = [tile.edge and v == tile.vectors - 1 for v in range(tile.vectors)]

    loaded, ready, again, done = "loaded", "ready", "again", "done"
    em.branch(em.test("ne", "%resume", 0), loaded, ready)
    em.start(loaded)
    start = {}
    for r, v in cells:
        address = em.at(c_rows[r], v * step)
        start[r, v] = em.masked_load(address, mask) if is_tail[v] else em.load(address)
    after_load = em.block
    em.jump(ready)
    em.start(ready)
    first = {c: em.phi(kind, ("zeroinitializer", "entry"), (start[c], after_load)) for c in cells}
    em.branch(em.test("sgt", "%k", 0), again, done)

    em.start(again)
    k = em.phi("i64", ("%k", ready))
    a_elements.begin(ready)
    b = em.phi("ptr", ("%B", ready))
    sums = {c: em.phi(kind, (first[c], ready)) for c in cells}
    columns = []
    for v in range(tile.vectors):
        address = em.at(b, v * step)
        masked = is_tail[v] and em.masked_loads and tile.vectors <= target.tile_vectors
        columns.append(em.masked_load(address, mask) if masked else em.load(address))
    following = {}
    for r, place in enumerate(a_elements.addresses()):
        factor = a_elements.everywhere(place)
        for v in range(tile.vectors):
            following[r, v] = a_elements.multiply_add(factor, columns[v], sums[r, v])
    rest = em.sub(k, 1)
    em.add_edge(k, rest, again)
    a_elements.step(again)
    em.add_edge(b, em.at(b, "%b_k"), again)
    for c in cells:
        em.add_edge(sums[c], following[c], again)
    rolled_branch(em, em.test("ne", rest, 0), again, done)

    em.start(done)
    final = {c: em.phi(kind, (first[c], ready), (following[c], again)) for c in cells}
    for r, v in cells:
        if not is_tail[v]:
            em.store(final[r, v], em.at(c_rows[r], v * step))
    if tile.edge:
        last = [final[r, tile.vectors - 1] for r in range(tile.rows)]
        places = [em.at(c_row, (tile.vectors - 1) * step) for c_row in c_rows]
        if target.has_masks:
            for operand, place in zip(last, places, strict=True):
                em.masked_store(operand, place, mask)
        else:
            _store_through_stack(em, last, places)
    em.effect("ret void")
    return em


class Strided:
    """The elements of A that a step of k needs, with stride a_row between rows and a_k between steps."""

    def __init__(self, em: Flow, rows: int) -> None:
        self.em = em
        self.rows: list[Operand] = [0, *(em.mul("%a_row", r) for r in range(1, rows))]

    def begin(self, before: str) -> None:
        """Emitted at the head of the loop, which is entered from block ``before``."""
        self.at = self.em.phi("ptr", ("%A", before))

    def addresses(self) -> list[str]:
        """Return the addresses of this step's elements."""
        return [self.em.at(self.at, row) for row in self.rows]

    def step(self, block: str) -> None:
        """Emitted at the end of the loop, in ``block``."""
        self.em.add_edge(self.at, self.em.at(self.at, "%a_k"), block)

    def everywhere(self, place: str) -> str:
        """Return the element at ``place``, broadcast to every lane."""
        em = self.em
        return em.broadcast(em.load(place, em.scalar_kind), em.dtype, em.lanes)

    def multiply_add(self, factor: str, column: str, total: str) -> str:
        """``total`` with the product added, rounded once."""
        em, kind = self.em, self.em.vector_kind
        name = f"llvm.fma.v{em.lanes}f{em.dtype.itemsize * 8}"
        return em.intrinsic(name, kind, (kind, factor), (kind, column), (kind, total))


class Indirect(Strided):
    """The same with an offset table for the rows and one for k."""

    def __init__(self, em: Flow, rows: int) -> None:
        self.em = em
        lists = [em.value(f"inttoptr i64 {x} to ptr") for x in ("%a_row", "%a_k")]
        self.places = [em.at("%A", em.indirect(lists[0], r)) for r in range(rows)]
        self.ks = lists[1]

    def begin(self, before: str) -> None:
        self.at = self.em.phi("ptr", (self.ks, before))

    def addresses(self) -> list[str]:
        offset = self.em.indirect(self.at, 0)
        return [self.em.at(place, offset) for place in self.places]

    def step(self, block: str) -> None:
        self.em.add_edge(self.at, self.em.value(f"getelementptr i32, ptr {self.at}, i64 1"), block)


def _store_through_stack(em: Flow, rows: list[str], places: list[str]) -> None:
    """Store the first ``%lanes`` lanes of each row through :func:`tail`."""
    kind = f"[{len(rows)} x {em.vector_kind}]"
    waiting = em.reserve(kind, em.target.vector_bytes)
    for r, row in enumerate(rows):
        em.store(row, em.at(waiting, r * em.lanes))
    em.effect(f"call void @tail(ptr {waiting}, ptr {places[0]}, i64 %c_row, i64 {len(rows)}, i64 %lanes)")


def tail(target: InstructionSet, dtype: DType) -> Flow:
    """``tail(from, to, c_row, rows, lanes)``: the first lanes of whole vectors to rows ``c_row`` apart.

    Each row is stored in parts of all lanes, a half, a quarter, … by the bits of the count: without predicate registers
    a masked store is slow (microcode on x86, a branch for each lane on NEON).
    """
    em = Flow(target, dtype)
    with em.loop(0, "%rows", 1) as r:
        source, place = em.at("%from", em.mul(r, em.lanes)), em.at("%to", em.mul(r, "%c_row"))
        size = em.lanes
        while size:
            kind = f"<{size} x {em.scalar_kind}>" if size > 1 else em.scalar_kind
            with em.when(em.test("ne", em.value(f"and i64 %lanes, {size}"), 0)):
                stored = em.value(f"and i64 %lanes, {-2 * size}")
                em.store(em.load(em.at(source, stored), kind), em.at(place, stored), kind)
            size //= 2
    em.effect("ret void")
    return em
