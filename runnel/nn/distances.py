"""Similarities and distances of vectors, as functions and as layers."""

from __future__ import annotations

import numpy as np

from runnel import ops
from runnel.core.composed import composed
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.nn.layer import Layer, layer
from runnel.ops.arguments import Array
from runnel.tensor.tensor import Tensor


@composed
def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Compute x1·x2 / (|x1|·|x2|) along ``dim`` for arrays that broadcast; each norm is at least ``eps``."""
    x1, x2 = ops.broadcast_arrays(x1, x2)
    first, second = (x / ops.maximum(ops.norm(x, 2.0, dim, keepdims=True), eps) for x in (x1, x2))
    result: Tensor = ops.sum(first * second, dim)
    return result


@composed
def pairwise_distance(x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Compute the p-norm of x1 - x2 + eps over the last axis for arrays that broadcast."""
    result: Tensor = ops.norm(x1 - x2 + eps, p, -1, keepdims=keepdim)
    return result


def pdist(x: Array, p: float = 2.0) -> Tensor:
    """Compute the p-norms of the differences of each two rows of a matrix (n, m), a vector of n·(n - 1)/2 elements.

    Row 0 comes first with all others, then row 1 with the rows after it, and so on.
    """
    if x.ndim != 2 or p < 0:
        raise ShapeError(f"[pdist] x must be a matrix and p at least 0; got shape {x.shape} and p={p}.")
    first, second = (x.lift(i.astype(np.int64), int64) for i in np.triu_indices(x.shape[0], 1))
    result: Tensor = ops.norm(ops.take(x, first, 0) - ops.take(x, second, 0), p, -1)
    return result


class _Distance(Layer):
    _shows_numbers = False


class _PairwiseDistance(_Distance):
    p: float

    @property
    def norm(self) -> float:
        """The order p of the norm."""
        return self.p


CosineSimilarity = layer("CosineSimilarity", cosine_similarity, base=_Distance)
PairwiseDistance = layer("PairwiseDistance", pairwise_distance, base=_PairwiseDistance)
