"""Averaged stochastic gradient descent (B. Polyak, A. Juditsky, 1992; as in L. Bottou's SGD, 2010)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, decayed
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class ASGD(Optimizer):
    """p ← (1 - lambd·η)·p - η·gradient, with η = lr in the first step and lr/(1 + lambd·lr·t)^alpha after step t.

    The state ``ax`` is the average of p from step ``t0`` on: ax ← ax + μ·(p - ax), μ = 1/max(1, t - t0).
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        return {"eta": np.full((), group["lr"], np.float64), "mu": np.ones(()), "ax": 0.0}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        after = counted(steps, active)
        lr = group["lr"]
        lambd = group["lambd"]
        alpha = group["alpha"]
        fading = group.number(lambda h: h["lambd"] * h["lr"], "lambd * lr")
        t0 = group["t0"]
        for i, p, g in active:
            state = self.state[p]
            eta, mu, average = ops.where(after[i] == 1.0, lr, state["eta"].value), state["mu"].value, state["ax"].value
            size, share = ops.cast(eta, p.dtype), ops.cast(mu, p.dtype)
            value = p.value * ops.cast(1.0 - eta * lambd, p.dtype) - decayed(group, p, g) * size
            p.assign(value)
            state["ax"].assign(ops.where(mu == 1.0, value, average + (value - average) * share))
            state["eta"].assign(lr / ops.pow(after[i] * fading + 1.0, alpha))
            state["mu"].assign(1.0 / ops.maximum(after[i] - t0, 1.0))
