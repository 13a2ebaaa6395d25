"""Resilient backpropagation, without weight backtracking (M. Riedmiller, H. Braun, 1993)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, one_of
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Rprop(Optimizer):
    """p ← p - sign(gradient)·size, for each element with a size of its own.

    It begins as lr, grows by ``etas[1]`` where the sign stays, shrinks by ``etas[0]`` where it changes (the gradient
    counts as 0 then), and stays within ``step_sizes``. For gradients of whole data sets.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float]:
        return {"prev": 0.0, "step_size": group["lr"]}

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        after = counted(steps, active)
        lr = group["lr"]
        shrinking = group.number(lambda h: h["etas"][0], "etas[0]")
        growing = group.number(lambda h: h["etas"][1], "etas[1]")
        smallest = group.number(lambda h: h["step_sizes"][0], "step_sizes[0]")
        greatest = group.number(lambda h: h["step_sizes"][1], "step_sizes[1]")
        for i, p, g in active:
            state = self.state[p]
            size = ops.where(one_of(after, i, p) == 1.0, lr, state["step_size"].value)
            agreement = g * state["prev"].value
            moved = ops.where(agreement > 0.0, size * growing, ops.where(agreement < 0.0, size * shrinking, size))
            size = ops.minimum(ops.maximum(moved, smallest), greatest)
            gradient = ops.where(agreement < 0.0, 0.0, g)
            state["step_size"].assign(size)
            state["prev"].assign(gradient)
            p.assign(p.value - ops.sign(gradient) * size)
