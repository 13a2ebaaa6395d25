"""The target of plans, as a backend describes it to the compiler."""

from __future__ import annotations

from runnel.core.dtypes import DType
from runnel.core.records import record


@record
class Target:
    """The properties of a machine that plans and the semantics of programs depend on.

    ``precision`` is the rounding of products of bfloat16: ``"float32"``, each by itself, or the name of a dot
    instruction that rounds pairs. ``vector_bytes`` is the width of a register; ``tile_rows`` × ``tile_vectors`` is the
    block of accumulators that a product of matrices holds in registers.
    """

    name: str
    precision: str
    vector_bytes: int
    tile_rows: int
    tile_vectors: int

    def panel_columns(self, dtype: DType) -> int:
        """The columns of the second operand in a tile of the contraction: the width of a packed panel."""
        return self.tile_vectors * self.vector_bytes // dtype.itemsize
