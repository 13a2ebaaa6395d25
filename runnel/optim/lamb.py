"""LAMB: Adam with a rate for each layer, for large batches (Y. You et al., 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, one_of
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class LAMB(Optimizer):
    """p ← p - lr · \\|p\\|/\\|r\\| · r with r = m̂ / (√v̂ + eps) + weight_decay·p, and m̂, v̂ as in Adam.

    The norms are those of the whole Parameter; where one of them is 0 the quotient counts as 1.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        after = counted(steps, active)
        lr = group["lr"]
        means = 1.0 / (1.0 - ops.pow(group.number(lambda h: h["betas"][0], "beta1"), after))
        scales = ops.rsqrt(1.0 - ops.pow(group.number(lambda h: h["betas"][1], "beta2"), after))
        one_less_beta1 = group.number(lambda h: 1 - h["betas"][0], "1 - beta1")
        beta2 = group.number(lambda h: h["betas"][1], "beta2")
        one_less_beta2 = group.number(lambda h: 1 - h["betas"][1], "1 - beta2")
        eps = group["eps"]
        for i, p, g in active:
            state, value = self.state[p], p.value
            mean = state["exp_avg"].value
            mean = mean + (g - mean) * one_less_beta1
            square = state["exp_avg_sq"].value * beta2 + g * g * one_less_beta2
            state["exp_avg"].assign(mean)
            state["exp_avg_sq"].assign(square)
            direction = mean * one_of(means, i, p) / (ops.sqrt(square) * one_of(scales, i, p) + eps)
            if group.has("weight_decay"):
                direction = direction + value * group["weight_decay"]
            length, way = ops.sqrt(ops.sum(value * value)), ops.sqrt(ops.sum(direction * direction))
            usable = ops.logical_and(length > 0.0, way > 0.0)
            trust = ops.where(usable, length / ops.where(usable, way, 1.0), 1.0)
            p.assign(value - direction * (trust * lr))
