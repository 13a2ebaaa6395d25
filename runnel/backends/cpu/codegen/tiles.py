"""The contraction's innermost kernels, and the packing of matrix blocks into panels that they read in order.

A tile of C of 1…MR rows × 1…NV vectors stays in registers for a run of k.
``tile(A, B, C, a_row, a_k, b_k, c_row, k, lanes, resume)`` computes C[r, j] = start + Σ_k A[r, k]·B[k, j] for its rows
and columns; ``start`` is 0 or, to ``resume``, C[r, j] itself. Each element is one chain of fused multiply-adds in order
of k. A is read one element at a time, with any strides; B one vector at a time, with adjacent columns. An *edge* tile
has only ``lanes`` columns in its last vector: it writes no others and, where masked loads are cheap, reads no others
(elsewhere, and in the wider panel, B must be padded). In an *indirect* tile ``a_row`` and ``a_k`` are the addresses of
two offset tables of i32, and A[r, k] is element rows[r] + ks[k] of A: rows are looked up once, k in the loop, as in
Dukhan, "The Indirect Convolution Algorithm" (2019), but with one table for the kernel offsets instead of a pointer for
each pixel and kernel offset.

The register blocking follows Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008). The
driver looks the tiles up in one table, so that the tail of a block of rows runs in a kernel of exactly its size. On
targets with few registers, an odd number of vectors ends with a panel of one vector more (and fewer rows), because a
single vector has too few independent chains.

A panel holds ``width`` columns; element (k, c) is at k·width + c. ``strip`` copies up to a vector's worth of columns,
``panels`` a block of B. A strip of fewer columns is padded with its last column or with zeros, which are read but not
used. Packing accesses nothing outside the block.
"""

from __future__ import annotations

from collections.abc import Iterator

from runnel.backends.cpu.codegen.text import Flow, Operand, rolled_branch
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
    """Return all tiles of a target, in the order of the table: edge tiles by vectors and rows, the whole ones, the
    tiles of the wider panel; then the same for indirect operands.

    A full panel has tiles without masks, unless predicate registers make masks free.
    """
    return [Tile(*kind, indirect) for indirect in (False, True) for kind in _kinds(target)]


def _kinds(target: InstructionSet) -> Iterator[tuple[int, int, bool]]:
    """Yield rows, vectors and whether it is an edge."""
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
        """Add the product to ``total``, rounded once."""
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
    """Emit ``tail(from, to, c_row, rows, lanes)``, which stores the first lanes of whole vectors to rows ``c_row``
    apart.

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


MICRO_PANEL = "ptr %from, i64 %k_step, i64 %c_step, i64 %k, i64 %columns, ptr %to, i64 %width"
STRIPS = "ptr %from, i64 %k_step, i64 %k, i64 %count, i64 %share, i64 %larger, ptr %to, i64 %to_step"
PANELS = "ptr %from, i64 %k_step, i64 %c_step, i64 %k, i64 %columns, ptr %to, i64 %last"


def strip(target: InstructionSet, dtype: DType) -> Flow:
    """Emit ``strip(from, k_step, c_step, k, columns, to, width)``: 1…lanes columns to one vector of a panel's rows.

    Rows of adjacent columns are copied; where a column's elements are adjacent, squares are transposed in registers;
    anything else is copied element by element.
    """
    em = Flow(target, dtype)
    lanes = em.lanes
    full = em.test("eq", "%columns", lanes)
    adjacent = em.test("eq", "%c_step", 1)
    offsets = [0] + [
        em.mul(em.select(em.test("sgt", "%columns", c), c, em.sub("%columns", 1)), "%c_step") for c in range(1, lanes)
    ]
    copies, other, squares, gathers, finish = (em.new_label(n) for n in ("copy", "other", "square", "gather", "finish"))
    em.branch(adjacent if em.masked_loads else em.both(adjacent, full), copies, other)

    em.start(copies)
    mask = em.first_lanes("%columns") if em.masked_loads else ""
    with em.loop(0, "%k", 1) as k:
        source = em.at("%from", em.mul(k, "%k_step"))
        em.store(em.masked_load(source, mask) if mask else em.load(source), em.at("%to", em.mul(k, "%width")))
    em.jump(finish)

    em.start(other)
    em.branch(em.both(em.test("eq", "%k_step", 1), em.test("sge", "%k", lanes)), squares, gathers)

    em.start(squares)
    last = em.sub("%k", lanes)
    # The last square is moved back to end at k: it writes some rows twice with the same elements.
    with em.loop(0, "%k", lanes) as k:
        at = em.minimum(k, last)
        source, place = em.at("%from", at), em.at("%to", em.mul(at, "%width"))
        for row in transposed(em, [em.at(source, offset) for offset in offsets]):
            em.store(row, place)
            place = em.at(place, "%width")
    em.jump(finish)

    em.start(gathers)
    with em.loop(0, "%k", 1) as k:
        source, place = em.at("%from", em.mul(k, "%k_step")), em.at("%to", em.mul(k, "%width"))
        for c, offset in enumerate(offsets):
            em.store(em.load(em.at(source, offset), em.scalar_kind), em.at(place, c), em.scalar_kind)
    em.jump(finish)
    em.start(finish)
    em.effect("ret void")
    return em


def strips(target: InstructionSet, dtype: DType) -> Flow:
    """Emit ``strips(from, k_step, k, count, share, larger, to, to_step)``, which copies the first ``count`` tiles of
    rows of A, adjacent for each k, to strips ``to_step`` elements apart, each padded with the rows that follow its
    tile. ``RowPartition`` defines the tiles. All are copied for one k before the next, so that memory is read in order.
    """
    em = Flow(target, dtype)
    vectors = -(-target.tile_rows // em.lanes)
    with em.loop(0, "%k", 1) as k:
        source = em.at("%from", em.mul(k, "%k_step"))
        place = em.at("%to", em.mul(k, vectors * em.lanes))
        with em.loop(0, "%count", 1) as t:
            here = em.at(source, em.mul(t, "%share"), em.minimum(t, "%larger"))
            there = em.at(place, em.mul(t, "%to_step"))
            for v in range(vectors):
                em.store(em.load(em.at(here, v * em.lanes)), em.at(there, v * em.lanes))
    em.effect("ret void")
    return em


def transposed(em: Flow, addresses: list[str]) -> list[str]:
    """Return the transpose of a square of ``lanes`` rows in memory, by log₂ rounds that exchange corners of doubling
    size.

    Round s swaps bit s of the row's number with bit s of the lane's number (Eklundh, "A Fast Computer Method for Matrix
    Transposing", 1972). The rounds commute; the one of the largest corners is done by loading half vectors to where
    they belong, which keeps it off the shuffle units.
    """
    lanes, half = em.lanes, em.lanes // 2
    part = f"<{half} x {em.scalar_kind}>"
    joined = ", ".join(f"i32 {lane}" for lane in range(lanes))
    rows = []
    for r in range(lanes):
        column = r & half  # rows of the lower half receive the right corners
        pair = [em.load(em.at(addresses[at], column), part) for at in (r & ~half, r | half)]
        rows.append(em.value(f"shufflevector {part} {pair[0]}, {part} {pair[1]}, <{lanes} x i32> <{joined}>"))
    size = 1
    while size < half:
        result = list(rows)
        for r in range(lanes):
            if r & size:
                continue
            upper, lower = rows[r], rows[r + size]
            low = [lane if not lane & size else lanes + lane - size for lane in range(lanes)]
            high = [lane + size if not lane & size else lanes + lane for lane in range(lanes)]
            result[r] = _shuffle(em, upper, lower, low)
            result[r + size] = _shuffle(em, upper, lower, high)
        rows, size = result, size * 2
    return rows


def _shuffle(em: Flow, a: str, b: str, picks: list[int]) -> str:
    order = ", ".join(f"i32 {p}" for p in picks)
    kind = em.vector_kind
    return em.value(f"shufflevector {kind} {a}, {kind} {b}, <{em.lanes} x i32> <{order}>")


def panels(target: InstructionSet, dtype: DType) -> Flow:
    """Emit ``panels(from, k_step, c_step, k, columns, to, last)``, which copies a block of B to panels of a tile's
    width. The columns from ``last`` on, a multiple of the width, are one panel, possibly wider by one vector.

    Rows of adjacent columns are copied a whole row at a time, so that memory is read in order.
    """
    em = Flow(target, dtype)
    width = target.panel_columns(dtype)
    panel = em.mul("%k", width)
    wide, narrow, finish = (em.new_label(n) for n in ("wide", "narrow", "finish"))
    whole = em.mul(em.value(f"sdiv i64 %columns, {width}"), width)
    whole = em.select(em.test("sgt", em.sub("%columns", "%last"), width), "%last", whole)
    em.branch(em.test("eq", "%c_step", 1), wide, narrow)

    em.start(wide)
    size = em.mul(panel, em.dtype.itemsize)
    with em.loop(0, "%k", 1) as k:
        source, first = em.at("%from", em.mul(k, "%k_step")), em.at("%to", em.mul(k, width))
        head, body, after = em.new_label("row"), em.new_label("copy"), em.new_label("after")
        before = em.block
        em.jump(head)
        em.start(head)
        column, place = em.phi("i64", ("0", before)), em.phi("ptr", (first, before))
        em.branch(em.test("slt", column, whole), body, after)
        em.start(body)
        here = em.at(source, column)
        values = [em.load(em.at(here, v * em.lanes)) for v in range(target.tile_vectors)]
        for v, value in enumerate(values):
            em.store(value, em.at(place, v * em.lanes))
        em.add_edge(column, em.add(column, width), body)
        em.add_edge(place, em.value(f"getelementptr i8, ptr {place}, i64 {size}"), body)
        em.jump(head)
        em.start(after)
    copied = em.block
    em.jump(finish)
    em.start(narrow)
    em.jump(finish)

    em.start(finish)
    start = em.phi("i64", (whole, copied), ("0", narrow))
    with em.loop(start, em.add("%last", 1), width) as first_column:
        rest = em.sub("%columns", first_column)
        wide = em.select(em.test("sgt", rest, width), width + em.lanes, width)
        step = em.select(em.test("eq", first_column, "%last"), wide, width)
        panel_columns = em.minimum(step, rest)
        base = em.at("%to", em.mul(first_column, "%k"))
        with em.loop(0, panel_columns, em.lanes) as column:
            source = em.at("%from", em.mul(em.add(first_column, column), "%c_step"))
            few = em.minimum(em.lanes, em.sub(panel_columns, column))
            em.effect(
                f"call void @pack_micro_panel(ptr {source}, i64 %k_step, i64 %c_step, i64 %k, i64 {few}, "
                f"ptr {em.at(base, column)}, i64 {step})"
            )
    em.effect("ret void")
    return em
