"""The largest singular value of a matrix, by power iteration."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.tensor import random


def as_matrix(weight: Any, dim: int) -> Any:
    """Return ``weight`` with axis ``dim`` as rows and all others as columns."""
    return ops.reshape(ops.moveaxis(weight, dim, 0), (weight.shape[dim], -1))


def normalized(x: Any, eps: float) -> Any:
    """Return ``x`` scaled to norm 1."""
    return x / ops.maximum(ops.norm(x), eps)


def power_iteration(matrix: Any, u: Any, v: Any, times: int, eps: float) -> tuple[Any, Any]:
    """Return the left and right singular vectors after ``times`` iterations, without gradients."""
    matrix = ops.stop_gradient(matrix)
    for _ in range(times):
        u = normalized(ops.matmul(matrix, v), eps)
        v = normalized(ops.matmul(ops.transpose(matrix), u), eps)
    return ops.stop_gradient(u), ops.stop_gradient(v)


def start_vectors(matrix: Any, eps: float) -> tuple[Any, Any]:
    """Return random vectors, brought near the singular vectors by 15 iterations."""
    drawn = [ops.normal(random.next_key(None, matrix.device), (n,), matrix.dtype) for n in matrix.shape]
    u, v = (normalized(x, eps) for x in drawn)
    return power_iteration(matrix, u, v, 15, eps)
