"""How the contraction partitions extents: into even parts, rows into tiles, columns into panels."""

from __future__ import annotations

from runnel.backends.cpu.codegen.flow import Flow, Operand
from runnel.core.records import record


def even(em: Flow, extent: str, limit: Operand, multiple: int) -> str:
    """The size of a part when ``extent`` is cut into as few parts of at most ``limit`` as possible, rounded up to a
    ``multiple`` (of which ``limit`` is one); the last part gets what is left."""
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
        """The number of rows of tile ``t``, and its first."""
        rows = em.add(self.share, em.value(f"zext i1 {em.test('slt', t, self.larger)} to i64"))
        return rows, em.add(em.mul(t, self.share), em.minimum(t, self.larger))

    def or_else(self, em: Flow, condition: str, other: RowPartition) -> RowPartition:
        """``other`` if ``condition`` holds."""
        pairs = ((other.count, self.count), (other.share, self.share), (other.larger, self.larger))
        return RowPartition(*(em.select(condition, a, b) for a, b in pairs))


def partition_rows(em: Flow, height: str, limit: int) -> RowPartition:
    """``height`` rows in as few tiles of at most ``limit`` as possible."""
    count = em.ceil_div(height, limit)
    share = em.divide(height, count)
    return RowPartition(count, share, em.sub(height, em.mul(share, count)))


def partition_rows_if(em: Flow, condition: str, height: str, limit: int, otherwise: RowPartition) -> RowPartition:
    """:func:`partition_rows` if ``condition`` holds: a division costs a small product too much."""
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
    """``columns`` as panels of the tiles' width. If ``may_widen``, and the target has tiles for it, the last one
    includes a vector that would be a panel by itself."""
    width = em.target.panel_columns(em.dtype)
    count, wide = em.ceil_div(columns, width), "false"
    if em.target.wide_panel_rows:
        vectors = em.ceil_div(columns, em.lanes)
        left = em.sub(vectors, em.mul(em.sub(count, 1), em.target.tile_vectors))
        alone = em.both(em.test("eq", left, 1), em.test("sgt", count, 1))
        wide = em.both(alone, may_widen)
        count = em.sub(count, em.value(f"zext i1 {wide} to i64"))
    return ColumnPartition(columns, count, em.mul(em.sub(count, 1), width), wide)
