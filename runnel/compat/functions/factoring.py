"""PyTorch's older names for factorizations and products of matrices."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.surface import offered
from runnel.ops.arguments import Array
from runnel.ops.library import elimination, products, unchecked
from runnel.ops.linalg import QR, adjoint, qr as orthogonal, svd as singular


@offered("torch")
def lu(A: Array, pivot: bool = True, get_infos: bool = False) -> Any:
    """The factors of ``torch.linalg.lu_factor``; with ``get_infos``, of ``lu_factor_ex``."""
    if get_infos:
        return unchecked.lu_factor_ex(A, pivot=pivot)
    return elimination.lu_factor(A, pivot)


@offered("torch")
def svd(input: Array, some: bool = True, compute_uv: bool = True) -> tuple[Array, Array, Array]:
    """u, s and v with ``input`` = u·diag(s)·vᴴ; u and v are square unless ``some``, and zeros unless ``compute_uv``."""
    u, s, vh = singular(input, full_matrices=not some or not compute_uv)
    if compute_uv:
        return u, s, adjoint(vh)
    return ops.zeros_like(u.detach()), s, ops.zeros_like(vh.detach())


@offered("torch")
def qr(input: Array, some: bool = True) -> QR:
    """Q with orthonormal columns and an upper triangle R; Q is square unless ``some``."""
    return orthogonal(input, "reduced" if some else "complete")


@offered("torch")
def chain_matmul(*matrices: Array) -> Array:
    """The product of the matrices, in the order that costs least."""
    return matrices[0] if len(matrices) == 1 else products.multi_dot(matrices)
