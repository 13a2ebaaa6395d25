"""Complex numbers in polar form, and as arrays of two parts."""

from __future__ import annotations

import math

from runnel.core.dtypes import float32
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array
from runnel.ops.arithmetic import multiply
from runnel.ops.comparison import isnan, less
from runnel.ops.conversion import cast
from runnel.ops.creation_like import zeros_like
from runnel.ops.library.circular import atan2
from runnel.ops.logic import where
from runnel.ops.parts import complex, imag, real
from runnel.ops.pieces import narrow, stack
from runnel.ops.transcendental import cos, sin
from runnel.ops.views import squeeze


def angle(x: Array) -> Array:
    """The angle of complex numbers in the plane, in [-π, π]; of a real number, 0 or π as its sign is."""
    if x.dtype.is_complex:
        return atan2(imag(x), real(x))
    own = x if x.dtype.is_float else cast(x, float32)
    return where(isnan(own), math.nan, where(less(own, 0), math.pi, zeros_like(own)))


def polar(abs: Array, angle: Array) -> Array:
    """The complex numbers of the lengths ``abs`` and the angles ``angle``."""
    return complex(multiply(abs, cos(angle)), multiply(abs, sin(angle)))


def view_as_real(x: Array) -> Array:
    """The real and imaginary parts of complex numbers along a new last axis of size 2."""
    return stack([real(x), imag(x)], -1)


def view_as_complex(x: Array) -> Array:
    """The complex numbers whose parts stand along the last axis, which has size 2."""
    if not x.ndim or x.shape[-1] != 2:
        raise ShapeError(f"[view_as_complex] the last axis holds two parts; got shape {x.shape}.")
    return complex(squeeze(narrow(x, -1, 0, 1), -1), squeeze(narrow(x, -1, 1, 1), -1))
