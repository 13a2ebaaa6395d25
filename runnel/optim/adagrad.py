"""Optimizers that divide each gradient by the size of earlier ones: Adagrad, Adadelta and RMSprop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.formulas import decayed, item, mean, momentum, resting
from runnel.optim.group import ParamGroup
from runnel.optim.optimizer import Active, Optimizer
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Adagrad(Optimizer):
    """Adagrad (J. Duchi, E. Hazan, Y. Singer, 2011).

    p ← p - lr/(1 + (t - 1)·lr_decay)·gradient/(√s + eps), with s the sum of the squares of all gradients so far.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate of the first step.
        lr_decay: how fast the learning rate decays.
        weight_decay: the factor of the penalty weight_decay/2·|p|² that is added to the loss.
        initial_accumulator_value: s before the first step.
        eps: a small number that is added to √s.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.Adagrad(model.parameters(), lr=0.01)
    """

    sparse_without = ("weight_decay",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay,
             "initial_accumulator_value": initial_accumulator_value, "eps": eps, "maximize": maximize},
        )  # fmt: skip

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"sum": group["initial_accumulator_value"]}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        rates = group["lr"] / ((steps - 1.0) * group["lr_decay"] + 1.0)
        eps = group["eps"]
        for i, p, g in active:
            gradient, total, value = decayed(group, p, g), self.state[p]["sum"], p.value
            before = total.value
            after = before + gradient * gradient
            total.assign(resting(p, g, after, before))
            p.assign(resting(p, g, value - gradient / (ops.sqrt(after) + eps) * item(rates, i, p), value))


class Adadelta(Optimizer):
    """Adadelta (M. Zeiler, 2012).

    p ← p - lr·Δ with Δ = √(u + eps)/√(v + eps)·gradient, where v and u are the running means of the squares of the
    gradient and of Δ.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate, which multiplies Δ.
        rho: the share of the previous means, in [0, 1].
        eps: a small number that is added to u and v.
        weight_decay: the factor of the penalty weight_decay/2·|p|² that is added to the loss.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.Adadelta(model.parameters())
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize})

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, rho, eps = group["lr"], group["rho"], group["eps"]
        for _, p, g in active:
            state, gradient = self.state[p], decayed(group, p, g)
            square = state["square_avg"].value * rho + gradient * gradient * (1 - rho)
            before = state["acc_delta"].value
            delta = ops.sqrt(before + eps) / ops.sqrt(square + eps) * gradient
            state["square_avg"].assign(square)
            state["acc_delta"].assign(before * rho + delta * delta * (1 - rho))
            p.assign(p.value - delta * lr)


class RMSprop(Optimizer):
    """RMSprop (T. Hinton, "Neural networks for machine learning", lecture 6, 2012; centered: A. Graves, 2013).

    p ← p - lr·d with d = gradient/(√v + eps) and v the running mean of the gradient's square; with momentum
    b ← momentum·b + d and p ← p - lr·b.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate.
        alpha: the share of the previous v, in [0, 1].
        eps: a small number that is added to √v.
        weight_decay: the factor of the penalty weight_decay/2·|p|² that is added to the loss.
        momentum: the factor of the previous b; 0 keeps no b.
        centered: subtract the square of the gradient's running mean from v, so that v is the variance.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
             "centered": centered, "maximize": maximize},
        )  # fmt: skip

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        optional = {"momentum_buffer": group["momentum"], "grad_avg": group["centered"]}
        return dict.fromkeys(("square_avg", *(name for name, is_on in optional.items() if is_on)), 0.0)

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, alpha, eps = group["lr"], group["alpha"], group["eps"]
        for _, p, g in active:
            state, gradient = self.state[p], decayed(group, p, g)
            square = state["square_avg"].value * alpha + gradient * gradient * (1 - alpha)
            state["square_avg"].assign(square)
            if group.has("centered"):
                average = mean(state["grad_avg"], gradient, 1 - alpha)
                square = square - average * average
            direction = gradient / (ops.sqrt(square) + eps)
            if group.has("momentum"):
                direction = momentum(state["momentum_buffer"], direction, group["momentum"])
            p.assign(p.value - direction * lr)
