"""RMSprop (T. Hinton, "Neural networks for machine learning", lecture 6, 2012; centered: A. Graves, 2013)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, decayed
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class RMSprop(Optimizer):
    """p ← p - lr · gradient / (√v + eps), with v the running mean of its square (``centered``: its variance);
    with momentum the quotient is accumulated first."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        names = ["square_avg"]
        if group["momentum"]:
            names.append("momentum_buffer")
        if group["centered"]:
            names.append("grad_avg")
        return dict.fromkeys(names, 0.0)

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        counted(steps, active)
        lr = group["lr"]
        alpha = group["alpha"]
        one_less_alpha = group.number(lambda h: 1 - h["alpha"], "1 - alpha")
        eps = group["eps"]
        for _, p, g in active:
            state = self.state[p]
            gradient = decayed(group, p, g)
            square = state["square_avg"].value * alpha + gradient * gradient * one_less_alpha
            state["square_avg"].assign(square)
            spread = square
            if group.has("centered"):
                mean = state["grad_avg"].value
                mean = mean + (gradient - mean) * one_less_alpha
                state["grad_avg"].assign(mean)
                spread = square - mean * mean
            direction = gradient / (ops.sqrt(spread) + eps)
            if group.has("momentum"):
                momentum = group["momentum"]
                direction = state["momentum_buffer"].value * momentum + direction
                state["momentum_buffer"].assign(direction)
            p.assign(p.value - direction * lr)
