"""NumPy's functions of sequences of samples: convolution, interpolation, phases, and polynomials by their
coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from runnel.core.errors import ShapeError
from runnel.linalg.eigenvalues import eigvals
from runnel.ops.arguments import Array, Operand, normalize_axis
from runnel.ops.convolution.layers import conv
from runnel.ops.creation_like import full_like, iota
from runnel.ops.elementwise.arithmetic import abs, add, divide, multiply, remainder, subtract
from runnel.ops.elementwise.comparison import equal, greater, less, logical_and, where
from runnel.ops.elementwise.complex_parts import conj
from runnel.ops.indexing.gather import take
from runnel.ops.indexing.items import getitem
from runnel.ops.linear_algebra.matrices import lstsq
from runnel.ops.reductions.cumulative import cumsum, diff
from runnel.ops.reductions.statistics import clip
from runnel.ops.shapes.broadcasting import broadcast_arrays
from runnel.ops.shapes.pieces import concat, flip, narrow
from runnel.ops.shapes.views import reshape
from runnel.ops.sorting.order import searchsorted


def _require_vectors(name: str, *vectors: Array) -> None:
    if any(v.ndim != 1 or not v.size for v in vectors):
        shapes = ", ".join(str(v.shape) for v in vectors)
        raise ShapeError(f"[{name}] x must be a vector of at least one element; got shapes {shapes}.")


def _middle(name: str, whole: Array, longer: int, shorter: int, mode: str) -> Array:
    """Return the part of a whole convolution that ``mode`` selects."""
    if mode == "full":
        return whole
    if mode == "same":
        return narrow(whole, 0, (shorter - 1) // 2, longer)
    if mode == "valid":
        return narrow(whole, 0, shorter - 1, longer - shorter + 1)
    raise ValueError(f"[{name}] mode must be 'full', 'same' or 'valid'; got {mode!r}.")


def convolve(x: Array, y: Array, mode: str = "full") -> Array:
    """Return Σ x[k]·y[n - k] for two vectors.

    ``mode`` selects n: all where the vectors overlap ("full"), as many in the middle as the longer vector has
    elements ("same"), or those where they overlap completely ("valid")."""
    _require_vectors("convolve", x, y)
    if y.size > x.size:
        x, y = y, x
    whole = conv(reshape(x, (1, 1, x.size)), reshape(flip(y), (1, 1, y.size)), padding=y.size - 1)
    return _middle("convolve", reshape(whole, (whole.size,)), x.size, y.size, mode)


def correlate(x: Array, y: Array, mode: str = "valid") -> Array:
    """Return Σ x[n + k]·conj(y[k]) for two vectors, with the modes of :func:`convolve`."""
    _require_vectors("correlate", x, y)
    if y.size > x.size:
        return flip(conj(correlate(y, x, mode)))
    return convolve(x, flip(conj(y)), mode)


def interp(x: Array, xp: Array, fp: Array, left: float | None = None, right: float | None = None) -> Array:
    """Interpolate linearly between the points (``xp``, ``fp``), where xp is ascending, at each ``x``.

    The result is ``left`` before the first point and ``right`` after the last one; by default, these are the values
    at the two points."""
    _require_vectors("interp", xp, fp)
    if xp.shape != fp.shape:
        raise ShapeError(f"[interp] xp and fp must have as many elements; got {xp.size} and {fp.size}.")
    last = xp.size - 1
    above = clip(searchsorted(xp, x, "right"), min(1, last), last)
    below = clip(subtract(above, 1), 0, last)
    x0, x1, y0, y1 = (take(v, i, 0) for v, i in ((xp, below), (xp, above), (fp, below), (fp, above)))
    width = subtract(x1, x0)
    share = divide(subtract(x, x0), where(equal(width, 0), 1, width))
    line = add(y0, multiply(subtract(y1, y0), share))
    first, end = getitem(xp, 0), getitem(xp, -1)
    line = where(less(x, first), getitem(fp, 0) if left is None else left, line)
    return where(greater(x, end), getitem(fp, -1) if right is None else right, line)


def unwrap(x: Array, discont: float | None = None, axis: int = -1, period: float = 2 * math.pi) -> Array:
    """Remove jumps from the angles ``x`` along ``axis``.

    Adds multiples of ``period`` where consecutive angles differ by more than half of it, or by more than ``discont``
    if that is larger."""
    place, half = normalize_axis("unwrap", axis, x.ndim), period / 2
    steps = diff(x, axis=place)
    wrapped = subtract(remainder(add(steps, half), period), half)
    wrapped = where(logical_and(equal(wrapped, -half), greater(steps, 0)), half, wrapped)
    change = where(less(abs(steps), half if discont is None else discont), 0, subtract(wrapped, steps))
    first = narrow(x, place, 0, min(1, x.shape[place]))
    rest = narrow(x, place, 1, x.shape[place] - 1) if x.shape[place] else x
    return concat([first, add(rest, cumsum(change, place))], place) if x.shape[place] > 1 else first


# --- polynomials, the coefficient of the highest power first ------------------------------------------------------

_MOST = 1 << 10  # each power, and each integration, is a separate operation


def polyval(p: Array, x: Operand) -> Array:
    """Evaluate a polynomial at ``x`` by Horner's rule: Σ p[k]·x^(n - 1 - k)."""
    _require_vectors("polyval", p)
    value = add(multiply(x, 0), getitem(p, 0))
    for k in range(1, p.size):
        value = add(multiply(value, x), getitem(p, k))
    return value


def _aligned(name: str, x: Array, y: Array, function: Callable[[Array, Array], Array]) -> Array:
    _require_vectors(name, x, y)
    longest = max(x.size, y.size)
    x, y = (concat([full_like(v, 0, (longest - v.size,)), v]) if v.size < longest else v for v in (x, y))
    return function(x, y)


def polyadd(x: Array, y: Array) -> Array:
    """Return the coefficients of the sum of two polynomials."""
    return _aligned("polyadd", x, y, add)


def polysub(x: Array, y: Array) -> Array:
    """Return the coefficients of the difference of two polynomials."""
    return _aligned("polysub", x, y, subtract)


def polymul(x: Array, y: Array) -> Array:
    """Return the coefficients of the product of two polynomials."""
    return convolve(x, y)


def polyder(p: Array, m: int = 1) -> Array:
    """Return the coefficients of derivative ``m`` of a polynomial."""
    _require_vectors("polyder", p)
    if m < 0:
        raise ValueError(f"[polyder] the order m must be at least 0; got {m}.")
    for _ in range(min(m, p.size)):
        n = p.size - 1
        p = multiply(narrow(p, 0, 0, n), subtract(n, iota(p, (n,), 0))) if n else multiply(p, 0)
    return p


def polyint(p: Array, m: int = 1) -> Array:
    """Return the coefficients of the integral of order ``m`` of a polynomial, with value 0 at 0."""
    _require_vectors("polyint", p)
    if not 0 <= m < _MOST:
        raise ValueError(f"[polyint] the order m must be from 0 to {_MOST - 1}; got {m}.")
    for _ in range(m):
        p = concat([divide(p, subtract(p.size, iota(p, (p.size,), 0))), multiply(getitem(p, slice(0, 1)), 0.0)])
    return p


def roots(p: Array) -> Array:
    """Return the complex roots of a polynomial, as the eigenvalues of its companion matrix.

    The first coefficient must not be 0."""
    _require_vectors("roots", p)
    n = p.size - 1
    top = divide(multiply(getitem(p, slice(1, None)), -1.0), getitem(p, 0))
    i, j = iota(top, (n, n), 0), iota(top, (n, n), 1)
    return eigvals(where(equal(i, 0), reshape(top, (1, n)), where(equal(i, add(j, 1)), 1, 0)))


def polyfit(x: Array, y: Array, deg: int) -> Array:
    """Fit a polynomial of degree ``deg`` to the points (x, y) by least squares; return its coefficients.

    Each column of a matrix ``y`` is fitted separately."""
    _require_vectors("polyfit", x)
    if not 0 <= deg < _MOST or y.ndim not in (1, 2) or y.shape[0] != x.size:
        raise ShapeError(
            f"[polyfit] takes a degree from 0 to {_MOST - 1}, and {x.size} values, or columns of them; got {deg} "
            f"and shape {y.shape}."
        )
    powers = [full_like(x, 1)]
    for _ in range(deg):
        powers.append(multiply(powers[-1], x))
    table = broadcast_arrays(*(reshape(p, (x.size, 1)) for p in reversed(powers)))
    sides = y if y.ndim == 2 else reshape(y, (x.size, 1))
    fitted = lstsq(concat(list(table), 1), sides).solution
    return fitted if y.ndim == 2 else reshape(fitted, (deg + 1,))
