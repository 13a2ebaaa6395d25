"""RAdam: Adam whose variance is rectified in the first steps (L. Liu et al., 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, one_of, penalized
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class RAdam(Optimizer):
    """p ← p - lr · r·m̂/√v̂ while ρ > 5, else p ← p - lr·m̂; m̂ and v̂ as in Adam.

    ρ∞ = 2/(1 - β₂) - 1, ρ = ρ∞ - 2tβ₂ᵗ/(1 - β₂ᵗ), r² = (ρ - 4)(ρ - 2)ρ∞ / ((ρ∞ - 4)(ρ∞ - 2)ρ).
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        after = counted(steps, active)
        beta2 = group.number(lambda h: h["betas"][1], "beta2")
        one_less_beta1 = group.number(lambda h: 1 - h["betas"][0], "1 - beta1")
        one_less_beta2 = group.number(lambda h: 1 - h["betas"][1], "1 - beta2")
        eps = group["eps"]
        lr = group["lr"]
        sizes = lr / (1.0 - ops.pow(group.number(lambda h: h["betas"][0], "beta1"), after))
        faded = ops.pow(beta2, after)
        limit = group.number(lambda h: _limit(h["betas"][1]), "rho_inf")
        of_limit = group.number(lambda h: _of_limit(_limit(h["betas"][1])), "rho_inf / ((rho_inf - 4) (rho_inf - 2))")
        rho = limit - after * faded * 2.0 / (1.0 - faded)
        known = rho > 5.0
        safe = ops.where(known, rho, 6.0)
        factors = ops.sqrt((safe - 4.0) * (safe - 2.0) * of_limit / safe * (1.0 - faded))
        for i, p, g in active:
            state = self.state[p]
            value, gradient = penalized(group, p, g)
            mean = state["exp_avg"].value
            mean = mean + (gradient - mean) * one_less_beta1
            square = state["exp_avg_sq"].value * beta2 + gradient * gradient * one_less_beta2
            state["exp_avg"].assign(mean)
            state["exp_avg_sq"].assign(square)
            rectified = one_of(factors, i, p) / (ops.sqrt(square) + eps)
            p.assign(value - mean * one_of(sizes, i, p) * ops.where(known[i], rectified, 1.0))


def _limit(beta2: float) -> float:
    return 2 / (1 - beta2) - 1


def _of_limit(limit: float) -> float:
    """Of no use, and never used, where ρ stays below 5."""
    return limit / ((limit - 4) * (limit - 2)) if limit > 5 else 0.0
