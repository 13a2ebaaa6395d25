"""Functions composed of primitives, for the suites: inputs away from kinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn
import runnel.compat.torch as torch
from runnel.compat import numpy as rnp

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(9)
X = RNG.permutation(15).reshape(3, 5) / 4 + RNG.uniform(0.1, 0.2, (3, 5))
Y = RNG.permutation(15).reshape(3, 5) / 5 - 1.43
P = RNG.uniform(0.1, 0.9, (3, 5))
S = RNG.normal(size=(5, 5))
V = RNG.normal(size=6)
LONG = RNG.normal(size=(2, 150))
LOWER = np.tril(np.random.default_rng(10).uniform(0.5, 1.5, (5, 5)))


def index(*values: Any) -> rn.Tensor:
    return rn.asarray(np.array(values))


def indices() -> rn.Tensor:
    return index([2, 1, 1, 0, 0], [0, 2, 2, 2, 1])


SEGMENTS = (2, 0, 2)

LIBRARY_FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "cumsum": (lambda x: rn.cumsum(x, 0), (X,)), "cumsum_long": (lambda x: rn.cumsum(x, 1), (LONG,)),
    "cumprod": (lambda x: rn.cumprod(x, 1), (X,)), "logcumsumexp": (lambda x: torch.logcumsumexp(x, 1), (X,)),
    "cummax": (lambda x: torch.cummax(x, 1).values, (X,)), "cummin": (lambda x: torch.cummin(x, 0).values, (X,)),
    "diff": (lambda x: rn.diff(x, n=2), (X,)), "trapezoid": (torch.trapezoid, (X, Y[0])),
    "cumulative_trapezoid": (torch.cumulative_trapezoid, (X,)),
    "cumulative_sum": (lambda x: rn.cumulative_sum(x, axis=1, include_initial=True), (X,)),
    "median": (rn.median, (X,)), "median_1": (lambda x: rn.median(x, 1).values, (X,)),
    "nanmedian": (lambda x: torch.nanmedian(x, 0).values, (X,)),
    "kthvalue": (lambda x: torch.kthvalue(x, 2).values, (X,)),
    "mode": (lambda x: torch.mode(x).values, (X,)), "quantile": (lambda x: rn.quantile(x, [0.3, 0.8], 1), (X,)),
    "quantile_midpoint": (lambda x: rn.quantile(x, 0.3, 0, interpolation="midpoint"), (X,)),
    "nanquantile": (lambda x: torch.nanquantile(x, 0.3), (X,)), "msort": (torch.msort, (X,)),
    "hstack": (lambda x, y: rn.hstack([x, y]), (X, Y)), "vstack": (lambda x, y: rn.vstack([x, y]), (X, Y[0])),
    "dstack": (lambda x, y: torch.dstack([x, y]), (X, Y)),
    "column_stack": (lambda x, y: torch.column_stack([x, y]), (X, P[:, 0])),
    "block_diag": (torch.block_diag, (X, S)), "chunk": (lambda x: rn.chunk(x, 2, 1)[1], (X,)),
    "tensor_split": (lambda x: torch.tensor_split(x, 3, 1)[0], (X,)),
    "unstack": (lambda x: rn.stack(rn.unstack(x, 1), 0), (X,)),
    "tile": (lambda x: rn.tile(x, (2, 1, 3)), (X,)), "repeat": (lambda x: rn.repeat(x, 2, 1), (X,)),
    "repeat_each": (lambda x: rn.repeat(x, [1, 0, 2], 0), (X,)), "kron": (rn.kron, (X, S[:2])),
    "meshgrid": (lambda x, y: rn.meshgrid(x, y)[0] * rn.meshgrid(x, y)[1], (V, X[0])),
    "cartesian_prod": (torch.cartesian_prod, (V, X[0])),
    "combinations": (torch.combinations, (V,)), "rot90": (torch.rot90, (X,)),
    "rot90_3": (lambda x: torch.rot90(x, 3), (X,)),
    "unflatten": (lambda x: torch.unflatten(x, 0, (3, -1)), (X,)), "tril": (lambda x: rn.tril(x, 1), (X,)),
    "triu": (lambda x: rn.triu(x, 1), (X,)), "diagonal": (lambda x: rn.diagonal(x, 1), (X,)),
    "diag_embed": (lambda x: torch.diag_embed(x, -1), (X,)), "diag": (lambda x: rn.diag(x, 2), (V,)),
    "trace": (rn.trace, (S,)), "unfold": (lambda x: x.unfold(1, 3, 2), (X,)),
    "vander": (lambda x: torch.vander(x, 4), (V,)),
    "roll_axes": (lambda x: rn.roll(x, (1, 2), (0, 1)), (X,)),
    "moveaxis_two": (lambda x: rn.moveaxis(x, (0, 1), (1, 0)), (X,)),
    "fmod": (torch.fmod, (X * 3, P)), "frac": (torch.frac, (X,)), "deg2rad": (torch.deg2rad, (X,)),
    "exp2": (rn.special.exp2, (X,)),
    "float_power": (torch.float_power, (P, X)), "xlogy": (rn.special.xlogy, (X, P)),
    "xlog1py": (rn.special.xlog1py, (X, P)),
    "logaddexp": (rn.logaddexp, (X, Y)), "logaddexp2": (torch.logaddexp2, (X, Y)), "logit": (rn.special.logit, (P,)),
    "entr": (rn.special.entr, (P,)), "sinc": (rn.special.sinc, (X,)), "nan_to_num": (rn.nan_to_num, (X,)),
    "fmax": (torch.fmax, (X, Y)),
    "ldexp": (lambda x: torch.ldexp(x, index(1, 2, 3, 0, -1)), (X,)), "heaviside": (torch.heaviside, (X, Y)),
    "gather": (lambda x: rn.gather(x, 0, indices()), (X,)),
    "scatter": (lambda x, y: rn.scatter(x, 0, indices(), y), (X, Y[:2])),
    "scatter_add_along": (lambda x, y: rn.scatter_add(x, 0, indices(), y), (X, Y[:2])),
    **{
        f"scatter_reduce_{how}": (lambda x, y, how=how: torch.scatter_reduce(x, 0, indices(), y, how), (X, Y[:2]))
        for how in ("prod", "mean", "amax", "amin")
    },
    "index_select": (lambda x: rn.index_select(x, 1, index(0, 3, 3)), (X,)),
    "put_along_axis": (lambda x, y: rn.put_along_axis(x, indices(), y, 0), (X, Y[:2])),
    "masked_scatter": (lambda x, y: torch.masked_scatter(x, x > 2, y), (X, Y)),
    "select_scatter": (lambda x, y: torch.select_scatter(x, y, 0, 1), (X, Y[0])),
    "slice_scatter": (lambda x, y: torch.slice_scatter(x, y, 1, 0, 5, 2), (X, Y[:, :3])),
    **{
        f"segment_{how}": (
            lambda x, how=how: getattr(rn, f"segment_{how}")(x, index(*SEGMENTS), 4), (X,)
        ) for how in ("sum", "mean", "prod", "max", "min")
    },
    "einsum": (lambda x, y: rn.einsum("ij,kj->ik", x, y), (X, Y)),
    "einsum_three": (lambda x, y, z: rn.einsum("ij,kj,jl->il", x, y, z), (X, Y, S)),
    "einsum_diagonal": (lambda x: rn.einsum("ii->i", x), (S,)), "inner": (torch.inner, (X, Y)), "dot": (rn.dot, (X, S)),
    "multi_dot": (lambda *xs: rn.linalg.multi_dot(xs), (X, S, V[:5])), "addmm": (torch.addmm, (X, X[:, :4], S[:4])),
    "cross": (rn.cross, (X[:, :3], Y[:, :3])), "nanmean": (lambda x: torch.nanmean(x, 0), (X,)),
    "cov": (torch.cov, (X,)),
    "renorm": (lambda x: torch.renorm(x, 2, 0, 2.5), (X,)),
    "fill_diagonal": (lambda x: rnp.fill_diagonal(x, 3.0), (X,)),
    "diagonal_scatter": (lambda x, y: torch.diagonal_scatter(x, y, 1), (X, Y[:, 0])),
    "take_along_dim": (lambda x: torch.take_along_dim(x, index([2], [0], [4]), 1), (X,)),
    "put_flat": (lambda x, y: x.put(index(3, 7, 3), y, accumulate=True), (X, V[:3])),
    "cholesky_solve": (lambda b: torch.cholesky_solve(b, rn.asarray(LOWER)), (S[:, :2],)),
    "cholesky_inverse": (torch.cholesky_inverse, (LOWER,)), "frexp": (lambda x: torch.frexp(x).mantissa, (X,)),
    "det": (rn.linalg.det, (S,)), "sum_to_size": (lambda x: x.sum_to_size(3, 1), (X,)),
    "lu": (lambda x: rn.linalg.lu(x).L, (S,)), "lu_upper": (lambda x: rn.linalg.lu(x).U, (X,)),
    "lu_factor": (lambda x: rn.linalg.lu_factor(x.mT).LU, (X,)),
    "lu_solve": (lambda x, y: rn.linalg.lu_solve(*rn.linalg.lu_factor(x), y.mT), (S, Y)),
    "householder_product": (lambda x, t: rn.linalg.householder_product(x.mT, t), (X, P[0, :3])),
    "ormqr": (lambda x, t, y: torch.ormqr(x.mT, t, y.mT), (X, P[0, :3], Y)),
    "ldl_factor": (lambda x: rn.linalg.ldl_factor(x).LD, (S,)),
    "ldl_solve": (lambda x, y: rn.linalg.ldl_solve(*rn.linalg.ldl_factor(x), y.mT), (S, Y)),
    "hfftn": (lambda x, y: rn.fft.hfftn(rn.complex(x, y)), (X, Y)),
    "cholesky_ex": (lambda x: rn.linalg.cholesky_ex(x @ x.mT).L, (LOWER,)),
    "inv_ex": (lambda x: rn.linalg.inv_ex(x).inverse, (S,)), "cond_1": (lambda x: rn.linalg.cond(x, 1), (S,)),
    "tensorsolve": (lambda x, y: rn.linalg.tensorsolve(x[:4, :4].reshape((2, 2, 4)), y[:2, :2]), (S, Y)),
    "as_strided": (lambda x: torch.as_strided(x, (3, 4), (2, 1), 1), (X,)),
    "as_strided_scatter": (lambda x, y: torch.as_strided_scatter(x, y, (3, 2), (4, 1)), (X, Y[:, :2])),
    "gradient": (lambda x: torch.gradient(x, spacing=0.5, axis=1, edge_order=2)[0], (X,)),
    "gradient_positions": (lambda x, y: torch.gradient(x, spacing=(y,), axis=1)[0], (X, np.cumsum(P[0]))),
    "stft": (lambda x, w: torch.stft(x, 8, window=w, return_complex=False), (LONG[:, :20], np.cumsum(P[0, [0] * 8]))),
    "istft": (lambda x, w: torch.istft(rn.complex(x, x * x), 8, window=w),
        (LONG[:, :15].reshape(2, 5, 3), P[0, [0] * 8])),
    "einsum_lists": (lambda x, y: rn.einsum(x, [0, 1], y, [2, 1], [2, 0]), (X, Y)),
    "corrcoef": (torch.corrcoef, (X,)), "cdist": (torch.cdist, (X, Y)), "dist": (torch.dist, (X, Y)),
}  # fmt: skip
