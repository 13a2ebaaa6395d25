"""Adafactor: a second moment kept as rows and columns, for large models.
Muon: a momentum made orthogonal, for matrices.
Shampoo: a preconditioner for each dimension."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from runnel import ops
from runnel.core.dtypes import DType, bfloat16, float32, float64
from runnel.ops.linear_algebra import factorizations
from runnel.optim.formulas import decayed, item, mean, momentum, shrunk
from runnel.optim.group import ParamGroup
from runnel.optim.optimizer import Active, Optimizer
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Adafactor(Optimizer):
    """Adafactor (N. Shazeer, M. Stern, 2018). The order of operations is PyTorch's.

    p ← p - α·u/max(1, rms(u)/d) with u = gradient/√v and α = max(eps[1], rms(p))·min(lr, 1/√t).

    v is the running mean of the gradient's square, in which the new square has the share t^beta2_decay. For a Parameter
    with two dimensions or more, only the means of v over rows r and over columns c are kept, and v = r·c/mean(r) over
    the last two.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the largest relative step size.
        beta2_decay: the power of t, at most 0, that is the share of the new square.
        eps: the lower bounds of mean(r), whose square is the lower bound of v, and of rms(p). None is the machine
            epsilon of the Parameter's dtype.
        d: the largest root mean square of u.
        weight_decay: multiply p by 1 - lr·weight_decay before each step.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.Adafactor(model.parameters(), lr=0.01)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
             "maximize": maximize},
        )  # fmt: skip

    def check(self, group: Mapping[str, Any], params: Iterable[Variable]) -> None:
        super().check(group, params)
        if not isinstance(group["eps"], tuple):
            raise TypeError(f"[Adafactor] eps must be two numbers, or None and a number; got {group['eps']!r}.")

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        if p.ndim < 2:
            return {"variance": 0.0}
        rows, columns = (*p.shape[:-1], 1), (*p.shape[:-2], 1, p.shape[-1])
        return {"row_var": np.zeros(rows, p.dtype.numpy), "col_var": np.zeros(columns, p.dtype.numpy)}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        shares = ops.pow(steps, ops.full_like(steps, group["beta2_decay"]))
        rates = ops.minimum(ops.rsqrt(steps), group["lr"])
        (chosen, least), d = group["eps"], group["d"]
        for i, p, g in active:
            bound = float(ml_dtypes.finfo(p.dtype.numpy).eps) if chosen is None else chosen
            size = ops.maximum(_rms(p.value), least) * item(rates, i, p)
            variance = self._variance(p, g * g, item(shares, i, p), bound)
            direction = ops.rsqrt(ops.maximum(variance, bound * bound)) * g
            size = size / ops.maximum(_rms(direction) / d, 1.0)
            p.assign(shrunk(group, p) - direction * size)

    def _variance(self, p: Variable, square: Tensor, share: Tensor, bound: Any) -> Tensor:
        state = self.state[p]
        if p.ndim < 2:
            return mean(state["variance"], square, share)
        rows = mean(state["row_var"], ops.mean(square, axis=-1, keepdims=True), share)
        columns = mean(state["col_var"], ops.mean(square, axis=-2, keepdims=True), share)
        return rows * columns / ops.maximum(ops.mean(rows, axis=-2, keepdims=True), bound)


def _rms(x: Tensor) -> Tensor:
    root: Tensor = ops.sqrt(ops.mean(x * x))
    return root


class Muon(Optimizer):
    """Muon (K. Jordan et al., 2024; J. Liu et al., 2025), for the matrices of hidden layers. Use AdamW for the rest.

    p ← (1 - lr·weight_decay)·p - lr·s·O, where O is close to the orthogonal matrix nearest to the momentum
    B ← momentum·B + (1 - momentum)·gradient. O is computed in bfloat16 by ``ns_steps`` Newton-Schulz iterations
    X ← a·X + (b·A + c·A²)·X with A = X·Xᵀ, from X = B/max(\\|B\\|, eps).

    Args:
        params: Parameters with two dimensions, or dicts with "params" and hyper-parameters.
        lr: the learning rate.
        weight_decay: decoupled weight decay.
        momentum: the share of the previous B.
        nesterov: use momentum·B + (1 - momentum)·gradient instead of B.
        ns_coefficients: a, b and c.
        eps: the lower bound of the norm that B is divided by.
        ns_steps: the number of iterations, less than 100.
        adjust_lr_fn: how s depends on the m rows and n columns: √max(1, m/n) for "original" or None, and
            0.2·√max(m, n) for "match_rms_adamw".

    Example:
        >>> optimizer = optim.Muon([layer.weight for layer in hidden], lr=0.02, momentum=0.95)
    """

    saves_steps = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
             "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn},
        )  # fmt: skip

    def check(self, group: Mapping[str, Any], params: Iterable[Variable]) -> None:
        super().check(group, params)
        for p in params:
            if p.ndim != 2:
                raise ValueError(
                    f"[Muon] params must be matrices; {p.described} has shape {p.shape}. Use AdamW for it."
                )

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"momentum_buffer": 0.0}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, momentum = group["lr"], group["momentum"]
        for _, p, g in active:
            moved = mean(self.state[p]["momentum_buffer"], g, 1 - momentum)
            direction = g + (moved - g) * momentum if group.has("nesterov") else moved
            size = lr * _scale(p.shape[0], p.shape[1], group["adjust_lr_fn"])
            p.assign(shrunk(group, p) - ops.cast(_orthogonal(group, direction), p.dtype) * size)


def _scale(rows: int, columns: int, rule: str | None) -> float:
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1.0, rows / max(columns, 1)))


def _orthogonal(group: ParamGroup, direction: Tensor) -> Tensor:
    a, b, c = group["ns_coefficients"]
    x: Tensor = ops.cast(direction, bfloat16)
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = ops.permute(x, (1, 0))
    x = x / ops.maximum(ops.sqrt(ops.sum(x * x)), group["eps"])
    for _ in range(group["ns_steps"]):
        gram = ops.matmul(x, ops.permute(x, (1, 0)))
        x = x * a + ops.matmul(gram * b + ops.matmul(gram, gram) * c, x)
    return ops.permute(x, (1, 0)) if tall else x


class Shampoo(Optimizer):
    """Shampoo (V. Gupta, T. Koren, Y. Singer, 2018).

    p ← p - lr·d with d = L^(-1/4)·gradient·R^(-1/4) for a matrix, where L ← L + G·Gᵀ and R ← R + Gᵀ·G start as eps·I.
    In general each of k dimensions has such a matrix H, computed from the gradient unfolded along the dimension, and d
    is the gradient multiplied by each H^(-1/2k). Each step computes eigenvalues, so use it for sides up to some
    hundreds.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate.
        momentum: the factor of the previous direction; 0 keeps none.
        weight_decay: the factor of the penalty weight_decay/2·|p|² that is added to the loss.
        eps: the first value on the diagonals of all H.
        max_size: the longest dimension that has an H.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.Shampoo(model.parameters(), lr=0.1, momentum=0.9)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-1,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        eps: float = 1e-4,
        max_size: int = 1024,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "eps": eps, "max_size": max_size,
             "maximize": maximize},
        )  # fmt: skip

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        state: dict[str, float | np.ndarray] = {"momentum_buffer": 0.0} if group["momentum"] else {}
        for k in _axes(p, group):
            state[f"preconditioner_{k}"] = np.asarray(np.eye(p.shape[k]) * group["eps"], _dtype(p).numpy)
        return state

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr = group["lr"]
        for _, p, g in active:
            state, axes = self.state[p], _axes(p, group)
            direction = unfolded = ops.cast(decayed(group, p, g), _dtype(p))
            for k in axes:
                rows = _along(unfolded, k)
                total = state[f"preconditioner_{k}"].value + ops.matmul(rows, ops.permute(rows, (1, 0)))
                state[f"preconditioner_{k}"].assign(total)
                direction = _multiplied(_root(total, -0.5 / len(axes)), direction, k)
            direction = ops.cast(direction, p.dtype)
            if group.has("momentum"):
                direction = momentum(state["momentum_buffer"], direction, group["momentum"])
            p.assign(p.value - direction * lr)


def _dtype(p: Variable) -> DType:
    return float64 if p.dtype is float64 else float32


def _axes(p: Variable, group: Mapping[str, Any]) -> list[int]:
    return [k for k, size in enumerate(p.shape) if size <= group["max_size"]]


def _along(x: Tensor, k: int) -> Tensor:
    """Return the matrix whose rows are the slices of ``x`` along axis ``k``."""
    return ops.reshape(ops.permute(x, (k, *(j for j in range(x.ndim) if j != k))), (x.shape[k], -1))


def _multiplied(matrix: Tensor, x: Tensor, k: int) -> Tensor:
    """Multiply each vector along axis ``k`` by ``matrix``."""
    others = [j for j in range(x.ndim) if j != k]
    product = ops.reshape(ops.matmul(matrix, _along(x, k)), (x.shape[k], *(x.shape[j] for j in others)))
    return ops.permute(product, tuple(0 if j == k else others.index(j) + 1 for j in range(x.ndim)))


def _root(matrix: Tensor, power: float) -> Tensor:
    """Return a negative power of a symmetric matrix without negative eigenvalues."""
    values, vectors = factorizations.eigh(matrix)
    powers = ops.pow(ops.maximum(values, 1e-30), power)
    return ops.matmul(vectors * ops.expand_dims(powers, 0), ops.permute(vectors, (1, 0)))
