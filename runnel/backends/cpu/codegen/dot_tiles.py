"""The innermost kernels of products of bfloat16: the tiles of ``tiles`` with pairs of k as elements.

A dot instruction adds to each float32 of a vector the products of two pairs of bfloat16. So a step of k is two of the
matrix's, a vector of B holds one pair of each column, and a pair of A is broadcast. The strides and offset tables of A
count single bfloat16; pairs are adjacent.
"""

from __future__ import annotations

from runnel.backends.cpu.codegen import tiles
from runnel.backends.cpu.codegen.flow import Flow, Operand
from runnel.backends.cpu.codegen.text import vector
from runnel.backends.cpu.codegen.tiles import Strided, Tile
from runnel.backends.cpu.target import InstructionSet
from runnel.core.dtypes import bfloat16, float32, int32


def emit(tile: Tile, target: InstructionSet) -> Flow:
    """The body of one kernel: ``k`` counts pairs, and C is float32."""
    return tiles.emit(tile, target, float32, IndirectPairs if tile.indirect else Pairs)


def moved(em: Flow, pointer: str, *offsets: Operand) -> str:
    """``pointer`` moved by the sum of ``offsets``, in bfloat16."""
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
        """``total`` with both products added, rounded as in docs/internals/kernels.md."""
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
    """A vector of 32-bit numbers as one of bfloat16."""
    return em.value(f"bitcast {kind} {operand} to {vector(bfloat16, 2 * em.lanes)}")
