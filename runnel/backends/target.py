"""What a backend says of the machine that plans are made for. Each backend fills one in; the compiler asks it."""

from __future__ import annotations

from runnel.core.dtypes import DType
from runnel.core.records import record


@record
class Target:
    """A kind of machine, as far as plans and the meaning of programs depend on it.

    ``precision`` is how products of bfloat16 are rounded: ``"float32"``, each by itself, or as a dot instruction of
    that name does pairs. ``vector_bytes`` is the width of a register; ``tile_rows`` × ``tile_vectors`` is the block of
    accumulators that a product of matrices holds in registers.
    """

    name: str
    precision: str
    vector_bytes: int
    tile_rows: int
    tile_vectors: int

    def panel_columns(self, dtype: DType) -> int:
        """How many columns of the second operand a tile of the contraction takes: the width of a packed panel."""
        return self.tile_vectors * self.vector_bytes // dtype.itemsize
