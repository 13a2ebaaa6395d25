"""The functions of ``runnel.ops`` against NumPy and SciPy, and by PyTorch's conventions where they differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import runnel as rn
import runnel.compat.torch as torch
from runnel.compat import numpy as rnp
from runnel.core.errors import AxisError, DTypeError, RunnelError, ShapeError

RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4))
Y = RNG.normal(size=(3, 4))
P = RNG.uniform(0.05, 0.95, (3, 4))
C = RNG.normal(size=(2, 3, 4))
V = RNG.normal(size=6)
S = RNG.normal(size=(4, 4))
T = np.array([[1.0, 2, 2, 0], [3, 3, 1, 1], [0, 0, 0, 0]])
LONG = RNG.normal(size=(2, 1000))
NAN = np.where(P > 0.8, np.nan, X)

CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "cumsum": (lambda x: rn.cumsum(x, 1), lambda x: np.cumsum(x, 1), (LONG,)),
    "cumsum_flat": (rn.cumsum, np.cumsum, (X,)),
    "cumsum_int": (lambda x: rn.cumsum(x, 0), lambda x: np.cumsum(x, 0), (T.astype(np.int8),)),
    "cumprod": (lambda x: rn.cumprod(x, 1), lambda x: np.cumprod(x, 1), (1 + LONG / 50,)),
    "cumulative_sum": (
        lambda x: rn.cumulative_sum(x, axis=1, include_initial=True),
        lambda x: np.cumulative_sum(x, axis=1, include_initial=True), (LONG,),
    ),
    "logcumsumexp": (lambda x: torch.logcumsumexp(x, 1), lambda x: np.logaddexp.accumulate(x, 1), (LONG * 30,)),
    "cummax": (lambda x: torch.cummax(x, 1).values, lambda x: np.maximum.accumulate(x, 1), (LONG,)),
    "cummin": (lambda x: torch.cummin(x, 0).values, lambda x: np.minimum.accumulate(x, 0), (NAN,)),
    "diff": (lambda x: rn.diff(x, n=2), lambda x: np.diff(x, 2), (X,)),
    "trapezoid": (torch.trapezoid, np.trapezoid, (X,)),
    "quantile": (lambda x: rn.quantile(x, [0.1, 0.5, 1.0], 1), lambda x: np.quantile(x, [0.1, 0.5, 1.0], 1), (X,)),
    "quantile_nan": (lambda x: rn.quantile(x, 0.3, 1), lambda x: np.quantile(x, 0.3, 1), (NAN,)),
    "nanquantile": (lambda x: torch.nanquantile(x, 0.3, 0), lambda x: np.nanquantile(x, 0.3, 0), (NAN,)),
    "searchsorted": (rn.searchsorted, np.searchsorted, (np.sort(V), X)),
    "searchsorted_nan": (rn.searchsorted, np.searchsorted, (np.sort(NAN, None), NAN)),
    "bucketize": (torch.bucketize, lambda x, b: np.digitize(x, b, right=True), (X, np.sort(V))),
    "isin": (rn.isin, np.isin, (T, np.array([3.0, 1.0]))),
    "unique": (rn.unique, np.unique, (T,)),
    "unique_inverse": (lambda x: rn.unique_inverse(x)[1], lambda x: np.unique_inverse(x)[1], (T,)),
    "unique_counts": (lambda x: rn.unique(x, return_counts=True)[1], lambda x: np.unique_counts(x)[1], (T,)),
    "unique_rows": (lambda x: rn.unique(x, axis=0), lambda x: np.unique(x, axis=0), (T[[0, 1, 0]],)),
    "nonzero": (lambda x: rn.nonzero(x)[1], lambda x: np.nonzero(x)[1], (T,)),
    "argwhere": (torch.argwhere, np.argwhere, (T,)), "count_nonzero": (rn.count_nonzero, np.count_nonzero, (T,)),
    "bincount": (rn.bincount, np.bincount, (np.array([3, 0, 3, 1]),)),
    "bincount_weights": (rn.bincount, np.bincount, (np.array([3, 0, 3, 1]), V[:4])),
    "histogram": (lambda x: torch.histogram(x, 7)[0], lambda x: np.histogram(x, 7)[0].astype(float), (LONG,)),
    "histogram_density": (
        lambda x: torch.histogram(x, 5, (-1.0, 1.0), density=True)[0],
        lambda x: np.histogram(x, 5, (-1.0, 1.0), density=True)[0], (LONG,),
    ),
    "histogram_edges": (lambda x: torch.histogram(x, 7)[1], lambda x: np.histogram(x, 7)[1], (LONG,)),
    "masked_select": (torch.masked_select, lambda x, m: x[m], (X, X > 0)),
    "hstack": (lambda *xs: rn.hstack(xs), lambda *xs: np.hstack(xs), (X, Y)),
    "vstack": (lambda *xs: rn.vstack(xs), lambda *xs: np.vstack(xs), (X, Y[0])),
    "dstack": (lambda *xs: torch.dstack(xs), lambda *xs: np.dstack(xs), (X, Y)),
    "column_stack": (lambda *xs: torch.column_stack(xs), lambda *xs: np.column_stack(xs), (X, X[:, 0])),
    "atleast_3d": (torch.atleast_3d, np.atleast_3d, (V,)),
    "tile": (lambda x: rn.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), (X,)),
    "repeat": (lambda x: rn.repeat(x, 2), lambda x: np.repeat(x, 2), (X,)),
    "repeat_each": (lambda x: rn.repeat(x, [1, 0, 2], 0), lambda x: np.repeat(x, [1, 0, 2], 0), (X,)),
    "kron": (rn.kron, np.kron, (C, X)),
    "meshgrid": (lambda *xs: rn.meshgrid(*xs)[0], lambda *xs: np.meshgrid(*xs)[0], (V, X[0])),
    "rot90": (lambda x: torch.rot90(x, 3, (2, 0)), lambda x: np.rot90(x, 3, (2, 0)), (C,)),
    "array_split": (lambda x: rnp.array_split(x, 4)[3], lambda x: np.array_split(x, 4)[3], (V,)),
    "roll": (lambda x: rn.roll(x, (1, -2), (0, 1)), lambda x: np.roll(x, (1, -2), (0, 1)), (X,)),
    "roll_flat": (lambda x: rn.roll(x, 5), lambda x: np.roll(x, 5), (X,)),
    "moveaxis": (lambda x: rn.moveaxis(x, (0, 2), (1, 0)), lambda x: np.moveaxis(x, (0, 2), (1, 0)), (C,)),
    **{
        f"{name}_{k}": (
            lambda x, name=name, k=k: getattr(torch, name)(x, k),
            lambda x, name=name, k=k: getattr(np, name)(x, k), (X,)
        )
        for name in ("tril", "triu", "diagonal", "diag") for k in (-3, -1, 0, 2, 4)
    },
    "diag_of_vector": (lambda x: rn.diag(x, -1), lambda x: np.diag(x, -1), (V,)),
    "trace": (lambda x: rn.trace(x, 1), lambda x: np.trace(x, 1), (S,)), "vander": (torch.vander, np.vander, (V,)),
    "unfold": (
        lambda x: x.unfold(1, 2, 2), lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 1)[:, ::2], (X,),
    ),
    "fmod": (torch.fmod, np.fmod, (X * 5, Y)),
    "fmod_int": (torch.fmod, np.fmod, (np.array([-7, 7, -8]), np.array([3, -3, 2]))),
    "deg2rad": (torch.deg2rad, np.deg2rad, (X,)), "rad2deg": (torch.rad2deg, np.rad2deg, (X,)),
    "exp2": (rn.special.exp2, np.exp2, (X,)), "heaviside": (torch.heaviside, np.heaviside, (T - 1, X)),
    "fmax": (torch.fmax, np.fmax, (NAN, Y)), "fmin": (torch.fmin, np.fmin, (Y, NAN)),
    "sinc": (rn.special.sinc, np.sinc, (X * 20,)),
    "logaddexp": (rn.logaddexp, np.logaddexp, (X * 500, Y)), "logaddexp2": (torch.logaddexp2, np.logaddexp2, (X, Y)),
    "logaddexp_equal": (rn.logaddexp, np.logaddexp, (X, X)), "xlogy": (rn.special.xlogy, sp.xlogy, (T, P)),
    "xlog1py": (rn.special.xlog1py, sp.xlog1py, (T, P)), "logit": (rn.special.logit, sp.logit, (P,)),
    "entr": (rn.special.entr, sp.entr, (T - 1,)),
    "nan_to_num": (rn.nan_to_num, np.nan_to_num, (np.array([np.nan, np.inf, -np.inf, 1.5]),)),
    "isclose": (rn.isclose, np.isclose,
        (np.array([1, np.inf, np.nan, 1.0]), np.array([1 + 1e-7, np.inf, np.nan, 1.1]))),
    "gather": (lambda x, i: rn.gather(x, 0, i), lambda x, i: np.take_along_axis(x, i, 0), (X, T.astype(int)[:2] % 3)),
    "put_along_axis": (
        lambda x, v: rn.put_along_axis(x, rn.asarray([[2], [0], [3]]), v, 1),
        lambda x, v: np.where(np.arange(4) == [[2], [0], [3]], v, x), (X, Y[:, :1]),
    ),
    "segment_max": (
        lambda x: rn.segment_max(x, rn.asarray([2, 0, 2]), 4),
        lambda x: np.stack([x[1], x[0] * 0, np.maximum(x[0], x[2]), x[0] * 0]), (X,),
    ),
    "einsum": (lambda *xs: rn.einsum("...ij,kj,k->...i", *xs), lambda *xs: np.einsum("...ij,kj,k->...i", *xs),
        (C, S, V[:4])),
    "einsum_implicit": (lambda *xs: rn.einsum("bij,jk", *xs), lambda *xs: np.einsum("bij,jk", *xs), (C, S)),
    "einsum_broadcast": (lambda *xs: rn.einsum("b...,b...->...", *xs), lambda *xs: np.einsum("b...,b...->...", *xs),
        (C, C[:, :1])),
    "einsum_diagonal": (lambda x: rn.einsum("ii->i", x), lambda x: np.einsum("ii->i", x), (S,)),
    "multi_dot": (lambda *xs: rn.linalg.multi_dot(xs), lambda *xs: np.linalg.multi_dot(xs), (V[:3], X, S, S[0])),
    "inner": (torch.inner, np.inner, (C, X)), "dot": (rn.dot, np.dot, (X, C.reshape(2, 4, 3))),
    "cross": (rn.cross, np.cross, (X[:, :3], Y[:, :3])), "cov": (torch.cov, np.cov, (X,)),
    "corrcoef": (torch.corrcoef, np.corrcoef, (X,)), "nansum": (torch.nansum, np.nansum, (NAN,)),
    "nanmean": (lambda x: torch.nanmean(x, 0), lambda x: np.nanmean(x, 0), (NAN,)),
    "cdist": (torch.cdist, lambda x, y: np.linalg.norm(x[:, None] - y, axis=-1), (X, Y)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    function, oracle, arrays = CASES[name]
    actual, expected = function(*map(rn.asarray, arrays)).numpy(), oracle(*arrays)
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-13)


def test_ranks_and_their_positions() -> None:
    x = rn.asarray(T)
    assert [y.tolist() for y in torch.cummax(x, 1)] == [
        [[1, 2, 2, 2], [3, 3, 3, 3], [0, 0, 0, 0]],
        [[0, 1, 2, 2], [0, 1, 1, 1], [0, 1, 2, 3]],
    ]
    assert [y.tolist() for y in torch.mode(x, 1)] == [[2, 1, 0], [2, 3, 3]]
    assert [y.tolist() for y in torch.kthvalue(x, 2, 1)] == [[1, 1, 0], [0, 3, 1]]
    assert [y.tolist() for y in rn.median(x, 0)] == [[1, 2, 1, 0], [0, 0, 1, 2]]
    assert rn.median(rn.asarray([4.0, 1.0, 3.0, 2.0])).item() == 2  # the lower of the two
    assert np.isnan(rn.median(rn.asarray(NAN)).item()) and torch.nanmedian(rn.asarray([np.nan, 1.0])).item() == 1
    assert [y.tolist() for y in torch.unique_consecutive(x[1], return_counts=True)] == [[3, 1], [2, 2]]
    assert rn.unique(rn.asarray([np.nan, 1.0, np.nan])).shape == (3,)


def gradient(function: Callable[..., Any], x: Any) -> Any:
    return rn.grad(lambda y: function(y).sum())(rn.asarray(np.array(x, np.float64))).tolist()


def test_gradients_at_ties_and_zeros() -> None:
    assert gradient(rn.median, [2.0, 2.0, 1.0, 3.0]) == [0.5, 0.5, 0, 0]
    assert gradient(lambda x: rn.median(x, 0).values, [2.0, 2.0, 1.0]) == [1, 0, 0]
    assert gradient(lambda x: torch.cummax(x, 0).values, [1.0, 1.0]) == [1, 1]
    assert gradient(lambda x: rn.cumprod(x, 0), [2.0, 0.0, 3.0]) == [1, 8, 0]
    assert gradient(lambda x: rn.logaddexp(x, x), [-np.inf, 1.0]) == [1, 1]
    assert gradient(rn.special.sinc, [0.0]) == [0] and gradient(lambda x: rn.special.xlogy(x, 0.0), [0.0]) == [0]
    assert gradient(lambda x: rn.segment_max(x, rn.asarray([0, 0, 1]), 2), [1.0, 1.0, 5.0]) == [0.5, 0.5, 1]
    index = rn.asarray([0, 0])
    shares = gradient(lambda x: torch.scatter_reduce(x, 0, index, x, "amax"), [3.0, 3.0])
    np.testing.assert_allclose(shares, [2 / 3, 4 / 3])
    assert gradient(lambda x: torch.cdist(x, x), [[1.0, 2.0], [3.0, 2.0]]) == [[-2, 0], [2, 0]]
    assert gradient(rn.nan_to_num, [np.nan, 1.0, np.inf]) == [0, 1, 0]


def test_later_sources_win_where_an_index_stands_twice() -> None:
    result = rn.scatter(rn.zeros(3), 0, rn.asarray([1, 1, 2]), rn.asarray([5.0, 6.0, 7.0]))
    assert result.tolist() == [0, 6, 7]
    assert rn.scatter(rn.zeros(3), 0, rn.asarray([1, 1]), 2.0, reduce="add").tolist() == [0, 4, 0]


def test_methods_and_pytorchs_names() -> None:
    x = rn.asarray(X)
    assert x.cumsum(dim=1).tolist() == rn.cumsum(x, axis=1).tolist()
    assert x.repeat(2, 1).shape == (6, 4) and x.repeat_interleave(2, dim=0).shape == (6, 4)
    assert x.gather(1, rn.zeros((3, 1), dtype="int64")).shape == (3, 1) and x.unbind(0)[0].shape == (4,)
    assert rn.cat([x, x], dim=1).shape == (3, 8) and rn.clamp(x, min=0).min().item() == 0
    y = rn.asarray(X)
    assert y.tril_() is y and y.tolist() == np.tril(X).tolist()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_running_sums_have_the_same_bits_everywhere(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNNEL_NUM_THREADS", threads)
    x = rn.asarray(np.random.default_rng(3).normal(size=(3, 5000)).astype(np.float32))
    compiled = rn.compile(lambda y: (rn.cumsum(y, 1), torch.logcumsumexp(y, 1), torch.cummax(y, 1).indices))(x)
    for actual, expected in zip(compiled, (x.cumsum(1), torch.logcumsumexp(x, 1), x.cummax(1).indices), strict=True):
        assert actual.numpy().tobytes() == expected.numpy().tobytes()


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: rn.einsum("ij,jk->ik", rn.ones((2, 3))), ShapeError, "must have 2 operands; got 1"),
    (lambda: rn.einsum("ij,jk", rn.ones((2, 3)), rn.ones((2, 3))), ShapeError, r"axis 'j' .* the sizes 3 and 2"),
    (lambda: rn.einsum("ij->iz", rn.ones((2, 3))), ShapeError, "that no operand has"),
    (lambda: rn.einsum("..->..", rn.ones((2, 3))), ShapeError, r"'\.\.' of .* does not fit"),
    (lambda: torch.kthvalue(rn.ones(3), 4), ShapeError, r"\[kthvalue\] k=4 of the 3"),
    (lambda: rn.quantile(rn.ones(3), 1.5), ValueError, r"q must lie in \[0, 1\]"),
    (lambda: rn.quantile(rn.asarray([1, 2]), 0.5), DTypeError, r"\[quantile\] does not take int64"),
    (lambda: rn.chunk(rn.ones(3), 0), ShapeError, r"\[chunk\] there must be at least one piece"),
    (lambda: rn.repeat(rn.ones(3), [1, 2]), ShapeError, r"\[repeat\] repeats must be whole numbers"),
    (lambda: rn.tril(rn.ones(3)), ShapeError, r"\[tril\] needs matrices"),
    (lambda: rn.gather(rn.ones((2, 3)), 0, rn.asarray([0])), ShapeError, r"\[gather\] an index of shape \(1,\)"),
    (lambda: rn.gather(rn.ones(3), 0, rn.asarray([3])), AxisError, "index 3 lies outside"),
    (lambda: torch.scatter_reduce(rn.ones(3), 0, rn.asarray([0]), 1.0, "max"), ValueError, "reduce must be one of sum"),
    (lambda: torch.masked_select(rn.ones(3), rn.ones(3)), DTypeError, "the mask must be bool; got float32"),
    (lambda: torch.unflatten(rn.ones(6), 0, (4, -1)), ShapeError, r"\[unflatten\] axis 0"),
    (lambda: rn.meshgrid(rn.ones(2), indexing="yx"), ValueError, r"indexing must be 'xy' or 'ij'"),
    (lambda: rn.bincount(rn.ones(2)), ShapeError, r"\[bincount\] x must be a vector of integers"),
    (lambda: rn.cross(rn.ones(2), rn.ones(2)), ShapeError, r"\[cross\] the axis -1"),
    (lambda: rn.compile(rn.nonzero)(rn.ones(3)), RunnelError, r"\[nonzero\] the shape of the result depends"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number: int) -> None:
    call, kind, message = REFUSED[number]
    with pytest.raises(kind, match=message):
        call()


def test_mvlgamma_of_half_precision_is_rounded_once() -> None:
    x = rn.asarray([3.5, 7.25], rn.bfloat16)
    actual = torch.mvlgamma(x, 3)
    assert actual.dtype is rn.bfloat16
    assert actual.tolist() == torch.mvlgamma(x.float(), 3).astype(rn.bfloat16).tolist()
