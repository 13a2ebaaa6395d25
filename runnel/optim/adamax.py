"""Adamax (D. Kingma, J. Ba, "Adam", section 7.1, 2014)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, decayed, one_of
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Adamax(Optimizer):
    """p ← p - lr/(1 - β₁ᵗ) · m / u, with m the running mean of the gradient and u ← max(β₂·u, \\|gradient\\| + eps)."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        after = counted(steps, active)
        lr = group["lr"]
        sizes = lr / (1.0 - ops.pow(group.number(lambda h: h["betas"][0], "beta1"), after))
        one_less_beta1 = group.number(lambda h: 1 - h["betas"][0], "1 - beta1")
        beta2 = group.number(lambda h: h["betas"][1], "beta2")
        eps = group["eps"]
        for i, p, g in active:
            state = self.state[p]
            gradient = decayed(group, p, g)
            mean = state["exp_avg"].value
            mean = mean + (gradient - mean) * one_less_beta1
            greatest = ops.maximum(state["exp_inf"].value * beta2, ops.abs(gradient) + eps)
            state["exp_avg"].assign(mean)
            state["exp_inf"].assign(greatest)
            p.assign(p.value - mean / greatest * one_of(sizes, i, p))
