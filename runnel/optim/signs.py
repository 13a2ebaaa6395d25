"""Lion: steps along the sign of a momentum.
Resilient backpropagation: a step size for each element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.formulas import item, mean, shrunk
from runnel.optim.group import ParamGroup
from runnel.optim.optimizer import Active, Optimizer
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Lion(Optimizer):
    """Lion (X. Chen et al., "Symbolic discovery of optimization algorithms", 2023).

    p ← (1 - lr·weight_decay)·p - lr·sign(β₁·m + (1 - β₁)·gradient); then m ← β₂·m + (1 - β₂)·gradient.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the learning rate, 3 to 10 times smaller than for AdamW.
        betas: β₁ and β₂, in [0, 1).
        weight_decay: decoupled weight decay, 3 to 10 times larger than for AdamW.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.Lion(model.parameters(), lr=1e-4, weight_decay=0.1)
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
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize})

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"exp_avg": 0.0}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr, (beta1, beta2) = group["lr"], group["betas"]
        for _, p, g in active:
            average = self.state[p]["exp_avg"].value
            p.assign(shrunk(group, p) - ops.sign(average + (g - average) * (1 - beta1)) * lr)
            mean(self.state[p]["exp_avg"], g, 1 - beta2)


class Rprop(Optimizer):
    """Resilient backpropagation without weight backtracking (M. Riedmiller, H. Braun, 1993).

    p ← p - sign(gradient)·size, with a size for each element. A size starts as ``lr``, grows where the gradient keeps
    its sign, and shrinks where the sign changes; the gradient counts as 0 there. Use gradients of the whole data set.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the first size.
        etas: the factors by which sizes shrink (in (0, 1)) and grow (above 1).
        step_sizes: the smallest and the largest size.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.Rprop(model.parameters(), lr=0.01)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize})

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"prev": 0.0, "step_size": group["lr"]}

    def update(self, group: ParamGroup, active: Active, steps: Tensor) -> None:
        lr = group["lr"]
        (shrinking, growing), (smallest, largest) = group["etas"], group["step_sizes"]
        for i, p, g in active:
            state = self.state[p]
            size = ops.where(item(steps, i, p) == 1.0, lr, state["step_size"].value)
            agreement = g * state["prev"].value
            moved = ops.where(agreement > 0.0, size * growing, ops.where(agreement < 0.0, size * shrinking, size))
            size = ops.minimum(ops.maximum(moved, smallest), largest)
            gradient = ops.where(agreement < 0.0, 0.0, g)
            state["step_size"].assign(size)
            state["prev"].assign(gradient)
            p.assign(p.value - ops.sign(gradient) * size)
