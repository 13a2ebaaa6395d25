"""Adafactor (N. Shazeer, M. Stern, 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from runnel import ops
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.optimizer import Optimizer, counted, one_of, shrunk
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Adafactor(Optimizer):
    """p ← p - α·u/max(1, rms(u)/d) with u = gradient/√v and α = max(eps[1], rms(p))·min(lr, 1/√t).

    v is the running mean of the gradient's square with the share t^beta2_decay of the new. Of a Parameter with two
    dimensions or more only v's means over rows r and over columns c are kept, and v = r·c/mean(r) over the last two.
    ``eps[0]`` bounds mean(r), and its square v, from below; None stands for the dtype's. Order of operations as in
    PyTorch.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, hyperparameters_in(locals()))

    def check(self, group: Mapping[str, Any]) -> None:
        if not isinstance(group["eps"], tuple):
            raise TypeError(f"[Adafactor] eps are two numbers, or None and a number; received {group['eps']!r}.")

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        if p.ndim < 2:
            return {"variance": 0.0}
        kind = p.dtype.numpy
        return {
            "row_var": np.zeros((*p.shape[:-1], 1), kind),
            "col_var": np.zeros((*p.shape[:-2], 1, p.shape[-1]), kind),
        }

    def update(self, group: ParamGroup, active: list[tuple[int, Variable, Tensor]], steps: Variable) -> None:
        after = counted(steps, active)
        shares = ops.pow(after, group["beta2_decay"])
        rates = ops.minimum(ops.rsqrt(after), group["lr"])
        least = group.number(lambda h: h["eps"][1], "eps[1]")
        d = group["d"]
        for i, p, g in active:
            bound = group.number(lambda h, p=p: _bound(p, h), "eps[0]")  # type: ignore[misc]
            square = group.number(lambda h, p=p: _bound(p, h) ** 2, "eps[0] ** 2")  # type: ignore[misc]
            size = ops.maximum(_rms(p.value), least) * one_of(rates, i, p)
            variance = self._variance(p, g * g, one_of(shares, i, p), bound)
            direction = ops.rsqrt(ops.maximum(variance, square)) * g
            size = size / ops.maximum(_rms(direction) / d, 1.0)
            p.assign(shrunk(group, p) - direction * size)

    def _variance(self, p: Variable, square: Tensor, share: Tensor, bound: Any) -> Tensor:
        state = self.state[p]
        means = {"variance": square}
        if p.ndim >= 2:
            means = {
                "row_var": ops.mean(square, axis=-1, keepdims=True),
                "col_var": ops.mean(square, axis=-2, keepdims=True),
            }
        for name, mean in means.items():
            before = state[name].value
            means[name] = before + (mean - before) * share
            state[name].assign(means[name])
        if p.ndim < 2:
            return means["variance"]
        rows = means["row_var"]
        return rows * means["col_var"] / ops.maximum(ops.mean(rows, axis=-2, keepdims=True), bound)


def _bound(p: Variable, group: Mapping[str, Any]) -> float:
    chosen: float | None = group["eps"][0]
    return float(ml_dtypes.finfo(p.dtype.numpy).eps) if chosen is None else chosen


def _rms(x: Tensor) -> Tensor:
    root: Tensor = ops.sqrt(ops.mean(x * x))
    return root
