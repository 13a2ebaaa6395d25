"""Embeddings: a row of numbers for each of a set of labels, and sums of such rows over bags of labels."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.dtypes import as_dtype
from runnel.core.errors import ShapeError
from runnel.core.surface import offered
from runnel.nn import init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter
from runnel.tensor.creation import zeros


class _Table(Module):
    """What both layers share: the rows of ``weight``, one of which may stand for "nothing"."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, max_norm: Any, sparse: bool, dtype: Any
    ) -> None:
        kind = type(self).__name__
        if max_norm is not None:
            raise ValueError(
                f"[{kind}] has no max_norm: a forward pass changes no Parameter. Shorten rows after the step: "
                "weight.assign(weight * clip(max_norm / norm(weight, axis=1, keepdims=True), None, 1))."
            )
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"[{kind}] padding_idx {padding_idx} is none of the {num_embeddings} rows.")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.sparse = sparse
        self.weight = Parameter(zeros((num_embeddings, embedding_dim), as_dtype(dtype)))
        self.weight.is_sparse = sparse
        init.normal_(self.weight)
        if self.padding_idx is not None:
            is_padding = ops.equal(ops.iota(self.weight.value, (num_embeddings, 1), 0), self.padding_idx)
            self.weight.assign(ops.where(is_padding, 0.0, self.weight.value))

    def rows(self, labels: Any) -> Any:
        """The row of each label; that of padding has no gradient."""
        found = ops.embedding(self.weight, labels)
        if self.padding_idx is None:
            return found
        return ops.where(self.is_padding(labels), ops.stop_gradient(found), found)

    def is_padding(self, labels: Any) -> Any:
        """Which labels stand for nothing, with an axis for the columns of the rows."""
        return ops.equal(ops.expand_dims(labels, labels.ndim), -1 if self.padding_idx is None else self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}{', sparse=True' if self.sparse else ''}"


@offered("nn", function="embedding")
class Embedding(_Table):
    """The rows of ``weight``, of shape (num_embeddings, embedding_dim), numbered by an integer tensor.

    Args:
        padding_idx: a row that begins as 0 and gets no gradient.
        sparse: steps change the rows that were named and no others; for SparseAdam, SGD and Adagrad.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        *,
        sparse: bool = False,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, sparse, dtype)

    def forward(self, labels: Any) -> Any:
        return self.rows(labels)


@offered("nn", alone="it is made of runnel.embedding and sums")
class EmbeddingBag(_Table):
    """For each bag of labels the sum, mean or maximum of their rows, without those of padding; 0 for an empty bag.

    Bags are the rows of a matrix of labels, or parts of a vector, each from its offset to the next one's.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        *,
        mode: str = "mean",
        sparse: bool = False,
        padding_idx: int | None = None,
        dtype: Any = "float32",
    ) -> None:
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"[EmbeddingBag] mode is 'sum', 'mean' or 'max', not '{mode}'.")
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, sparse, dtype)
        self.mode = mode

    def forward(self, labels: Any, offsets: Any = None) -> Any:
        if (labels.ndim, offsets is None) not in ((2, True), (1, False)):
            raise ShapeError(
                f"[EmbeddingBag] takes a matrix of labels, or a vector with offsets; received shape {labels.shape} "
                f"and {'no' if offsets is None else 'with'} offsets."
            )
        return self._of_matrix(labels) if offsets is None else self._of_vector(labels, offsets)

    def _of_matrix(self, labels: Any) -> Any:
        rows, counted = self.rows(labels), self._counted(labels)
        if self.mode == "max":
            return ops.where(ops.any(counted, 1), ops.max(ops.where(counted, rows, -float("inf")), 1), 0.0)
        total = ops.sum(ops.where(counted, rows, 0.0), 1)
        return self._averaged(total, ops.sum(ops.cast(counted, rows.dtype), 1))

    def _of_vector(self, labels: Any, offsets: Any) -> Any:
        if self.mode == "max":
            raise ValueError("[EmbeddingBag] mode 'max' takes a matrix of labels; pad shorter bags with padding_idx.")
        rows, counted, bags = self.rows(labels), self._counted(labels), offsets.shape[0]
        begun = ops.less_equal(ops.expand_dims(offsets, 0), ops.iota(labels, (labels.shape[0], 1), 0, offsets.dtype))
        bag = ops.sum(ops.cast(begun, "int64"), 1) - 1
        total = ops.scatter_add(bag, ops.where(counted, rows, 0.0), bags)
        return self._averaged(total, ops.scatter_add(bag, ops.cast(counted, rows.dtype), bags))

    def _counted(self, labels: Any) -> Any:
        """Which labels are no padding, with an axis for columns."""
        if self.padding_idx is None:
            return ops.full_like(labels, True, (*labels.shape, 1), "bool")
        return ops.logical_not(self.is_padding(labels))

    def _averaged(self, total: Any, count: Any) -> Any:
        return total / ops.maximum(count, 1.0) if self.mode == "mean" else total

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
