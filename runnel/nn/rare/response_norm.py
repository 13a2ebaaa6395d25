"""Normalization over neighboring channels (A. Krizhevsky et al., 2012)."""

from __future__ import annotations

import operator
from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn.module import Module
from runnel.ops.arguments import Array
from runnel.tensor.tensor import Tensor


def local_response_norm(x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Compute x / (k + alpha · mean of the squares of ``size`` neighboring channels)^beta for (N, C, …)."""
    size = operator.index(size)
    if x.ndim < 3 or size < 1:
        raise ShapeError(f"[local_response_norm] takes (N, C, …) and a positive size; received {x.shape} and {size}.")
    widths = [(0, 0)] * x.ndim
    widths[1] = (size // 2, (size - 1) // 2)
    squares = ops.pad(ops.square(x), widths)
    total = ops.narrow(squares, 1, 0, x.shape[1])
    for i in range(1, size):
        total = total + ops.narrow(squares, 1, i, x.shape[1])
    result: Tensor = x / ops.pow(total * (alpha / size) + k, beta)
    return result


class LocalResponseNorm(Module):
    """Compute x / (k + alpha · mean of the squares of ``size`` neighboring channels)^beta."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, x: Any) -> Any:
        return local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
