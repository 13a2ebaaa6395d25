"""Adam for gradients that name few rows: ``nn.Embedding(sparse=True)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted
from runnel.optim.rows import touched
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class SparseAdam(Optimizer):
    """Adam on the rows that have a gradient: the means of other rows rest and do not fade (PyTorch's "lazy" Adam).

    p ← p - lr·√(1 - β₂ᵗ)/(1 - β₁ᵗ) · m / (√v + eps); t counts steps and not how often a row was named.
    """

    accepts_sparse = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return dict.fromkeys(("exp_avg", "exp_avg_sq"), 0.0)

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        after = counted(steps, active)
        first = 1.0 - ops.pow(group.number(lambda h: h["betas"][0], "beta1"), after)
        second = 1.0 - ops.pow(group.number(lambda h: h["betas"][1], "beta2"), after)
        sizes = group["lr"] * ops.sqrt(second) / first
        one_less_beta1 = group.number(lambda h: 1 - h["betas"][0], "1 - beta1")
        one_less_beta2 = group.number(lambda h: 1 - h["betas"][1], "1 - beta2")
        eps = group["eps"]
        for i, p, g in active:
            named = touched(g)
            state = self.state[p]
            value, mean, square = p.value, state["exp_avg"].value, state["exp_avg_sq"].value
            new_mean = mean + (g - mean) * one_less_beta1
            new_square = square + (g * g - square) * one_less_beta2
            moved = value - new_mean / (ops.sqrt(new_square) + eps) * ops.cast(sizes, p.dtype)[i]
            state["exp_avg"].assign(ops.where(named, new_mean, mean))
            state["exp_avg_sq"].assign(ops.where(named, new_square, square))
            p.assign(ops.where(named, moved, value))
