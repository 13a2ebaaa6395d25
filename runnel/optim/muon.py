"""Muon: momentum, orthogonalised by Newton-Schulz iterations (K. Jordan et al., 2024; J. Liu et al., 2025)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.core.dtypes import bfloat16
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, shrunk
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Muon(Optimizer):
    """p ← (1 - lr·weight_decay)·p - lr·s·O, for matrices: the weights of hidden layers. Others are for AdamW.

    O is near the orthogonal matrix closest to the momentum B ← momentum·B + (1 - momentum)·gradient (``nesterov``: to
    momentum·B + (1 - momentum)·gradient once more): ``ns_steps`` times X ← a·X + (b·A + c·A²)·X with A = X·Xᵀ, in
    bfloat16, from X = B/max(\\|B\\|, eps). For m rows and n columns s is √max(1, m/n), or with
    ``adjust_lr_fn="match_rms_adamw"`` 0.2·√max(m, n).
    """

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
        super().__init__(params, hyperparameters_in(locals()))

    saves_steps = False

    def check_parameter(self, p: Variable) -> None:
        if p.ndim != 2:
            raise ValueError(f"[Muon] optimizes matrices; {p.described} has shape {p.shape}. Give others to AdamW.")

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"momentum_buffer": 0.0}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        momentum = group["momentum"]
        one_less = group.number(lambda h: 1 - h["momentum"], "1 - momentum")
        for _, p, g in active:
            buffer = self.state[p]["momentum_buffer"]
            moved = buffer.value + (g - buffer.value) * one_less
            buffer.assign(moved)
            direction = g + (moved - g) * momentum if group.has("nesterov") else moved
            scale = _scale(p.shape[0], p.shape[1], group.plain["adjust_lr_fn"])
            size = group.number(lambda h, scale=scale: h["lr"] * scale, "adjusted lr")  # type: ignore[misc]
            p.assign(shrunk(group, p) - ops.cast(_orthogonal(group, direction), p.dtype) * size)


def _scale(rows: int, columns: int, rule: str | None) -> float:
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1.0, rows / max(columns, 1)))


def _orthogonal(group: ParamGroup, direction: Tensor) -> Tensor:
    a, b, c = (group.number(lambda h, k=k: h["ns_coefficients"][k], f"ns_coefficients[{k}]") for k in range(3))  # type: ignore[misc]
    x: Tensor = ops.cast(direction, bfloat16)
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = ops.permute(x, (1, 0))
    length = ops.sqrt(ops.sum(x * x))
    x = x / ops.maximum(length, group["eps"])
    for _ in range(group.plain["ns_steps"]):
        gram = ops.matmul(x, ops.permute(x, (1, 0)))
        x = x * a + ops.matmul(gram * b + ops.matmul(gram, gram) * c, x)
    return ops.permute(x, (1, 0)) if tall else x
