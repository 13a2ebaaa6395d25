"""Adadelta (M. Zeiler, 2012)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, decayed
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Adadelta(Optimizer):
    """p ← p - lr·Δ with Δ = √(u + eps)/√(v + eps) · gradient; v and u are the running means of the squares of the
    gradient and of Δ, with the share ``rho`` of the old."""

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        counted(steps, active)
        lr = group["lr"]
        rho = group["rho"]
        one_less_rho = group.number(lambda h: 1 - h["rho"], "1 - rho")
        eps = group["eps"]
        for _, p, g in active:
            state = self.state[p]
            gradient = decayed(group, p, g)
            square = state["square_avg"].value * rho + gradient * gradient * one_less_rho
            before = state["acc_delta"].value
            delta = ops.sqrt(before + eps) / ops.sqrt(square + eps) * gradient
            state["square_avg"].assign(square)
            state["acc_delta"].assign(before * rho + delta * delta * one_less_rho)
            p.assign(p.value - delta * lr)
