"""Padding layers, each a call of ``functional.pad``."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from runnel.core.errors import ShapeError
from runnel.nn import functions
from runnel.nn.module import Module
from runnel.nn.windows import Size
from runnel.ops.arguments import Array, as_shape, is_single

_ARGS: Final = """

Args:
    padding: one int for all, or (before, after) of the last axis, then of the one before it, …. Negative numbers
        remove elements.
"""


class _Pad(Module):
    """The base of padding layers."""

    spatial: ClassVar[int] = 0
    mode: ClassVar[str] = "constant"
    value: float = 0.0

    def __init__(self, padding: Size) -> None:
        name = type(self).__name__
        sizes = as_shape(name, padding)
        self.padding = sizes * (2 * self.spatial) if is_single(padding) else sizes
        if len(self.padding) != 2 * self.spatial:
            raise ShapeError(f"[{name}] padding must be an int or {2 * self.spatial} ints; got {padding!r}.")

    def forward(self, x: Array) -> Any:
        if self.mode != "constant" and x.ndim not in (self.spatial + 1, self.spatial + 2):
            raise ShapeError(
                f"[{type(self).__name__}] x must have {self.spatial + 1} or {self.spatial + 2} axes; got shape "
                f"{x.shape}."
            )
        return functions.pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Size, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


def _pad(name: str, spatial: int, mode: str, doc: str, base: type[_Pad] = _Pad) -> Any:
    """Return the class of a padding layer; in ``doc``, {} are the axes."""
    text = doc.format("the last axis" if spatial == 1 else f"the last {spatial} axes") + _ARGS
    return type(name, (base,), {"__module__": __name__, "__doc__": text, "spatial": spatial, "mode": mode})


ConstantPad1d = _pad("ConstantPad1d", 1, "constant", "Put ``value`` around {}.", _ConstantPad)
ConstantPad2d = _pad("ConstantPad2d", 2, "constant", "Put ``value`` around {}.", _ConstantPad)
ConstantPad3d = _pad("ConstantPad3d", 3, "constant", "Put ``value`` around {}.", _ConstantPad)
ZeroPad1d = _pad("ZeroPad1d", 1, "constant", "Put zeros around {}.")
ZeroPad2d = _pad("ZeroPad2d", 2, "constant", "Put zeros around {}.")
ZeroPad3d = _pad("ZeroPad3d", 3, "constant", "Put zeros around {}.")
ReflectionPad1d = _pad("ReflectionPad1d", 1, "reflect", "Mirror {} at the border, which is not repeated.")
ReflectionPad2d = _pad("ReflectionPad2d", 2, "reflect", "Mirror {} at the border, which is not repeated.")
ReflectionPad3d = _pad("ReflectionPad3d", 3, "reflect", "Mirror {} at the border, which is not repeated.")
ReplicationPad1d = _pad("ReplicationPad1d", 1, "replicate", "Repeat the border of {}.")
ReplicationPad2d = _pad("ReplicationPad2d", 2, "replicate", "Repeat the border of {}.")
ReplicationPad3d = _pad("ReplicationPad3d", 3, "replicate", "Repeat the border of {}.")
CircularPad1d = _pad("CircularPad1d", 1, "circular", "Continue {} with elements of the other end.")
CircularPad2d = _pad("CircularPad2d", 2, "circular", "Continue {} with elements of the other end.")
CircularPad3d = _pad("CircularPad3d", 3, "circular", "Continue {} with elements of the other end.")
