"""Stochastic gradient descent: SGD with momentum, and ASGD, which averages the Parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from runnel import ops
from runnel.optim.formulas import decayed, momentum, resting
from runnel.optim.group import ParamGroup
from runnel.optim.optimizer import Active, Optimizer
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (B. Polyak, 1964; Y. Nesterov, 1983), as PyTorch formulates it.

    p ← p - lr·d with d the gradient, or with momentum: b ← momentum·b + (1 - dampening)·gradient, d = b. The first b is
    the gradient itself.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate.
        momentum: the factor of the previous b; 0 keeps no b.
        dampening: the share of each gradient that b leaves out.
        weight_decay: the factor of the penalty weight_decay/2·|p|² that is added to the loss.
        nesterov: use d = gradient + momentum·b.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    """

    sparse_without = ("momentum", "weight_decay")
    saves_steps = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
             "nesterov": nesterov, "maximize": maximize},
        )  # fmt: skip

    def check(self, group: Mapping[str, Any], params: Iterable[Variable]) -> None:
        super().check(group, params)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("[SGD] nesterov must have a positive momentum and no dampening.")

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"momentum_buffer": 0.0} if group["momentum"] else {}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, factor = group["lr"], group["momentum"]
        share: Any = None
        if group.has("momentum") and group.has("dampening"):
            share = ops.where(steps == 1.0, 1.0, ops.full_like(steps, 1 - group["dampening"]))
        for i, p, g in active:
            direction = decayed(group, p, g)
            if group.has("momentum"):
                fresh = direction if share is None else direction * ops.cast(share[i], p.dtype)
                moved = momentum(self.state[p]["momentum_buffer"], fresh, factor)
                direction = direction + moved * factor if group.has("nesterov") else moved
            p.assign(resting(p, g, p.value - direction * lr, p.value))


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (B. Polyak, A. Juditsky, 1992; as in L. Bottou's SGD, 2010).

    p ← (1 - lambd·η)·p - η·gradient, with η = lr in the first step and lr/(1 + lambd·lr·t)^alpha after step t. The
    state ``ax`` is the average of p: ax ← ax + μ·(p - ax) with μ = 1/max(1, t - t0).

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate of the first step.
        lambd: how fast p and η decay.
        alpha: the power with which η decays.
        t0: the step at which averaging starts.
        weight_decay: the factor of the penalty weight_decay/2·|p|² that is added to the loss.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.ASGD(model.parameters(), lr=0.01, t0=1000)
        >>> averages = [optimizer.state[p]["ax"] for p in model.parameters()]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize},
        )

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        return {"eta": np.full((), group["lr"], np.float64), "mu": np.ones(()), "ax": 0.0}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, lambd, alpha, t0 = group["lr"], group["lambd"], group["alpha"], group["t0"]
        for i, p, g in active:
            state = self.state[p]
            eta, mu, average = ops.where(steps[i] == 1.0, lr, state["eta"].value), state["mu"].value, state["ax"].value
            size, share = ops.cast(eta, p.dtype), ops.cast(mu, p.dtype)
            value = p.value * ops.cast(1.0 - eta * lambd, p.dtype) - decayed(group, p, g) * size
            p.assign(value)
            state["ax"].assign(ops.where(mu == 1.0, value, average + (value - average) * share))
            state["eta"].assign(lr / ops.pow(steps[i] * (lambd * lr) + 1.0, ops.full_like(steps[i], alpha)))
            state["mu"].assign(1.0 / ops.maximum(steps[i] - t0, 1.0))
