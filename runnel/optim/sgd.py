"""Stochastic gradient descent, with momentum (B. Polyak, 1964; Y. Nesterov, 1983; in PyTorch's formulation)."""

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


class SGD(Optimizer):
    """p ← p - lr·d, where d is the gradient, or with momentum: b ← momentum·b + (1 - dampening)·gradient, d = b.

    The first b is the gradient itself. ``nesterov`` takes d = gradient + momentum·b.
    """

    accepts_sparse = True
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
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def check(self, group: Mapping[str, Any]) -> None:
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("[SGD] nesterov needs a positive momentum and no dampening.")

    def changes_all_rows(self, group: Mapping[str, Any]) -> str:
        return next((name for name in ("momentum", "weight_decay") if group[name]), "")

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"momentum_buffer": 0.0} if group["momentum"] else {}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        lr = group["lr"]
        momentum = group["momentum"] if group.has("momentum") else None
        share: Any = None
        if momentum is not None and group.has("dampening"):
            after = counted(steps, active)
            share = ops.where(after == 1.0, 1.0, group.number(lambda h: 1 - h["dampening"], "1 - dampening"))
        for i, p, g in active:
            direction = decayed(group, p, g)
            if momentum is not None:
                buffer = self.state[p]["momentum_buffer"]
                fresh = direction if share is None else direction * ops.cast(share[i], p.dtype)
                moved = buffer.value * momentum + fresh
                buffer.assign(moved)
                direction = direction + moved * momentum if group.has("nesterov") else moved
            p.assign(resting(p, g, p.value - direction * lr, p.value))
