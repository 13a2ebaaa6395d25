"""Adafactor: a second moment kept as rows and columns, for large models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from runnel import ops
from runnel.optim.formulas import Active, counted, item, mean, shrunk
from runnel.optim.group import ParamGroup
from runnel.optim.optimizer import Optimizer
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Adafactor(Optimizer):
    """Adafactor (N. Shazeer, M. Stern, 2018). The order of operations is PyTorch's.

    p ← p - α·u/max(1, rms(u)/d) with u = gradient/√v and α = max(eps[1], rms(p))·min(lr, 1/√t).

    v is the running mean of the gradient's square, in which the new square has the share t^beta2_decay. For a Parameter
    with two dimensions or more, only the means of v over rows r and over columns c are kept, and v = r·c/mean(r) over
    the last two.

    Args:
        params: Parameters, or dicts with "params" and hyper-parameters.
        lr: the largest relative step size.
        beta2_decay: the power of t, at most 0, that is the share of the new square.
        eps: the lower bounds of mean(r), whose square is the lower bound of v, and of rms(p). None is the machine
            epsilon of the Parameter's dtype.
        d: the largest root mean square of u.
        weight_decay: multiply p by 1 - lr·weight_decay before each step.
        maximize: go up the gradient instead of down.

    Example:
        >>> optimizer = optim.Adafactor(model.parameters(), lr=0.01)
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
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
             "maximize": maximize},
        )  # fmt: skip

    def check(self, group: Mapping[str, Any], params: Iterable[Variable]) -> None:
        if not isinstance(group["eps"], tuple):
            raise TypeError(f"[Adafactor] eps must be two numbers, or None and a number; got {group['eps']!r}.")

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, float | np.ndarray]:
        if p.ndim < 2:
            return {"variance": 0.0}
        rows, columns = (*p.shape[:-1], 1), (*p.shape[:-2], 1, p.shape[-1])
        return {"row_var": np.zeros(rows, p.dtype.numpy), "col_var": np.zeros(columns, p.dtype.numpy)}

    def update(self, group: ParamGroup, active: Active, steps: Variable) -> None:
        after = counted(steps, active)
        shares = ops.pow(after, ops.full_like(after, group["beta2_decay"]))
        rates = ops.minimum(ops.rsqrt(after), group["lr"])
        (chosen, least), d = group["eps"], group["d"]
        for i, p, g in active:
            bound = float(ml_dtypes.finfo(p.dtype.numpy).eps) if chosen is None else chosen
            size = ops.maximum(_rms(p.value), least) * item(rates, i, p)
            variance = self._variance(p, g * g, item(shares, i, p), bound)
            direction = ops.rsqrt(ops.maximum(variance, bound * bound)) * g
            size = size / ops.maximum(_rms(direction) / d, 1.0)
            p.assign(shrunk(group, p) - direction * size)

    def _variance(self, p: Variable, square: Tensor, share: Tensor, bound: Any) -> Tensor:
        state = self.state[p]
        if p.ndim < 2:
            return mean(state["variance"], square, share)
        rows = mean(state["row_var"], ops.mean(square, axis=-1, keepdims=True), share)
        columns = mean(state["col_var"], ops.mean(square, axis=-2, keepdims=True), share)
        return rows * columns / ops.maximum(ops.mean(rows, axis=-2, keepdims=True), bound)


def _rms(x: Tensor) -> Tensor:
    root: Tensor = ops.sqrt(ops.mean(x * x))
    return root
