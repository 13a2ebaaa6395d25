"""Muon: a momentum made orthogonal, for matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from runnel import ops
from runnel.core.dtypes import bfloat16
from runnel.optim.formulas import Active, mean, shrunk
from runnel.optim.group import ParamGroup
from runnel.optim.optimizer import Optimizer
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


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
        for p in params:
            if p.ndim != 2:
                raise ValueError(
                    f"[Muon] params must be matrices; {p.described} has shape {p.shape}. Use AdamW for it."
                )

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"momentum_buffer": 0.0}

    def update(self, group: ParamGroup, active: Active, steps: Variable) -> None:
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
