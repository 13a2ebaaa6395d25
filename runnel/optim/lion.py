"""Lion: the sign of a momentum (X. Chen et al., "Symbolic discovery of optimization algorithms", 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, shrunk
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Lion(Optimizer):
    """p ← (1 - lr·weight_decay)·p - lr·sign(β₁·m + (1 - β₁)·gradient); then m ← β₂·m + (1 - β₂)·gradient.

    Rates are 3 to 10 times smaller than AdamW's, and weight decay that much greater.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"exp_avg": 0.0}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        counted(steps, active)
        lr = group["lr"]
        one_less_beta1 = group.number(lambda h: 1 - h["betas"][0], "1 - beta1")
        one_less_beta2 = group.number(lambda h: 1 - h["betas"][1], "1 - beta2")
        for _, p, g in active:
            mean = self.state[p]["exp_avg"].value
            p.assign(shrunk(group, p) - ops.sign(mean + (g - mean) * one_less_beta1) * lr)
            self.state[p]["exp_avg"].assign(mean + (g - mean) * one_less_beta2)
