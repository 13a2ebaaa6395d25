"""What is known of an array before its values: shape and dtype. Interned, so equal avals are one object."""

from __future__ import annotations

import math
from typing import Any, Final

from runnel.core.dtypes import DType
from runnel.core.errors import ShapeError

Shape = tuple[int, ...]


class Aval:
    """The abstract value of an array: ``shape`` and ``dtype``. Made by :func:`aval`; compare with ``is``."""

    __slots__ = ("dtype", "nbytes", "ndim", "shape", "size")

    def __init__(self, shape: Shape, dtype: DType) -> None:
        self.shape: Final = shape
        self.dtype: Final = dtype
        self.ndim: Final = len(shape)
        self.size: Final = math.prod(shape)
        self.nbytes: Final = self.size * dtype.itemsize

    def __reduce__(self) -> tuple[Any, ...]:
        return aval, (self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


_INTERNED: dict[tuple[Shape, DType], Aval] = {}


def aval(shape: Shape, dtype: DType) -> Aval:
    """The one Aval of this shape and dtype."""
    key = (shape, dtype)
    found = _INTERNED.get(key)
    if found is None:
        if min(shape, default=0) < 0:
            raise ShapeError(f"[shape] sizes are not negative; received the shape {shape}.")
        found = _INTERNED.setdefault(key, Aval(tuple(int(n) for n in shape), dtype))
    return found


def row_major(shape: Shape) -> Shape:
    """Strides, in elements, of a dense row-major array of ``shape``."""
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))
