"""The short-time Fourier transform: transforms of adjacent or overlapping windows, and its inverse.

D. Griffin, J. Lim, "Signal estimation from modified short-time Fourier transform", 1984. Frames and options follow
PyTorch.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from runnel.core.dtypes import complex_of, int64, real_of
from runnel.core.errors import ArgumentError, DTypeError, ShapeError
from runnel.fft.fourier import fft, ifft, irfft, rfft
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast
from runnel.ops.creation_like import full_like
from runnel.ops.elementwise.arithmetic import abs, divide, multiply
from runnel.ops.elementwise.comparison import greater_equal
from runnel.ops.elementwise.numbers import view_as_real
from runnel.ops.indexing.gather import scatter_add
from runnel.ops.requirement import requiring
from runnel.ops.shapes.diagonals import unfold
from runnel.ops.shapes.padding import pad
from runnel.ops.shapes.pieces import narrow
from runnel.ops.shapes.views import moveaxis, reshape, transpose


def stft(
    x: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Array:
    """result[…, k, t] = Σ window[j]·x[…, t·hop_length + j]·exp(-2πi·j·k/n_fft), over j below ``n_fft``.

    Args:
        x: signals of shape (n,) or (batch, n).
        n_fft: the length of a frame.
        hop_length: the distance of frames; n_fft // 4 by default.
        win_length: the length of the window, which lies in the middle of the frame; n_fft by default.
        window: its factors, of shape (win_length,); ones by default.
        center: whether frame t has its middle at t·hop_length: the signal is padded by n_fft // 2 at both ends then, in
            the ``pad_mode`` of :func:`pad`.
        normalized: divided by √n_fft.
        onesided: frequencies 0 to n_fft // 2 alone, of which the others are the conjugates; by default where ``x`` and
            ``window`` are real.
        return_complex: False: real and imaginary parts along a last axis of size 2. Must be given for real signals.
        align_to_window: without ``center``, whether frame t begins where the window does, which lies in the middle of a
            longer frame: the signal is padded by half of what the frame has more.
    """
    if align_to_window and center:
        raise ArgumentError("[stft] align_to_window=True is for center=False.")
    if x.ndim not in (1, 2):
        raise ShapeError(f"[stft] signals have the shape (n,) or (batch, n); got {x.shape}.")
    is_real = not x.dtype.is_complex and (window is None or not window.dtype.is_complex)
    if return_complex is None:
        if is_real:
            raise ArgumentError(
                "[stft] give return_complex=True, or False for a last axis of real and imaginary parts."
            )
        return_complex = True
    half = is_real if onesided is None else bool(onesided)
    if half and not is_real:
        raise ArgumentError("[stft] onesided=True is for real signals and windows.")
    size, hop, factors = _frames("stft", x, n_fft, hop_length, win_length, window)
    signal = x if x.dtype.is_inexact else cast(x, factors.dtype)
    if center:
        signal = pad(signal, (*((0, 0),) * (x.ndim - 1), (size // 2, size // 2)), mode=pad_mode)
    elif align_to_window and win_length is not None:
        beside = (size - operator.index(win_length)) // 2
        signal = pad(signal, (*((0, 0),) * (x.ndim - 1), (beside, beside)))
    if signal.shape[-1] < size:
        raise ShapeError(f"[stft] {signal.shape[-1]} samples hold no frame of n_fft={size}.")
    frames = multiply(unfold(signal, -1, size, hop), factors)
    result = (rfft if half else fft)(frames, norm="ortho" if normalized else "backward")
    result = transpose(result, -2, -1)
    return result if return_complex else view_as_real(result)


def istft(
    x: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Array:
    """Return the signal whose :func:`stft` with the same arguments is ``x``, or the closest one in least squares.

    ``x`` has shape (frequencies, frames) or (batch, frequencies, frames). Frames are multiplied by the window, added
    where they overlap, and divided by the sum of the squared windows; ValueError where that is 0. ``onesided``
    follows from the number of frequencies. ``length`` cuts or zero-pads the signal."""
    if x.ndim not in (2, 3) or not x.dtype.is_complex:
        raise ShapeError(f"[istft] x must be complex, of shape (…, frequencies, frames); got {x.aval}.")
    size, hop, factors = _frames("istft", x, n_fft, hop_length, win_length, window)
    half = x.shape[-2] != size if onesided is None else bool(onesided)
    if x.shape[-2] != (size // 2 + 1 if half else size):
        raise ShapeError(f"[istft] n_fft={size} has {size // 2 + 1 if half else size} frequencies; got {x.shape[-2]}.")
    spectra, norm = transpose(x, -2, -1), "ortho" if normalized else "backward"
    if return_complex:
        if half:
            raise ArgumentError("[istft] a complex signal has all n_fft frequencies; give onesided=False.")
        frames = ifft(spectra, norm=norm)
    else:
        frames = irfft(narrow(spectra, -1, 0, size // 2 + 1), size, norm=norm)
    count = x.shape[-1]
    total = size + hop * (count - 1)
    signal = _added_up(multiply(frames, factors), hop, total)
    weights = _added_up(multiply(full_like(factors, 1, (count, 1)), multiply(factors, factors)), hop, total)
    start = size // 2 if center else 0
    stop = start + operator.index(length) if length is not None else total - start
    end = min(stop, total)
    weights = narrow(weights, 0, start, end - start)
    least = weights.known()
    message = "[istft] the windows do not cover the signal: somewhere, the sum of their squares is 0"
    if least is None:
        weights = requiring(weights, greater_equal(abs(weights), 1e-11), message)
    elif np.abs(least).min(initial=math.inf) < 1e-11:
        raise ValueError(f"{message}.")
    result = divide(narrow(signal, -1, start, end - start), weights)
    return pad(result, (*((0, 0),) * (x.ndim - 2), (0, stop - end))) if stop > end else result


def _frames(name: str, x: Array, n_fft: Any, hop: Any, width: Any, window: Array | None) -> tuple[int, int, Array]:
    """Return the length and distance of frames, and a factor for each element of one."""
    size = operator.index(n_fft)
    step = size // 4 if hop is None else operator.index(hop)
    wide = size if width is None else operator.index(width)
    if size < 1 or step < 1 or not 0 < wide <= size:
        given = f"n_fft={n_fft}, hop_length={step}, win_length={wide}"
        raise ShapeError(f"[{name}] all must be positive, and win_length at most n_fft; got {given}.")
    if window is None:
        factors = full_like(x, 1, (wide,), dtype=real_of(complex_of(x.dtype)))
    elif window.shape != (wide,):
        raise ShapeError(f"[{name}] the window has shape ({wide},); got {window.shape}.")
    elif not window.dtype.is_inexact:
        raise DTypeError(f"[{name}] the window must be floating; got {window.dtype.name}.")
    else:
        factors = window
    left = (size - wide) // 2
    return size, step, pad(factors, ((left, size - wide - left),)) if wide < size else factors


def _added_up(frames: Array, hop: int, total: int) -> Array:
    """Add frames (…, t, j) at positions t·hop + j."""
    count, size = frames.shape[-2:]
    numbers = (np.arange(count)[:, None] * hop + np.arange(size)).ravel()
    rows = reshape(moveaxis(frames, (-2, -1), (0, 1)), (count * size, *frames.shape[:-2]))
    return moveaxis(scatter_add(frames.lift(numbers, int64), rows, total), 0, -1)
