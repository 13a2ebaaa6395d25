"""NAdam: Adam with Nesterov's momentum (T. Dozat, 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, one_of, penalized
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class NAdam(Optimizer):
    """p ← p - lr · ((1 - μₜ)/(1 - Πₜ) · gradient + μₜ₊₁/(1 - Πₜμₜ₊₁) · m) / (√v̂ + eps), with m, v and v̂ as in Adam,
    μₜ = β₁·(1 - 0.96^(t·momentum_decay)/2) and Πₜ = μ₁·…·μₜ."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        return {"mu_product": np.ones(()), "exp_avg": 0.0, "exp_avg_sq": 0.0}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        after = counted(steps, active)
        lr = group["lr"]
        beta1 = group.number(lambda h: h["betas"][0], "beta1")
        beta2 = group.number(lambda h: h["betas"][1], "beta2")
        fading = group.number(lambda h: 0.96 ** h["momentum_decay"], "0.96 ** momentum_decay")
        now = (1.0 - ops.pow(fading, after) * 0.5) * beta1
        following = (1.0 - ops.pow(fading, after + 1.0) * 0.5) * beta1
        corrections = 1.0 - ops.pow(beta2, after)
        one_less_beta1 = group.number(lambda h: 1 - h["betas"][0], "1 - beta1")
        one_less_beta2 = group.number(lambda h: 1 - h["betas"][1], "1 - beta2")
        eps = group["eps"]
        for i, p, g in active:
            state = self.state[p]
            value, gradient = penalized(group, p, g)
            product = state["mu_product"].value * now[i]
            of_gradient = (1.0 - now[i]) / (1.0 - product) * lr
            of_mean = following[i] / (1.0 - product * following[i]) * lr
            mean = state["exp_avg"].value
            mean = mean + (gradient - mean) * one_less_beta1
            square = state["exp_avg_sq"].value * beta2 + gradient * gradient * one_less_beta2
            state["mu_product"].assign(product)
            state["exp_avg"].assign(mean)
            state["exp_avg_sq"].assign(square)
            spread = ops.sqrt(square / one_of(corrections, i, p)) + eps
            along = gradient * ops.cast(of_gradient, p.dtype) + mean * ops.cast(of_mean, p.dtype)
            p.assign(value - along / spread)
