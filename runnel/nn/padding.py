"""Padding layers, each a call of ``functional.pad``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from runnel.core.errors import ShapeError
from runnel.nn import functional
from runnel.nn.module import Module
from runnel.ops.arguments import as_shape, is_single

Size = int | Sequence[int]


class _Pad(Module):
    """Elements put around the last ``spatial`` axes: ``padding`` is (before, after) of the last one, then of the one
    before it, …, or one int for all. Less than 0 takes elements away."""

    spatial: ClassVar[int] = 0
    mode: ClassVar[str] = "constant"
    value: float = 0.0

    def __init__(self, padding: Size) -> None:
        name = type(self).__name__
        sizes = as_shape(name, padding)
        self.padding = sizes * (2 * self.spatial) if is_single(padding) else sizes
        if len(self.padding) != 2 * self.spatial:
            raise ShapeError(f"[{name}] padding is an int or {2 * self.spatial} ints; received {padding!r}.")

    def forward(self, x: Any) -> Any:
        if self.mode != "constant" and x.ndim not in (self.spatial + 1, self.spatial + 2):
            raise ShapeError(
                f"[{type(self).__name__}] an input has {self.spatial + 1} or {self.spatial + 2} axes; received shape "
                f"{x.shape}."
            )
        return functional.pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Size, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """``value`` around the last axis."""

    spatial = 1


class ConstantPad2d(_ConstantPad):
    """``value`` around the last 2 axes."""

    spatial = 2


class ConstantPad3d(_ConstantPad):
    """``value`` around the last 3 axes."""

    spatial = 3


class ZeroPad1d(_Pad):
    """Zeros around the last axis."""

    spatial = 1


class ZeroPad2d(_Pad):
    """Zeros around the last 2 axes."""

    spatial = 2


class ZeroPad3d(_Pad):
    """Zeros around the last 3 axes."""

    spatial = 3


class ReflectionPad1d(_Pad):
    """(N, C, L) mirrored at its border, which is not repeated."""

    spatial = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """(N, C, H, W) mirrored at its border, which is not repeated."""

    spatial = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """(N, C, D, H, W) mirrored at its border, which is not repeated."""

    spatial = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """(N, C, L) with its border repeated."""

    spatial = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """(N, C, H, W) with its border repeated."""

    spatial = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """(N, C, D, H, W) with its border repeated."""

    spatial = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """(N, C, L) with its other end before and after it."""

    spatial = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """(N, C, H, W) with its other end before and after it."""

    spatial = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """(N, C, D, H, W) with its other end before and after it."""

    spatial = 3
    mode = "circular"
