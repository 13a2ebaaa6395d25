"""The number of elements as in NumPy (``x.size``), and the shape as in PyTorch (``x.size()``)."""

from __future__ import annotations

import math
from typing import Any

from runnel.core.avals import Shape
from runnel.core.errors import AxisError


class Extent(int):
    """The number of elements; called, the shape, or the size of one axis."""

    __module__ = "runnel"
    _shape: Shape

    def __new__(cls, shape: Shape) -> Extent:
        extent = super().__new__(cls, math.prod(shape))
        extent._shape = shape
        return extent

    def __call__(self, dim: int | None = None) -> Any:
        """The shape, or the size of the axis ``dim``. AxisError for an axis that there is not."""
        if dim is None:
            return self._shape
        if not -len(self._shape) <= dim < len(self._shape):
            raise AxisError(f"[size] axis {dim} lies outside an array of {len(self._shape)} dimensions.")
        return self._shape[dim]

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)
