"""Regularisation layers: dropout."""

from __future__ import annotations

from typing import Any

from runnel.nn.module import Module
from runnel.tensor import random


class Dropout(Module):
    """In training mode, elements zeroed with probability ``p`` and the rest divided by 1 - p; else x itself.

    ``inplace`` is accepted, as in PyTorch, and changes nothing: tensors are values.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"[Dropout] p is a probability; received {p}.")
        self.p = p
        self.inplace = inplace

    def forward(self, x: Any) -> Any:
        return random.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"
