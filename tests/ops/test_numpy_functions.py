"""NumPy's functions that PyTorch does not have, against NumPy, and their gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.compat import numpy as rnp
from runnel.core.errors import AxisError, ShapeError

RNG = np.random.default_rng(17)
Y = RNG.normal(size=(3, 5))
X = np.where(RNG.random((3, 5)) < 0.3, np.nan, RNG.normal(size=(3, 5)))
V, W = RNG.normal(size=4), RNG.normal(size=2)
XP, FP = np.sort(RNG.normal(size=6)), RNG.normal(size=6)
Q = RNG.normal(size=(4, 3)) * 2
PHASE = np.cumsum(RNG.normal(size=(3, 20)) * 3, 1)
ONE, OTHER = np.array([3, 1, 3, 2]), np.array([1, 5, 2])

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{
        f"{name}_{axis}": (lambda np, x, name=name, axis=axis: getattr(np, name)(x, axis=axis), (X,))
        for name in ("nanmax", "nanmin", "nanprod", "nanvar", "nanstd", "nanargmax", "nanargmin", "nancumsum",
                     "nancumprod")
        for axis in (None, 0, 1)
    },
    **{
        f"{name}_{m}_{n}_{mode}": (
            lambda np, x, y, name=name, mode=mode: getattr(np, name)(x, y, mode), (Y.ravel()[:m], FP[:n])
        )
        for name in ("convolve", "correlate")
        for m, n in ((5, 3), (3, 5), (4, 4), (6, 4), (4, 6), (1, 3))
        for mode in ("full", "same", "valid")
    },
    "convolve_integers": (lambda np, x, y: np.convolve(x, y), (ONE, OTHER)),
    "percentile": (lambda np, x: np.percentile(x, [10, 50.0], axis=1), (Y,)),
    "nanpercentile": (lambda np, x: np.nanpercentile(x, 30, axis=0), (X,)),
    "ptp": (lambda np, x: np.ptp(x, axis=0), (Y,)),
    "average": (lambda np, x, w: np.average(x, axis=0, weights=w), (Y, np.array([1.0, 2, 3]))),
    "average_each": (lambda np, x: np.average(x, weights=x), (Y,)),
    "interp": (lambda np, x, xp, fp: np.interp(x, xp, fp), (Q, XP, FP)),
    "interp_ends": (lambda np, x, xp, fp: np.interp(x, xp, fp, left=-1.0, right=9.0), (Q, XP, FP)),
    "unwrap": (lambda np, x: np.unwrap(x), (np.angle(np.exp(1j * PHASE)),)),
    "unwrap_period": (lambda np, x: np.unwrap(x, period=7.0, axis=0), (PHASE % 7,)),
    "polyval": (lambda np, p, x: np.polyval(p, x), (V, Q)),
    "polyadd": (lambda np, p, q: np.polyadd(p, q), (V, W)),
    "polysub": (lambda np, p, q: np.polysub(p, q), (W, V)),
    "polymul": (lambda np, p, q: np.polymul(p, q), (V, W)),
    "polyder": (lambda np, p: np.polyder(p, 2), (V,)),
    "polyint": (lambda np, p: np.polyint(p, 2), (V,)),
    "polyfit": (lambda np, x, y: np.polyfit(x, y, 3), (XP, FP)),
    **{
        name: (lambda np, x, y, name=name: getattr(np, name)(x, y), (ONE, OTHER))
        for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d")
    },
    "append": (lambda np, x, y: np.append(x, y, axis=0), (Y, Y[:1])),
    "append_flat": (lambda np, x, y: np.append(x, y), (Y, Y[0])),
    "delete": (lambda np, x: np.delete(x, [0, -1], axis=1), (Y,)),
    "delete_flat": (lambda np, x: np.delete(x, 2), (Y,)),
    "insert_number": (lambda np, x: np.insert(x, 1, 9.0, axis=1), (Y,)),
    "insert_slices": (lambda np, x, v: np.insert(x, [1, 3], v, axis=1), (Y, Y[:, :2])),
    "insert_row": (lambda np, x, v: np.insert(x, -1, v, axis=0), (Y, Y[0])),
    "insert_flat": (lambda np, x: np.insert(x, [0, 0, 4], 7.0), (Y,)),
    "compress": (lambda np, c, x: np.compress(c, x, axis=0), (np.array([True, False, True]), Y)),
    "extract": (lambda np, c, x: np.extract(c, x), (Y > 0, Y)),
    "rollaxis": (lambda np, x: np.rollaxis(x, 2, -2), (RNG.normal(size=(2, 3, 4)),)),
    "histogram2d": (lambda np, x, y: np.histogram2d(x, y, 3)[0], (XP, FP)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    function, arrays = CASES[name]
    expected = function(np, *arrays)
    actual = function(rnp, *map(rn.asarray, arrays)).numpy()
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


def test_roots() -> None:
    np.testing.assert_allclose(np.sort_complex(rnp.roots(rn.asarray(V)).numpy()), np.sort_complex(np.roots(V)))


SMOOTH = ("nanmax_0", "nanvar_1", "convolve_5_3_same", "correlate_3_5_full", "percentile", "average", "interp",
          "unwrap", "polyval", "polyfit", "insert_row", "polyint")  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name: str) -> None:
    """Along a random direction, in float64."""
    rng = np.random.default_rng(32)
    function, arrays = CASES[name]
    directions = [rng.normal(size=a.shape) for a in arrays]
    weights = np.cos(np.arange(function(np, *arrays).size)).reshape(function(np, *arrays).shape)
    slopes = rn.grad(
        lambda *xs: (function(rnp, *xs) * rn.asarray(weights)).sum(), argnums=tuple(range(len(arrays)))
    )(*map(rn.asarray, arrays))  # fmt: skip
    h = 1e-6
    ahead, behind = (
        (function(np, *(a + s * d for a, d in zip(arrays, directions, strict=True))) * weights).sum() for s in (h, -h)
    )
    total = sum(np.nansum(g.numpy() * d) for g, d in zip(slopes, directions, strict=True))
    np.testing.assert_allclose(total, (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-7)


def test_what_is_refused() -> None:
    with pytest.raises(AxisError, match=r"\[delete\] positions \[7\] are out of range for an axis of 5"):
        rnp.delete(rn.asarray(Y), 7, axis=1)
    with pytest.raises(ShapeError, match=r"\[convolve\] x must be a vector of at least one element"):
        rnp.convolve(rn.asarray(Y), rn.asarray(V))
    with pytest.raises(ValueError, match=r"\[convolve\] mode must be 'full', 'same' or 'valid'"):
        rnp.convolve(rn.asarray(V), rn.asarray(W), "wrap")
