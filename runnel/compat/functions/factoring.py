"""PyTorch's older names for factorizations and products of matrices."""

from __future__ import annotations

from runnel.ops.arguments import Array
from runnel.ops.library import products


def chain_matmul(*matrices: Array) -> Array:
    """The product of the matrices, in the order that costs least."""
    return matrices[0] if len(matrices) == 1 else products.multi_dot(matrices)
