"""Abstract values: shape, dtype and device of an array. Interned, so equal avals are one object, as long as somebody
has one."""

from __future__ import annotations

import functools
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

from runnel.core.devices import CPU, Device
from runnel.core.dtypes import DType
from runnel.core.errors import AxisError, DeviceError, ShapeError
from runnel.core.lengths import Length, as_size, expected, is_static

Shape = tuple[int, ...]


class Extent(int):
    """The number of elements; called, the shape, or the size of one axis."""

    __module__ = "runnel"
    _shape: Shape

    def __new__(cls, shape: Shape) -> Extent:
        extent = super().__new__(cls, math.prod(shape))
        extent._shape = shape
        return extent

    def __call__(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of the axis ``dim``. AxisError if the array has no such axis."""
        if dim is None:
            return self._shape
        if not -len(self._shape) <= dim < len(self._shape):
            raise AxisError(f"[size] axis {dim} lies outside an array of {len(self._shape)} dimensions.")
        return self._shape[dim]

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


class LengthExtent(Length):
    """An :class:`Extent` that differs from call to call."""

    __module__ = "runnel"
    _shape: Shape

    def __call__(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of the axis ``dim``. AxisError if the array has no such axis."""
        return Extent.__call__(self, dim)  # type: ignore[arg-type]


def extent_of(shape: Shape) -> Any:
    """Return the number of elements as an attribute that can be called."""
    product: Any = 0 if is_static(shape) else math.prod(shape)
    if not isinstance(product, Length):
        return Extent(shape)
    extent = LengthExtent(product.lengths, product.terms, product.value)
    extent._shape = shape
    return extent


class ShapedArray:
    """The abstract value of an array: ``shape``, ``dtype`` and ``device``. Create it with :func:`aval`; compare with
    ``is``.

    The values of a graph have no device, since a graph runs on the device of its context: their avals have the CPU as
    ``device`` (``unplaced``). ``strides`` are the steps of a dense array, in elements.
    """

    __slots__ = ("__weakref__", "device", "dtype", "extent", "nbytes", "ndim", "shape", "size", "strides")

    def __init__(self, shape: Shape, dtype: DType, device: Device) -> None:
        self.shape: Final = shape
        self.dtype: Final = dtype
        self.device: Final = device
        self.ndim: Final = len(shape)
        self.size: Final = math.prod(shape)
        self.extent: Final = extent_of(shape)
        self.strides: Final = row_major(shape)
        self.nbytes: Final = self.size * dtype.itemsize

    def __reduce__(self) -> tuple[Any, ...]:
        return aval, (self.shape, self.dtype, self.device)

    def on(self, device: Device) -> ShapedArray:
        """Return the same aval on ``device``."""
        return self if device is self.device else aval(self.shape, self.dtype, device)

    def settled(self, value_of: Callable[[Length], int]) -> ShapedArray:
        """Return the same aval with ints in place of lengths."""
        if is_static(self.shape):
            return self
        return aval(tuple([value_of(n) if isinstance(n, Length) else n for n in self.shape]), self.dtype, self.device)

    @property
    def unplaced(self) -> ShapedArray:
        """The same as the type of a value in a graph."""
        return self.on(CPU)

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


_Key = tuple[Shape, DType, Device]


MOST: Final = 1 << 60  # elements that no array has


def is_too_large(shape: Shape) -> bool:
    """Return whether no machine can hold an array of ``shape``, even one without elements."""
    return math.prod(max(expected(n), 1) for n in shape) >= MOST


class _Interned:
    """All avals in use. Entries of unused avals are removed when the table has doubled."""

    def __init__(self) -> None:
        self.references: dict[_Key, weakref.ref[ShapedArray]] = {}
        self.lock: Final = threading.RLock()  # taken where an ShapedArray is new
        self._sweep_at = 1024

    def add(self, key: _Key) -> ShapedArray:
        with self.lock:
            known = self.references.get(key)
            value = None if known is None else known()
            if value is None:
                if any(n < 0 for n in key[0]):
                    raise ShapeError(f"[shape] sizes must not be negative; got the shape {key[0]}.")
                if is_too_large(key[0]):
                    raise ShapeError(f"[shape] no array has as many elements as the shape {key[0]} says.")
                value = ShapedArray(tuple(map(as_size, key[0])), key[1], key[2])
                self.references[key] = weakref.ref(value)
                if len(self.references) >= self._sweep_at:
                    self.references = {k: r for k, r in self.references.items() if r() is not None}
                    self._sweep_at = 2 * len(self.references) + 1024
            return value


_INTERNED: Final = _Interned()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_INTERNED.lock.acquire, after_in_parent=_INTERNED.lock.release, after_in_child=_INTERNED.lock.release
    )


def aval(shape: Shape, dtype: DType, device: Device = CPU) -> ShapedArray:
    """Return the only ShapedArray of this shape and dtype on this device."""
    key = (shape, dtype, device)
    reference = _INTERNED.references.get(key)
    value = None if reference is None else reference()
    return _INTERNED.add(key) if value is None else value


def common_device(name: str, avals: Iterable[ShapedArray]) -> Device:
    """Return the device that all ``avals`` are on; DeviceError, in the name of an op or function, if they are on
    several."""
    devices = list(dict.fromkeys(x.device for x in avals))
    if len(devices) > 1:
        raise DeviceError(
            f"[{name}] operands are on different devices: {' and '.join(map(str, devices))}; move them to one with "
            f'x.to("{devices[0]}").'
        )
    return devices[0] if devices else CPU


@functools.lru_cache(8192)
def row_major(shape: Shape) -> Shape:
    """Strides, in elements, of a dense row-major array of ``shape``."""
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))
