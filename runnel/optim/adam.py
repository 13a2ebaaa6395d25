"""Adam (D. Kingma, J. Ba, 2014), AMSGrad (S. Reddi et al., 2018) and AdamW (I. Loshchilov, F. Hutter, 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, one_of, penalized
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Adam(Optimizer):
    """p ← p - lr · m̂ / (√v̂ + eps), with m and v the running means of the gradient and its square, and m̂ = m/(1 - β₁ᵗ),
    v̂ = v/(1 - β₂ᵗ). With ``amsgrad`` the greatest v so far takes v's place. Order of operations as in PyTorch.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")
        return dict.fromkeys(names, 0.0)

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        after = counted(steps, active)
        lr = group["lr"]
        sizes = lr / (1.0 - ops.pow(group.number(lambda h: h["betas"][0], "beta1"), after))
        scales = ops.rsqrt(1.0 - ops.pow(group.number(lambda h: h["betas"][1], "beta2"), after))
        one_less_beta1 = group.number(lambda h: 1 - h["betas"][0], "1 - beta1")
        beta2 = group.number(lambda h: h["betas"][1], "beta2")
        one_less_beta2 = group.number(lambda h: 1 - h["betas"][1], "1 - beta2")
        eps = group["eps"]
        for i, p, g in active:
            state = self.state[p]
            value, gradient = penalized(group, p, g)
            mean = state["exp_avg"].value
            mean = mean + (gradient - mean) * one_less_beta1
            square = state["exp_avg_sq"].value * beta2 + gradient * gradient * one_less_beta2
            state["exp_avg"].assign(mean)
            state["exp_avg_sq"].assign(square)
            if group.has("amsgrad"):
                square = ops.maximum(state["max_exp_avg_sq"].value, square)
                state["max_exp_avg_sq"].assign(square)
            p.assign(value - mean / (ops.sqrt(square) * one_of(scales, i, p) + eps) * one_of(sizes, i, p))


class AdamW(Adam):
    """Adam with decoupled weight decay: p shrinks by the factor 1 - lr·weight_decay, and the means do not see it."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip
