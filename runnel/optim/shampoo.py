"""Shampoo: a preconditioner for each dimension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from runnel import ops
from runnel.core.dtypes import DType, float32, float64
from runnel.ops.linear_algebra import factorizations
from runnel.optim.formulas import Active, counted, decayed, momentum
from runnel.optim.group import ParamGroup
from runnel.optim.optimizer import Optimizer
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


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

    def update(self, group: ParamGroup, active: Active, steps: Variable) -> None:
        counted(steps, active)
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
