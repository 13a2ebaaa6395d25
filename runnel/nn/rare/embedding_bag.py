"""Sums, means and maxima of embeddings over bags of labels."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn import functions
from runnel.nn.embedding import Table
from runnel.ops.arguments import Array
from runnel.tensor.tensor import Tensor


def embedding_bag(
    x: Array,
    weight: Array,
    offsets: Array | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Compute the sum, mean or maximum of the rows of ``weight`` for each bag of labels ``x``; 0 for an empty bag.

    Args:
        x: a matrix of labels, one bag in each row, or a vector with ``offsets``.
        weight: the rows (n, D).
        offsets: where each bag begins in the vector.
        max_norm, norm_type, scale_grad_by_freq, sparse: as in :func:`embedding`.
        mode: "sum", "mean" or "max".
        per_sample_weights: a number for each label, which its row is multiplied with; for "sum" alone.
        include_last_offset: the last of ``offsets`` is the end of the last bag.
        padding_idx: labels that do not count.
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"[embedding_bag] mode is 'sum', 'mean' or 'max'; received {mode!r}.")
    if (x.ndim, offsets is None) not in ((2, True), (1, False)):
        raise ShapeError(
            f"[embedding_bag] takes a matrix of labels, or a vector with offsets; received shape {x.shape} "
            f"{'without' if offsets is None else 'with'} offsets."
        )
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != x.shape):
        raise ShapeError(
            f"[embedding_bag] per_sample_weights are for mode 'sum' and have the shape of the labels, {x.shape}; "
            f"received shape {per_sample_weights.shape} and mode {mode!r}."
        )
    row = None if padding_idx is None else padding_idx % weight.shape[0]
    rows = functions.embedding(x, weight, row, max_norm, norm_type, scale_grad_by_freq)
    counted = ops.full_like(x, True, x.shape, "bool") if row is None else ops.not_equal(x, row)
    counted = ops.expand_dims(counted, -1)
    if per_sample_weights is not None:
        rows = rows * ops.expand_dims(per_sample_weights, -1)
    if offsets is None:
        return _of_rows(rows, counted, mode)
    return _of_parts(rows, counted, offsets[:-1] if include_last_offset else offsets, mode)


def _of_rows(rows: Array, counted: Array, mode: str) -> Tensor:
    """Reduce bags (bags, labels, D)."""
    if mode == "max":
        greatest = ops.max(ops.where(counted, rows, -float("inf")), 1)
        bags: Tensor = ops.where(ops.any(counted, 1), greatest, 0.0)
        return bags
    return _averaged(ops.sum(ops.where(counted, rows, 0.0), 1), ops.sum(ops.cast(counted, rows.dtype), 1), mode)


def _of_parts(rows: Array, counted: Array, offsets: Array, mode: str) -> Tensor:
    """Reduce bags that follow one another in (labels, D)."""
    bags, labels = offsets.shape[0], rows.shape[0]
    begun = ops.less_equal(ops.expand_dims(offsets, 0), ops.iota(rows, (labels, 1), 0, offsets.dtype))
    bag = ops.sum(ops.cast(begun, "int64"), 1) - 1
    if mode == "max":
        is_in = ops.expand_dims(ops.equal(ops.expand_dims(bag, 0), ops.iota(bag, (bags, 1), 0)), -1)
        return _of_rows(ops.expand_dims(rows, 0), ops.logical_and(is_in, ops.expand_dims(counted, 0)), mode)
    total = ops.scatter_add(bag, ops.where(counted, rows, 0.0), bags)
    return _averaged(total, ops.scatter_add(bag, ops.cast(counted, rows.dtype), bags), mode)


def _averaged(total: Array, count: Array, mode: str) -> Tensor:
    result: Tensor = total / ops.maximum(count, 1.0) if mode == "mean" else total
    return result


class EmbeddingBag(Table):
    """Compute the sum, mean or maximum of the rows of each bag of labels, without padding; 0 for an empty bag.

    Bags are the rows of a matrix of labels, or parts of a vector, each from its offset to the next one's.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        dtype: Any = None,
    ) -> None:
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"[EmbeddingBag] mode is 'sum', 'mean' or 'max', not '{mode}'.")
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, dtype
        )
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(self, x: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return embedding_bag(
            x, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
