"""Offset tables: the offsets of many elements, as constants that kernels look up (an indirect operand)."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.compiler.kernels.allocations import Allocation, MemorySpace
from runnel.core.avals import Shape
from runnel.core.dtypes import int32
from runnel.core.errors import VerifierError

_LIMITS = np.iinfo(np.int32)


class OffsetTables:
    """Tables of the offsets of strided axes, in row-major order, as constants: each table once."""

    def __init__(self) -> None:
        self._places: dict[tuple[tuple[int, int], ...], Allocation] = {}

    def allocation(self, shape: Shape, strides: Shape) -> Allocation | None:
        """The table of these axes; None if an offset is too large for one."""
        key = tuple((n, s) for n, s in zip(shape, strides, strict=True) if n != 1)
        reach = [(n - 1) * s for n, s in key]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        if low < _LIMITS.min or high > _LIMITS.max:
            return None
        if key not in self._places:
            offsets = np.zeros(1, np.int32)
            for n, s in key:
                offsets = (offsets[:, None] + np.arange(n, dtype=np.int32) * np.int32(s)).reshape(-1)
            self._places[key] = Allocation(MemorySpace.CONSTANT, int32, offsets.size, "offsets", value=offsets)
        return self._places[key]


def values_of(offsets: Allocation) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The contents of a table."""
    if offsets.value is None:
        raise VerifierError(f"The table '{offsets.label}' of offsets is no constant.")
    return offsets.value
