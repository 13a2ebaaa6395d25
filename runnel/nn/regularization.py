"""Layers that keep activations in bounds: dropout and the norms over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel import ops
from runnel.core.dtypes import as_dtype
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter
from runnel.tensor import random
from runnel.tensor.creation import ones, zeros


class Dropout(Module):
    """In training mode, elements zeroed with probability ``p`` and the rest divided by 1 - p; else x itself."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"[Dropout] p is a probability; received {p}.")
        self.p = p

    def forward(self, x: Any) -> Any:
        return random.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last axes, then scaled and shifted (J. Ba et al., 2016)."""

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = "float32",
    ) -> None:
        kind = as_dtype(dtype)
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = Parameter(ones(self.normalized_shape, kind)) if elementwise_affine else None
        self.bias = Parameter(zeros(self.normalized_shape, kind)) if elementwise_affine and bias else None

    def forward(self, x: Any) -> Any:
        return ops.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
    """Root mean square 1 over the last axis, then scaled (B. Zhang, R. Sennrich, 2019)."""

    weight: Parameter | None

    def __init__(self, size: int, eps: float = 1e-6, elementwise_affine: bool = True, dtype: Any = "float32") -> None:
        self.size = size
        self.eps = eps
        self.weight = Parameter(ones((size,), as_dtype(dtype))) if elementwise_affine else None

    def forward(self, x: Any) -> Any:
        return ops.rms_norm(x, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.size}, eps={self.eps}"
