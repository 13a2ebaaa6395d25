"""Packing: copies of matrix blocks into panels that the contraction's tiles read in order.

A panel holds ``width`` columns; element (k, c) is at k·width + c. ``strip`` copies up to a vector's worth of columns,
``panels`` a block of B. A strip of fewer columns is padded with its last column or with zeros, which are read but not
used. Nothing outside the block is accessed.
"""

from __future__ import annotations

from runnel.backends.cpu.codegen.flow import Flow
from runnel.backends.cpu.target import InstructionSet
from runnel.core.dtypes import DType

MICRO_PANEL = "ptr %from, i64 %k_step, i64 %c_step, i64 %k, i64 %columns, ptr %to, i64 %width"
STRIPS = "ptr %from, i64 %k_step, i64 %k, i64 %count, i64 %share, i64 %larger, ptr %to, i64 %to_step"
PANELS = "ptr %from, i64 %k_step, i64 %c_step, i64 %k, i64 %columns, ptr %to, i64 %last"


def strip(target: InstructionSet, dtype: DType) -> Flow:
    """``strip(from, k_step, c_step, k, columns, to, width)``: 1…lanes columns to one vector of each row of a panel.

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
    """``strips(from, k_step, k, count, share, larger, to, to_step)``: the first ``count`` tiles of rows of A, adjacent
    for each k, to strips ``to_step`` elements apart, each padded with the rows that follow its tile. Tiles are those of
    ``partition.RowPartition``. All are copied for one k before the next, so that memory is read in order.
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
    """``panels(from, k_step, c_step, k, columns, to, last)``: a block of B to panels of a tile's width, one after the
    other. The columns from ``last`` on, a multiple of the width, are one panel, possibly wider by one vector.

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
