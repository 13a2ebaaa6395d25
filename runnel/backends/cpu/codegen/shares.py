"""How the contraction cuts extents: into even parts, rows into tiles, columns into panels."""

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
class Dealt:
    """Rows dealt evenly to ``count`` tiles: the first ``larger`` tiles have one more than ``share``."""

    count: str
    share: str
    larger: str

    def tile(self, em: Flow, t: str) -> tuple[str, str]:
        """How many rows tile ``t`` has, and its first."""
        rows = em.add(self.share, em.value(f"zext i1 {em.test('slt', t, self.larger)} to i64"))
        return rows, em.add(em.mul(t, self.share), em.minimum(t, self.larger))

    def or_else(self, em: Flow, condition: str, other: Dealt) -> Dealt:
        """``other`` if ``condition`` holds."""
        pairs = ((other.count, self.count), (other.share, self.share), (other.larger, self.larger))
        return Dealt(*(em.select(condition, a, b) for a, b in pairs))


def deal(em: Flow, height: str, limit: int) -> Dealt:
    """``height`` rows in as few tiles of at most ``limit`` as possible."""
    count = em.ceil_div(height, limit)
    share = em.divide(height, count)
    return Dealt(count, share, em.sub(height, em.mul(share, count)))


def deal_if(em: Flow, condition: str, height: str, limit: int, otherwise: Dealt) -> Dealt:
    """:func:`deal` if ``condition`` holds: a small product has no time for a division that it does not need."""
    before, then, after = em.block, em.new_label("deal"), em.new_label("dealt")
    em.branch(condition, then, after)
    em.start(then)
    dealt = deal(em, height, limit)
    em.jump(after)
    em.start(after)
    pairs = ((dealt.count, otherwise.count), (dealt.share, otherwise.share), (dealt.larger, otherwise.larger))
    return Dealt(*(em.phi("i64", (a, then), (b, before)) for a, b in pairs))


@record
class Panels:
    """A block's columns, how many panels they are, where the last begins and whether it is wider by a vector."""

    columns: str
    count: str
    last: str
    wide: str


def in_panels(em: Flow, columns: str, may_widen: str) -> Panels:
    """``columns`` dealt to panels of the tiles' width. If it may, and the target has tiles for it, the last takes in a
    vector that would be a panel by itself."""
    width = em.target.panel_columns(em.dtype)
    count, wide = em.ceil_div(columns, width), "false"
    if em.target.odd_rows:
        vectors = em.ceil_div(columns, em.lanes)
        left = em.sub(vectors, em.mul(em.sub(count, 1), em.target.tile_vectors))
        alone = em.both(em.test("eq", left, 1), em.test("sgt", count, 1))
        wide = em.both(alone, may_widen)
        count = em.sub(count, em.value(f"zext i1 {wide} to i64"))
    return Panels(columns, count, em.mul(em.sub(count, 1), width), wide)
