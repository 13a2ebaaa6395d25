"""Adagrad (J. Duchi, E. Hazan, Y. Singer, 2011)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, decayed
from runnel.optim.rows import resting
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Adagrad(Optimizer):
    """p ← p - lr/(1 + (t-1)·lr_decay) · gradient / (√s + eps), with s the sum of the gradient's squares so far."""

    accepts_sparse = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def changes_all_rows(self, group: Mapping[str, Any]) -> str:
        return "weight_decay" if group["weight_decay"] else ""

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"sum": group["initial_accumulator_value"]}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        after = counted(steps, active)
        decay = group["lr_decay"]
        rates = group["lr"] / ((after - 1.0) * decay + 1.0)
        eps = group["eps"]
        for i, p, g in active:
            gradient = decayed(group, p, g)
            before, value = self.state[p]["sum"].value, p.value
            total = before + gradient * gradient
            self.state[p]["sum"].assign(resting(p, g, total, before))
            p.assign(resting(p, g, value - gradient / (ops.sqrt(total) + eps) * ops.cast(rates, p.dtype)[i], value))
