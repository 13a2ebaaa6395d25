"""Accumulators of the loop IR: their identity, updates, and the fixed tree that combines lane-wise partial results.

Stands beside ``memory``; ``loops`` carries accumulators from block to block as phis.
"""

from __future__ import annotations

from dataclasses import dataclass

from runnel.codegen.lanes import Value, apply, constant, held, widen
from runnel.codegen.memory import Active
from runnel.codegen.text import Emitter, vector
from runnel.core.dtypes import DType
from runnel.core.errors import VerifierError
from runnel.loops.accumulators import REDUCERS, Reducer
from runnel.loops.ir import LANES, Acc


@dataclass(slots=True)
class Accumulator:
    """An Acc and the operand it is in now.

    ``is_partial``: its LANES lanes are partial results; ``total`` holds their combination once no update will follow.
    """

    name: str
    reducer: Reducer
    dtype: DType
    lanes: int
    operand: str
    is_partial: bool
    total: Value | None = None

    @property
    def type(self) -> str:
        return vector(held(self.dtype), self.lanes)

    def update(self, em: Emitter, value: Value, active: Active | None) -> None:
        """Take in one value; ``active`` are the lanes of the vec loop around the update."""
        if not self.is_partial:
            self.operand = self._combine(em, self.operand, widen(em, value, self.dtype, self.lanes), self.lanes)
            return
        if active is None:
            raise VerifierError(f"Accumulator '{self.name}' is updated both inside and outside of vec loops.")
        new = self._combine(em, self.operand, self._all_lanes(em, value, active.width), LANES)
        if active.count != LANES:
            flags = f"<{LANES} x i1> {active.flags(LANES)}"
            new = em.value(f"select {flags}, {self.type} {new}, {self.type} {self.operand}")
        self.operand = new

    def result(self, em: Emitter) -> Value:
        """The value; partial results are combined lanes l with l + 8, then l + 4, l + 2, l + 1."""
        if self.total is not None:
            return self.total
        if not self.is_partial:
            return Value(self.operand, self.lanes)
        operand, width = self.operand, LANES
        while width > 2:
            half, kind = width // 2, vector(held(self.dtype), width)
            low, high = (
                em.value(
                    f"shufflevector {kind} {operand}, {kind} poison, <{half} x i32> <{_picks(range(at, at + half))}>"
                )
                for at in (0, half)
            )
            operand, width = self._combine(em, low, high, half), half
        kind = vector(held(self.dtype), 2)
        first, second = (em.value(f"extractelement {kind} {operand}, i32 {at}") for at in (0, 1))
        return Value(self._combine(em, first, second, 1), 1)

    def _combine(self, em: Emitter, a: str, b: str, lanes: int) -> str:
        return apply(em, self.reducer.combine, [a, b], [self.dtype, self.dtype], self.dtype, lanes)

    def _all_lanes(self, em: Emitter, value: Value, width: int) -> str:
        operand = widen(em, value, self.dtype, width)
        if width == LANES:
            return operand
        kind = vector(held(self.dtype), width)
        picks = _picks([min(at, width) for at in range(LANES)])
        return em.value(f"shufflevector {kind} {operand}, {kind} poison, <{LANES} x i32> <{picks}>")


def begin(em: Emitter, acc: Acc, lanes: int, *, is_partial: bool) -> Accumulator:
    """An accumulator at its identity."""
    reducer = REDUCERS[acc.op]
    start = widen(em, constant(reducer.identity(acc.dtype), acc.dtype), acc.dtype, lanes)
    return Accumulator(acc.name, reducer, acc.dtype, lanes, start, is_partial)


def _picks(lanes: range | list[int]) -> str:
    return ", ".join(f"i32 {at}" for at in lanes)
