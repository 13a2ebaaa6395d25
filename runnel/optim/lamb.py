"""LAMB: Adam with a learning rate for each layer, for large batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.adam import moments
from runnel.optim.group import ParamGroup
from runnel.optim.optimizer import Active, Optimizer, counted, one_of
from runnel.tensor.variable import Variable


class LAMB(Optimizer):
    """LAMB (Y. You et al., "Large batch optimization for deep learning", 2019).

    p ← p - lr·|p|/|r|·r with r = m̂/(√v̂ + eps) + weight_decay·p, and m̂, v̂ as in :class:`Adam`. The norms are over the
    whole Parameter; if one of them is 0, their quotient counts as 1.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate.
        betas: the shares β₁ and β₂ of the previous means, in [0, 1).
        eps: a small number that is added to √v̂.
        weight_decay: the factor of p in r.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.LAMB(model.parameters(), lr=2e-3, weight_decay=0.01)
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
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        )

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def update(self, group: ParamGroup, active: Active, steps: Variable) -> None:
        after = counted(steps, active)
        lr, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]
        means, scales = 1.0 / (1.0 - ops.pow(beta1, after)), ops.rsqrt(1.0 - ops.pow(beta2, after))
        for i, p, g in active:
            mean, square = moments(self.state[p], g, beta1, beta2)
            direction = mean * one_of(means, i, p) / (ops.sqrt(square) * one_of(scales, i, p) + eps)
            value = p.value
            if group.has("weight_decay"):
                direction = direction + value * group["weight_decay"]
            length, way = ops.sqrt(ops.sum(value * value)), ops.sqrt(ops.sum(direction * direction))
            usable = ops.logical_and(length > 0.0, way > 0.0)
            trust = ops.where(usable, length / ops.where(usable, way, 1.0), 1.0)
            p.assign(value - direction * (trust * lr))
