"""Shampoo: a preconditioner for each dimension (V. Gupta, T. Koren, Y. Singer, 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from runnel import ops
from runnel.core.dtypes import float32, float64
from runnel.ops import linalg
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, decayed
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Shampoo(Optimizer):
    """p ← p - lr·d. Of a matrix d = L^(-1/4)·gradient·R^(-1/4), with L ← L + G·Gᵀ and R ← R + Gᵀ·G, from eps·I on.

    In general each of k dimensions has such a matrix H, that of the gradient unfolded along it, and is multiplied by
    H^(-1/2k). Dimensions longer than ``max_size`` have none. ``momentum`` accumulates d as in SGD. The roots are those
    of eigenvalues, in each step: for matrices with sides up to some hundreds.
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
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        state: dict[str, float | np.ndarray] = {"momentum_buffer": 0.0} if group["momentum"] else {}
        kind = "float64" if p.dtype is float64 else "float32"
        for k in _axes(p, group):
            state[f"preconditioner_{k}"] = np.asarray(np.eye(p.shape[k]) * group["eps"], kind)
        return state

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        counted(steps, active)
        lr = group["lr"]
        for _, p, g in active:
            state, axes = self.state[p], _axes(p, group.plain)
            direction = decayed(group, p, g)
            unfolded = ops.cast(direction, float64 if p.dtype is float64 else float32)
            direction = unfolded
            for k in axes:
                rows = _along(unfolded, k)
                total = state[f"preconditioner_{k}"].value + ops.matmul(rows, ops.permute(rows, (1, 0)))
                state[f"preconditioner_{k}"].assign(total)
                direction = _multiplied(_root(total, -0.5 / len(axes)), direction, k)
            direction = ops.cast(direction, p.dtype)
            if group.has("momentum"):
                buffer = state["momentum_buffer"]
                direction = buffer.value * group["momentum"] + direction
                buffer.assign(direction)
            p.assign(p.value - direction * lr)


def _axes(p: Variable, group: Mapping[str, Any]) -> list[int]:
    return [k for k, size in enumerate(p.shape) if size <= group["max_size"]]


def _along(x: Tensor, k: int) -> Tensor:
    """The matrix whose rows are the slices of ``x`` along axis ``k``."""
    return ops.reshape(ops.permute(x, (k, *(j for j in range(x.ndim) if j != k))), (x.shape[k], -1))


def _multiplied(matrix: Tensor, x: Tensor, k: int) -> Tensor:
    """``matrix`` times each vector along axis ``k``."""
    others = [j for j in range(x.ndim) if j != k]
    product = ops.reshape(ops.matmul(matrix, _along(x, k)), (x.shape[k], *(x.shape[j] for j in others)))
    return ops.permute(product, tuple(0 if j == k else others.index(j) + 1 for j in range(x.ndim)))


def _root(matrix: Tensor, power: float) -> Tensor:
    """A symmetric matrix without negative eigenvalues to a negative power."""
    values, vectors = linalg.eigh(matrix)
    powers = ops.pow(ops.maximum(values, 1e-30), power)
    return ops.matmul(vectors * ops.expand_dims(powers, 0), ops.permute(vectors, (1, 0)))
