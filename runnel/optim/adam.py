"""Adam and its relatives: AdamW, Adamax, NAdam, RAdam, LAMB for large batches, and SparseAdam for few rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from runnel import ops
from runnel.optim.formulas import decayed, item, mean, shrunk, touched
from runnel.optim.group import ParamGroup
from runnel.optim.optimizer import Active, Optimizer
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


def _penalized(group: ParamGroup, p: Variable, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return Parameter and gradient after weight decay, decoupled or not as the group says."""
    if group.has("decoupled_weight_decay"):
        return shrunk(group, p), g
    return p.value, decayed(group, p, g)


def _moments(state: Mapping[str, Variable], g: Tensor, beta1: Any, beta2: Any) -> tuple[Tensor, Tensor]:
    """Add a gradient to its running mean and to the running mean of its square; return both."""
    square = state["exp_avg_sq"].value * beta2 + g * g * (1 - beta2)
    state["exp_avg_sq"].assign(square)
    return mean(state["exp_avg"], g, 1 - beta1), square


class _WithMoments(Optimizer):
    """An optimizer that keeps the running means of the gradient and of its square."""

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}


class Adam(_WithMoments):
    """Adam (D. Kingma, J. Ba, 2014), with AMSGrad (S. Reddi et al., 2018). The order of operations is PyTorch's.

    p ← p - lr·m̂/(√v̂ + eps), with m and v the running means of the gradient and of its square, m̂ = m/(1 - β₁ᵗ) and
    v̂ = v/(1 - β₂ᵗ) in step t.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate.
        betas: the shares β₁ and β₂ of the previous means, in [0, 1).
        eps: a small number that is added to √v̂.
        weight_decay: the factor of the penalty weight_decay/2·|p|² that is added to the loss.
        amsgrad: use the largest v so far instead of v.
        maximize: go up the gradient instead of down.
        decoupled_weight_decay: multiply p by 1 - lr·weight_decay before each step instead of adding the penalty, so
            that m and v do not include it. :class:`AdamW` does so.

    Example:
        >>> optimizer = optim.Adam(model.parameters(), lr=1e-3)
        >>> loss.backward()
        >>> optimizer.step()
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
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
             "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay},
        )  # fmt: skip

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        return {**super().init_state(p, group), **({"max_exp_avg_sq": 0.0} if group["amsgrad"] else {})}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]
        sizes, scales = lr / (1.0 - ops.pow(beta1, steps)), ops.rsqrt(1.0 - ops.pow(beta2, steps))
        for i, p, g in active:
            value, gradient = _penalized(group, p, g)
            average, square = _moments(self.state[p], gradient, beta1, beta2)
            if group.has("amsgrad"):
                square = ops.maximum(self.state[p]["max_exp_avg_sq"].value, square)
                self.state[p]["max_exp_avg_sq"].assign(square)
            p.assign(value - average / (ops.sqrt(square) * item(scales, i, p) + eps) * item(sizes, i, p))


class AdamW(Adam):
    """Adam with decoupled weight decay (I. Loshchilov, F. Hutter, 2017).

    Each step multiplies p by 1 - lr·weight_decay; the means do not include the decay.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate.
        betas: the shares β₁ and β₂ of the previous means, in [0, 1).
        eps: a small number that is added to √v̂.
        weight_decay: the decay of p in each step, in units of lr.
        amsgrad: use the largest v so far instead of v.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    """

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
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True)


class Adamax(Optimizer):
    """Adamax (D. Kingma, J. Ba, "Adam", section 7.1, 2014): Adam with a maximum norm.

    p ← p - lr/(1 - β₁ᵗ)·m/u, with m the running mean of the gradient and u ← max(β₂·u, \\|gradient\\| + eps).

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate.
        betas: the shares β₁ of the previous mean and β₂ of the previous maximum, in [0, 1).
        eps: a small number that is added to the size of the gradient.
        weight_decay: the factor of the penalty weight_decay/2·|p|² that is added to the loss.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.Adamax(model.parameters(), lr=2e-3)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        )

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]
        sizes = lr / (1.0 - ops.pow(beta1, steps))
        for i, p, g in active:
            state, gradient = self.state[p], decayed(group, p, g)
            average = mean(state["exp_avg"], gradient, 1 - beta1)
            largest = ops.maximum(state["exp_inf"].value * beta2, ops.abs(gradient) + eps)
            state["exp_inf"].assign(largest)
            p.assign(p.value - average / largest * item(sizes, i, p))


class NAdam(_WithMoments):
    """NAdam (T. Dozat, 2016): Adam with Nesterov's momentum.

    p ← p - lr·((1 - μₜ)/(1 - Πₜ)·gradient + μₜ₊₁/(1 - Πₜ·μₜ₊₁)·m)/(√v̂ + eps), with m, v and v̂ as in :class:`Adam`,
    μₜ = β₁·(1 - 0.96^(t·momentum_decay)/2) and Πₜ = μ₁·…·μₜ.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate.
        betas: the shares β₁ and β₂ of the previous means, in [0, 1).
        eps: a small number that is added to √v̂.
        weight_decay: the factor of the penalty weight_decay/2·|p|² that is added to the loss.
        momentum_decay: how fast μ grows from β₁/2 to β₁.
        decoupled_weight_decay: multiply p by 1 - lr·weight_decay instead of adding the penalty.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.NAdam(model.parameters(), lr=2e-3)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
             "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize},
        )  # fmt: skip

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        return {"mu_product": np.ones(()), **super().init_state(p, group)}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, (beta1, beta2), eps, decay = group["lr"], group["betas"], group["eps"], group["momentum_decay"]
        now = (1.0 - ops.pow(0.96, steps * decay) * 0.5) * beta1
        following = (1.0 - ops.pow(0.96, (steps + 1.0) * decay) * 0.5) * beta1
        corrections = 1.0 - ops.pow(beta2, steps)
        for i, p, g in active:
            value, gradient = _penalized(group, p, g)
            average, square = _moments(self.state[p], gradient, beta1, beta2)
            product = self.state[p]["mu_product"].value * now[i]
            self.state[p]["mu_product"].assign(product)
            of_gradient = (1.0 - now[i]) / (1.0 - product) * lr
            of_mean = following[i] / (1.0 - product * following[i]) * lr
            along = gradient * ops.cast(of_gradient, p.dtype) + average * ops.cast(of_mean, p.dtype)
            p.assign(value - along / (ops.sqrt(square / item(corrections, i, p)) + eps))


class RAdam(_WithMoments):
    """RAdam (L. Liu et al., 2019): Adam whose variance is rectified in the first steps.

    p ← p - lr·r·m̂/√v̂ while ρ > 5, else p ← p - lr·m̂, with m̂ and v̂ as in :class:`Adam`, ρ∞ = 2/(1 - β₂) - 1,
    ρ = ρ∞ - 2t·β₂ᵗ/(1 - β₂ᵗ) and r² = (ρ - 4)(ρ - 2)ρ∞/((ρ∞ - 4)(ρ∞ - 2)ρ).

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate.
        betas: the shares β₁ and β₂ of the previous means, in [0, 1).
        eps: a small number that is added to √v.
        weight_decay: the factor of the penalty weight_decay/2·|p|² that is added to the loss.
        decoupled_weight_decay: multiply p by 1 - lr·weight_decay instead of adding the penalty.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.RAdam(model.parameters(), lr=1e-3)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
             "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize},
        )  # fmt: skip

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]
        sizes, faded = lr / (1.0 - ops.pow(beta1, steps)), ops.pow(beta2, steps)
        limit = ops.full_like(steps, 2.0) / (1 - beta2) - 1.0
        rho = limit - steps * faded * 2.0 / (1.0 - faded)
        known = rho > 5.0
        safe, bound = ops.where(known, rho, 6.0), ops.maximum(limit, 6.0)
        of_limit = bound / ((bound - 4.0) * (bound - 2.0))
        factors = ops.sqrt((safe - 4.0) * (safe - 2.0) * of_limit / safe * (1.0 - faded))
        for i, p, g in active:
            value, gradient = _penalized(group, p, g)
            average, square = _moments(self.state[p], gradient, beta1, beta2)
            rectified = item(factors, i, p) / (ops.sqrt(square) + eps)
            p.assign(value - average * item(sizes, i, p) * ops.where(known[i], rectified, 1.0))


class SparseAdam(_WithMoments):
    """Adam for gradients with few rows, such as the gradient of ``nn.Embedding(sparse=True)``: PyTorch's "lazy" Adam.

    p ← p - lr·√(1 - β₂ᵗ)/(1 - β₁ᵗ)·m/(√v + eps) in the rows that have a gradient. The means of the other rows do not
    fade. t counts steps, and not how often a row had a gradient.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate.
        betas: the shares β₁ and β₂ of the previous means, in [0, 1).
        eps: a small number that is added to √v.
        maximize: go up the gradient instead of down.

    Example:
        >>> table = nn.Embedding(10_000, 64, sparse=True)
        >>> optimizer = optim.SparseAdam(table.parameters(), lr=1e-3)
    """

    sparse_without = ()

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]
        sizes = lr * ops.sqrt(1.0 - ops.pow(beta2, steps)) / (1.0 - ops.pow(beta1, steps))
        for i, p, g in active:
            state, named, value = self.state[p], touched(g), p.value
            average, square = state["exp_avg"].value, state["exp_avg_sq"].value
            new_average = average + (g - average) * (1 - beta1)
            new_square = square + (g * g - square) * (1 - beta2)
            state["exp_avg"].assign(ops.where(named, new_average, average))
            state["exp_avg_sq"].assign(ops.where(named, new_square, square))
            moved = value - new_average / (ops.sqrt(new_square) + eps) * item(sizes, i, p)
            p.assign(ops.where(named, moved, value))


class LAMB(_WithMoments):
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

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]
        means, scales = 1.0 / (1.0 - ops.pow(beta1, steps)), ops.rsqrt(1.0 - ops.pow(beta2, steps))
        for i, p, g in active:
            average, square = _moments(self.state[p], g, beta1, beta2)
            direction = average * item(means, i, p) / (ops.sqrt(square) * item(scales, i, p) + eps)
            value = p.value
            if group.has("weight_decay"):
                direction = direction + value * group["weight_decay"]
            length, way = ops.sqrt(ops.sum(value * value)), ops.sqrt(ops.sum(direction * direction))
            usable = ops.logical_and(length > 0.0, way > 0.0)
            trust = ops.where(usable, length / ops.where(usable, way, 1.0), 1.0)
            p.assign(value - direction * (trust * lr))
