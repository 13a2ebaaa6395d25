"""Discrete Fourier transforms, by NumPy, with gradients of any order (Array API, "Fourier transform functions").

The transform of x is y[k] = s·Σ x[j]·exp(-2πi·j·k/n), and the inverse has exp(+2πi·j·k/n). ``norm`` names the scales
s of the two: "backward" 1 and 1/n, "ortho" 1/√n and 1/√n, "forward" 1/n and 1. float64 and complex128 are
transformed in double precision, other dtypes in single precision. The adjoint of a transform is the inverse with the
norm exchanged.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from runnel.core.arrays import short_repr
from runnel.core.avals import ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import COMPLEX, DType, complex_of, float32, float64, real_of
from runnel.core.errors import ArgumentError, DTypeError, ShapeError
from runnel.core.rules import NATIVE, linear
from runnel.core.tables import Op, abstract_eval, axes as axis_rules, complex_rules, cost, jvp, lower, reference, vjp
from runnel.loops.rules import HostCall
from runnel.ops.arguments import Array, Axis, as_tuple, normalize_axes, normalize_axis, require_dtype
from runnel.ops.conversion import cast
from runnel.ops.creation_like import iota
from runnel.ops.elementwise.arithmetic import multiply
from runnel.ops.elementwise.comparison import equal, logical_or, where
from runnel.ops.elementwise.complex_parts import conj, real
from runnel.ops.shapes.broadcasting import Stacked
from runnel.ops.shapes.padding import pad
from runnel.ops.shapes.pieces import narrow, roll
from runnel.ops.shapes.views import moveaxis

_ADJOINT: Final = {"backward": "forward", "ortho": "ortho", "forward": "backward"}

# --- primitives: along the last axis ------------------------------------------------------------------------------


def _transform(op: Op, function: Callable[..., Any]) -> None:
    """Register the rules of a transform; ``function`` is NumPy's."""

    def reference_rule(x: Any, **attrs: Any) -> Any:
        result = function(np.asarray(x, order="C"), **attrs)
        return result.astype(abstract_eval[op](aval(x.shape, _NUMPY[x.dtype]), **attrs).dtype.numpy, copy=False)

    def count(x: ShapedArray, **attrs: Any) -> int:
        return 5 * x.size * max(x.shape[-1] - 1, 1).bit_length()

    reference.register(op, reference_rule)
    lower.register(op, HostCall())
    cost.register(op, count)
    axis_rules.register(op, Stacked())
    jvp.register(op, linear(op))
    complex_rules.register(op, NATIVE)


_NUMPY: Final = {dtype.numpy: dtype for dtype in (float32, float64, *COMPLEX)}

fft_p = Op("fft", "z, *, inverse, norm", "The transform, or the inverse one, of complex z.", is_late=True)
_transform(fft_p, lambda z, *, inverse, norm: (np.fft.ifft if inverse else np.fft.fft)(z, norm=norm))

rfft_p = Op("rfft", "x, *, norm", "The first n//2 + 1 elements of the transform of n real numbers.", is_late=True)
_transform(rfft_p, lambda x, *, norm: np.fft.rfft(x, norm=norm))

irfft_p = Op(
    "irfft", "z, *, n, norm", "The n real numbers whose transform begins with the n//2 + 1 numbers z.", is_late=True
)
_transform(irfft_p, lambda z, *, n, norm: np.fft.irfft(z, n, norm=norm))


@abstract_eval.rule(fft_p)
def _fft_abstract_eval(z: ShapedArray, *, inverse: bool, norm: str) -> ShapedArray:
    require_dtype("fft", z.dtype, COMPLEX)
    return z


@abstract_eval.rule(rfft_p)
def _rfft_abstract_eval(x: ShapedArray, *, norm: str) -> ShapedArray:
    require_dtype("rfft", x.dtype, (float32, float64))
    return aval((*x.shape[:-1], x.shape[-1] // 2 + 1), complex_of(x.dtype))


@abstract_eval.rule(irfft_p)
def _irfft_abstract_eval(z: ShapedArray, *, n: int, norm: str) -> ShapedArray:
    require_dtype("irfft", z.dtype, COMPLEX)
    if z.shape[-1] != n // 2 + 1:
        raise ShapeError(f"[irfft] {n} numbers have {n // 2 + 1} frequencies; got shape {z.shape}.")
    return aval((*z.shape[:-1], n), real_of(z.dtype))


@vjp.rule(fft_p)
def _fft_vjp(g: Array, out: Array, z: Array, *, inverse: bool, norm: str) -> tuple[Array]:
    return (apply(fft_p, g, inverse=not inverse, norm=_ADJOINT[norm]),)


@vjp.rule(rfft_p)
def _rfft_vjp(g: Array, out: Array, x: Array, *, norm: str) -> tuple[Array]:
    whole = _resized(g, x.shape[-1])
    return (real(apply(fft_p, whole, inverse=True, norm=_ADJOINT[norm])),)


@vjp.rule(irfft_p)
def _irfft_vjp(g: Array, out: Array, z: Array, *, n: int, norm: str) -> tuple[Array]:
    """Count each number of z twice, except the first, and the last for an even n: the others also have conjugates."""
    half = apply(rfft_p, g, norm=_ADJOINT[norm])
    place = iota(g, (1,) * (z.ndim - 1) + z.shape[-1:], -1)
    is_single_one = logical_or(equal(place, 0), equal(multiply(place, 2), n))
    return (multiply(half, where(is_single_one, 1.0, 2.0)),)


# --- arguments ----------------------------------------------------------------------------------------------------


def _resized(x: Array, n: int) -> Array:
    """Cut or zero-pad the last axis to n elements."""
    if x.shape[-1] >= n:
        return narrow(x, -1, 0, n)
    return pad(x, (*((0, 0),) * (x.ndim - 1), (0, n - x.shape[-1])))


def _norm(name: str, norm: str | None) -> str:
    norm = "backward" if norm is None else norm
    if norm not in _ADJOINT:
        raise ArgumentError(f"[{name}] norm must be 'backward', 'ortho' or 'forward'; got {short_repr(norm)}.")
    return norm


def _length(name: str, n: Any, default: int) -> int:
    length = default if n is None else operator.index(n)
    if length < 1:
        raise ShapeError(f"[{name}] a transform must have at least one element; got {length}.")
    return length


def _sizes(name: str, x: Array, s: Sequence[int] | None, axes: Axis) -> list[tuple[int, int | None]]:
    """Return the axes of a transform along several, each with the length it is brought to."""
    if axes is None:
        count = x.ndim if s is None else len(as_tuple(s))
        axes = tuple(range(x.ndim - count, x.ndim)) if count <= x.ndim else tuple(range(-count, 0))
    places = [normalize_axis(name, a, x.ndim) for a in as_tuple(axes)]
    lengths = [None] * len(places) if s is None else [None if n == -1 else n for n in as_tuple(s)]
    if len(lengths) != len(places):
        raise ShapeError(f"[{name}] {len(lengths)} lengths s for {len(places)} axes; give one for each.")
    return list(zip(places, lengths, strict=True))


def _float(name: str, x: Array) -> Array:
    if x.dtype.is_complex:
        raise DTypeError(f"[{name}] x must be real; got {x.dtype.name}. Use {name.replace('r', '')}().")
    return cast(x, _single_or_double(x))


def _single_or_double(x: Array) -> DType:
    return real_of(complex_of(x.dtype))


def _one(name: str, x: Array, n: int | None, axis: int, norm: str | None, inverse: bool) -> Array:
    place = normalize_axis(name, axis, x.ndim)
    rows = moveaxis(cast(x, complex_of(x.dtype)), place, -1)
    rows = _resized(rows, _length(name, n, rows.shape[-1]))
    return moveaxis(apply(fft_p, rows, inverse=inverse, norm=_norm(name, norm)), -1, place)


def _several(name: str, x: Array, sizes: list[tuple[int, int | None]], norm: str | None, inverse: bool) -> Array:
    for place, n in reversed(sizes):
        x = _one(name, x, n, place, norm, inverse)
    return cast(x, complex_of(x.dtype))


def _real(name: str, x: Array, n: int | None, axis: int, norm: str | None) -> Array:
    place = normalize_axis(name, axis, x.ndim)
    rows = moveaxis(_float(name, x), place, -1)
    rows = _resized(rows, _length(name, n, rows.shape[-1]))
    return moveaxis(apply(rfft_p, rows, norm=_norm(name, norm)), -1, place)


def _to_real(name: str, x: Array, n: int | None, axis: int, norm: str | None) -> Array:
    place = normalize_axis(name, axis, x.ndim)
    rows = moveaxis(cast(x, complex_of(x.dtype)), place, -1)
    length = _length(name, n, 2 * (rows.shape[-1] - 1))
    rows = _resized(rows, length // 2 + 1)
    return moveaxis(apply(irfft_p, rows, n=length, norm=_norm(name, norm)), -1, place)


# --- functions ----------------------------------------------------------------------------------------------------


def fft(x: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the discrete Fourier transform along ``axis``, cut or zero-padded to ``n`` elements.

    ``norm`` is "backward" (the default), "ortho" or "forward"."""
    return _one("fft", x, n, axis, norm, False)


def ifft(x: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of :func:`fft`, with the same arguments."""
    return _one("ifft", x, n, axis, norm, True)


def fftn(x: Array, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Array:
    """Return the transform along each of ``axes`` (None: all, or the last len(s)), whose lengths become ``s``."""
    return _several("fftn", x, _sizes("fftn", x, s, axes), norm, False)


def ifftn(x: Array, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Array:
    """Return the inverse of :func:`fftn`, with the same arguments."""
    return _several("ifftn", x, _sizes("ifftn", x, s, axes), norm, True)


def fft2(x: Array, s: Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None) -> Array:
    """Apply :func:`fftn` along two axes."""
    return _several("fft2", x, _sizes("fft2", x, s, axes), norm, False)


def ifft2(x: Array, s: Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None) -> Array:
    """Apply :func:`ifftn` along two axes."""
    return _several("ifft2", x, _sizes("ifft2", x, s, axes), norm, True)


def rfft(x: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the first n//2 + 1 elements of the transform of real numbers; the others are their conjugates."""
    return _real("rfft", x, n, axis, norm)


def irfft(x: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the ``n`` real numbers whose transform begins with ``x``: the inverse of :func:`rfft`.

    ``n`` is 2·(m - 1) by default, where m is the length of ``x``."""
    return _to_real("irfft", x, n, axis, norm)


def rfftn(x: Array, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Array:
    """Apply :func:`rfft` along the last of ``axes``, then :func:`fft` along the others."""
    return _rfftn("rfftn", x, s, axes, norm)


def irfftn(x: Array, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Array:
    """Return the inverse of :func:`rfftn`; the length along the last axis is 2·(m - 1) by default."""
    return _irfftn("irfftn", x, s, axes, norm)


def rfft2(x: Array, s: Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None) -> Array:
    """Apply :func:`rfftn` along two axes."""
    return _rfftn("rfft2", x, s, axes, norm)


def irfft2(x: Array, s: Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None) -> Array:
    """Apply :func:`irfftn` along two axes."""
    return _irfftn("irfft2", x, s, axes, norm)


def _rfftn(name: str, x: Array, s: Sequence[int] | None, axes: Axis, norm: str | None) -> Array:
    *others, (place, n) = _some(name, _sizes(name, x, s, axes))
    return _several(name, _real(name, x, n, place, norm), others, norm, False)


def _irfftn(name: str, x: Array, s: Sequence[int] | None, axes: Axis, norm: str | None) -> Array:
    *others, (place, n) = _some(name, _sizes(name, x, s, axes))
    return _to_real(name, _several(name, x, others, norm, True), n, place, norm)


def _some(name: str, sizes: list[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    if not sizes:
        raise ShapeError(f"[{name}] needs one axis at least.")
    return sizes


def hfft(x: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the ``n`` real numbers that are the transform of the Hermitian sequence that begins with ``x``."""
    return _to_real("hfft", conj(x), n, axis, _ADJOINT[_norm("hfft", norm)])


def ihfft(x: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of :func:`hfft`: n//2 + 1 of the numbers whose transform is the real ``x``."""
    return conj(_real("ihfft", x, n, axis, _ADJOINT[_norm("ihfft", norm)]))


def hfftn(x: Array, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Array:
    """Apply :func:`fft` along all ``axes`` but the last, and :func:`hfft` along the last.

    Returns real numbers, 2·(m - 1) by default along the last axis."""
    return _hfftn("hfftn", x, s, axes, norm)


def ihfftn(x: Array, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Array:
    """Return the inverse of :func:`hfftn`."""
    return _ihfftn("ihfftn", x, s, axes, norm)


def hfft2(x: Array, s: Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None) -> Array:
    """Apply :func:`hfftn` along two axes."""
    return _hfftn("hfft2", x, s, axes, norm)


def ihfft2(x: Array, s: Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None) -> Array:
    """Apply :func:`ihfftn` along two axes."""
    return _ihfftn("ihfft2", x, s, axes, norm)


def _hfftn(name: str, x: Array, s: Sequence[int] | None, axes: Axis, norm: str | None) -> Array:
    return _irfftn(name, conj(x), s, axes, _ADJOINT[_norm(name, norm)])


def _ihfftn(name: str, x: Array, s: Sequence[int] | None, axes: Axis, norm: str | None) -> Array:
    return conj(_rfftn(name, x, s, axes, _ADJOINT[_norm(name, norm)]))


def _shifted(name: str, x: Array, axes: Axis, sign: int) -> Array:
    places = normalize_axes(name, axes, x.ndim)
    return roll(x, tuple(sign * (x.shape[a] // 2) for a in places), places)


def fftshift(x: Array, axes: Axis = None) -> Array:
    """Move frequency 0 of a transform from the front of ``axes`` (None: all) to their middle."""
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: Array, axes: Axis = None) -> Array:
    """Return the inverse of :func:`fftshift`."""
    return _shifted("ifftshift", x, axes, -1)
