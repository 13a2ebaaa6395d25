"""Dropout."""

from __future__ import annotations

from typing import Any

from runnel.nn.module import Module
from runnel.tensor import random


class Dropout(Module):
    """Set elements to 0 with probability ``p`` and divide the rest by 1 - p, in training mode only.

    Args:
        p: the probability, in [0, 1].
        inplace: has no effect, since tensors are values.

    Example:
        >>> nn.Dropout(0.5).eval()(rn.ones(3))
        Tensor([1., 1., 1.], dtype=float32)
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"[Dropout] p must be a probability in [0, 1]; got {p}.")
        self.p = p
        self.inplace = inplace

    def forward(self, x: Any) -> Any:
        return random.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"
