"""PyTorch's older names for factorizations and products of matrices."""

from __future__ import annotations

from typing import Any

from runnel.core.surface import offered
from runnel.ops.arguments import Array
from runnel.ops.library import elimination, products, unchecked


@offered("torch")
def lu(A: Array, pivot: bool = True, get_infos: bool = False) -> Any:
    """The factors of ``torch.linalg.lu_factor``; with ``get_infos``, of ``lu_factor_ex``."""
    if get_infos:
        return unchecked.lu_factor_ex(A, pivot=pivot)
    return elimination.lu_factor(A, pivot)


@offered("torch")
def chain_matmul(*matrices: Array) -> Array:
    """The product of the matrices, in the order that costs least."""
    return matrices[0] if len(matrices) == 1 else products.multi_dot(matrices)
