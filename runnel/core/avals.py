"""What is known of an array before its values: shape and dtype. Interned, so equal avals are one object, as long as
somebody has one."""

from __future__ import annotations

import functools
import math
import os
import threading
import weakref
from typing import Any, Final

from runnel.core.dtypes import DType
from runnel.core.errors import ShapeError

Shape = tuple[int, ...]


class Aval:
    """The abstract value of an array: ``shape`` and ``dtype``. Made by :func:`aval`; compare with ``is``."""

    __slots__ = ("__weakref__", "dtype", "nbytes", "ndim", "shape", "size")

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


_Key = tuple[Shape, DType]


MOST: Final = 1 << 60  # elements that no array has


def is_too_large(shape: Shape) -> bool:
    """Whether an array of ``shape`` can be had nowhere, one without elements included."""
    return math.prod(max(n, 1) for n in shape) >= MOST


class _Interned:
    """All Avals that somebody has. What is left of others is swept out when the table has doubled."""

    def __init__(self) -> None:
        self.references: dict[_Key, weakref.ref[Aval]] = {}
        self.lock: Final = threading.RLock()  # taken where an Aval is new
        self._sweep_at = 1024

    def add(self, key: _Key) -> Aval:
        with self.lock:
            known = self.references.get(key)
            found = None if known is None else known()
            if found is None:
                if min(key[0], default=0) < 0:
                    raise ShapeError(f"[shape] sizes are not negative; received the shape {key[0]}.")
                if is_too_large(key[0]):
                    raise ShapeError(f"[shape] no array has as many elements as the shape {key[0]} says.")
                found = Aval(tuple(int(n) for n in key[0]), key[1])
                self.references[key] = weakref.ref(found)
                if len(self.references) >= self._sweep_at:
                    self.references = {k: r for k, r in self.references.items() if r() is not None}
                    self._sweep_at = 2 * len(self.references) + 1024
            return found


_INTERNED: Final = _Interned()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_INTERNED.lock.acquire, after_in_parent=_INTERNED.lock.release, after_in_child=_INTERNED.lock.release
    )


def aval(shape: Shape, dtype: DType) -> Aval:
    """The one Aval of this shape and dtype."""
    key = (shape, dtype)
    reference = _INTERNED.references.get(key)
    found = None if reference is None else reference()
    return _INTERNED.add(key) if found is None else found


@functools.lru_cache(8192)
def row_major(shape: Shape) -> Shape:
    """Strides, in elements, of a dense row-major array of ``shape``."""
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))
