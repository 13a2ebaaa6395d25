"""Accumulators of the loop IR: their identity, updates, and the fixed tree that combines lane-wise partial results.

``loops`` carries accumulators from block to block as phis.
"""

from __future__ import annotations

from typing import Final

from runnel.backends.cpu.codegen.lanes import Lanes, apply, constant, register_dtype, widen
from runnel.backends.cpu.codegen.memory import Active
from runnel.backends.cpu.codegen.text import Emitter, vector
from runnel.core.dtypes import DType
from runnel.core.errors import VerifierError
from runnel.core.records import field, record
from runnel.loops.ir import CHAIN, LANES, Acc
from runnel.loops.scalar import REDUCERS, Reducer

_LEVELS: Final = 48  # no run has more than 2⁴⁸ blocks
_RARELY: Final = ", !prof !3"  # ``nest`` defines !3


@record(frozen=False)
class Accumulator:
    """An Acc and the operand it is in now.

    ``is_partial``: its LANES lanes are partial results; ``total`` holds their combination after the last update.
    ``tally`` counts updates that are accumulated in blocks; ``waiting`` is then the address of the pending partial
    results: at level n the combination of 2ⁿ blocks.
    """

    name: str
    reducer: Reducer
    dtype: DType
    lanes: int
    operand: str
    is_partial: bool
    identity: str
    total: Lanes | None = None
    tally: Tally | None = None
    waiting: str = ""

    @property
    def type(self) -> str:
        return vector(register_dtype(self.dtype), self.lanes)

    def update(self, em: Emitter, value: Lanes, active: Active | None) -> None:
        """Take in one value; ``active`` are the lanes of the vec loop around the update."""
        if not self.is_partial:
            self.operand = self.combine(em, self.operand, widen(em, value, self.dtype, self.lanes), self.lanes)
            return
        if active is None:
            raise VerifierError(f"Accumulator '{self.name}' is updated both inside and outside vec loops.")
        new = self.combine(em, self.operand, self._all_lanes(em, value, active.width), LANES)
        if active.count != LANES:
            flags = f"<{LANES} x i1> {active.flags(LANES)}"
            new = em.value(f"select {flags}, {self.type} {new}, {self.type} {self.operand}")
        self.operand = new

    def result(self, em: Emitter) -> Lanes:
        """Return the value; partial results are combined lanes l with l + 8, then l + 4, l + 2, l + 1."""
        if self.total is not None:
            return self.total
        operand, width = self.operand if self.tally is None else self.tally.combined(em, self), LANES
        if not self.is_partial:
            return Lanes(operand, self.lanes)
        while width > 2:
            half, kind = width // 2, vector(register_dtype(self.dtype), width)
            low, high = (
                em.value(
                    f"shufflevector {kind} {operand}, {kind} poison, <{half} x i32> <{_picks(range(at, at + half))}>"
                )
                for at in (0, half)
            )
            operand, width = self.combine(em, low, high, half), half
        kind = vector(register_dtype(self.dtype), 2)
        first, second = (em.value(f"extractelement {kind} {operand}, i32 {at}") for at in (0, 1))
        return Lanes(self.combine(em, first, second, 1), 1)

    def combine(self, em: Emitter, a: str, b: str, lanes: int) -> str:
        return apply(em, self.reducer.combine, [a, b], [self.dtype, self.dtype], self.dtype, lanes)

    def place(self, em: Emitter, level: str) -> str:
        """Return the address of the pending result of a level."""
        return em.value(f"getelementptr {self.type}, ptr {self.waiting}, i64 {level}")

    def meet(self, em: Emitter, place: str, block: str) -> str:
        """Combine ``block`` with the earlier one at ``place``."""
        earlier = em.value(f"load {self.type}, ptr {place}, align {self.dtype.itemsize}")
        return self.combine(em, earlier, block, self.lanes)

    def _all_lanes(self, em: Emitter, value: Lanes, width: int) -> str:
        operand = widen(em, value, self.dtype, width)
        if width == LANES:
            return operand
        kind = vector(register_dtype(self.dtype), width)
        picks = _picks([min(at, width) for at in range(LANES)])
        return em.value(f"shufflevector {kind} {operand}, {kind} poison, <{LANES} x i32> <{picks}>")


@record(frozen=False)
class Tally:
    """The number of updates of accumulators that are updated together, as an operand: an i64."""

    operand: str = "0"
    members: list[Accumulator] = field(default_factory=list)
    missing: int = 0  # members that have not been updated since the last count

    type: Final = "i64"

    def updated(self, em: Emitter) -> None:
        """Note the update of one member; the last member ends a block after CHAIN updates."""
        self.missing = (self.missing or len(self.members)) - 1
        if self.missing:
            return
        before = self.operand
        self.operand = em.value(f"add i64 {before}, 1")
        is_full = em.value(f"icmp eq i64 {em.value(f'and i64 {self.operand}, {CHAIN - 1}')}, 0")
        full, on = em.new_label("full"), em.new_label("on")
        entry = em.block
        em.branch(is_full, full, on, _RARELY)
        em.start(full)
        self._store_block(em, em.value(f"lshr i64 {before}, {CHAIN.bit_length() - 1}"))
        last = em.block
        em.jump(on)
        em.start(on)
        for acc in self.members:
            acc.operand = em.phi(acc.type, (acc.operand, entry), (acc.identity, last))

    def _store_block(self, em: Emitter, others: str) -> None:
        """Combine each member's block with the pending results of the ``others`` before it, like a carry in a binary
        counter, and store it."""
        head, meet, store = (em.new_label(hint) for hint in ("head", "meet", "put"))
        before = em.block
        em.jump(head)
        em.start(head)
        left, level = em.phi("i64", (others, before)), em.phi("i64", ("0", before))
        blocks = [em.phi(acc.type, (acc.operand, before)) for acc in self.members]
        is_odd = em.value(f"trunc i64 {left} to i1")
        places = [acc.place(em, level) for acc in self.members]
        em.branch(is_odd, meet, store)
        em.start(meet)
        combined = [acc.meet(em, place, block) for acc, place, block in zip(self.members, places, blocks, strict=True)]
        fewer, above = em.value(f"lshr i64 {left}, 1"), em.value(f"add i64 {level}, 1")
        for phi, operand in zip([left, level, *blocks], [fewer, above, *combined], strict=True):
            em.add_edge(phi, operand, em.block)
        em.jump(head)
        em.start(store)
        for acc, place, block in zip(self.members, places, blocks, strict=True):
            em.effect(f"store {acc.type} {block}, ptr {place}, align {acc.dtype.itemsize}")

    def combined(self, em: Emitter, acc: Accumulator) -> str:
        """Return the current block combined with all pending results, the latest first."""
        others = em.value(f"lshr i64 {self.operand}, {CHAIN.bit_length() - 1}")
        head, meet, after, done = (em.new_label(hint) for hint in ("head", "meet", "after", "done"))
        entry = em.block
        em.branch(em.value(f"icmp eq i64 {others}, 0"), done, head)
        em.start(head)
        left, level = em.phi("i64", (others, entry)), em.phi("i64", ("0", entry))
        block = em.phi(acc.type, (acc.operand, entry))
        em.branch(em.value(f"trunc i64 {left} to i1"), meet, after)
        em.start(meet)
        joined = acc.meet(em, acc.place(em, level), block)
        last = em.block
        em.jump(after)
        em.start(after)
        following = em.phi(acc.type, (block, head), (joined, last))
        fewer, above = em.value(f"lshr i64 {left}, 1"), em.value(f"add i64 {level}, 1")
        for phi, operand in ((left, fewer), (level, above), (block, following)):
            em.add_edge(phi, operand, after)
        em.branch(em.value(f"icmp eq i64 {fewer}, 0"), done, head)
        em.start(done)
        return em.phi(acc.type, (acc.operand, entry), (following, after))


def begin(em: Emitter, acc: Acc, lanes: int, *, is_partial: bool) -> Accumulator:
    """Return an accumulator at its identity."""
    reducer = REDUCERS[acc.op]
    start = widen(em, constant(reducer.identity(acc.dtype), acc.dtype), acc.dtype, lanes)
    return Accumulator(acc.name, reducer, acc.dtype, lanes, start, is_partial, start)


def count(em: Emitter, together: list[Accumulator]) -> None:
    """Accumulate the updates of accumulators that are always updated together in blocks that are combined pairwise."""
    tally = Tally(members=together)
    for acc in together:
        acc.tally = tally
        acc.waiting = em.reserve(f"[{_LEVELS} x {acc.type}]", em.target.vector_bytes)


def _picks(lanes: range | list[int]) -> str:
    return ", ".join(f"i32 {at}" for at in lanes)
