"""Embeddings: a trained vector for each token id."""

from __future__ import annotations

from typing import Any, Self

from runnel import ops
from runnel.core.dtypes import Dtype
from runnel.core.errors import ShapeError
from runnel.nn import functions, init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.ops.arguments import Array
from runnel.tensor.creation import zeros
from runnel.tensor.tensor import Tensor


class Table(Module):
    """The base of embeddings: the rows of ``weight``, one of which may be for padding."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        sparse: bool,
        weight: Any,
        dtype: Dtype,
    ) -> None:
        kind = type(self).__name__
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"[{kind}] padding_idx must be one of the {num_embeddings} rows; got {padding_idx}.")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if weight is not None:
            if tuple(weight.shape) != (num_embeddings, embedding_dim):
                raise ShapeError(
                    f"[{kind}] weight must have shape {(num_embeddings, embedding_dim)}; got {tuple(weight.shape)}."
                )
            self.weight = Parameter(weight)
        else:
            self.weight = Parameter(zeros((num_embeddings, embedding_dim), parameter_dtype(dtype)))
            self.reset_parameters()
        self.weight.is_sparse = sparse

    def reset_parameters(self) -> None:
        """Draw new initial values: normal, and 0 in the padding row."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            is_padding = ops.equal(ops.iota(self.weight.value, (self.num_embeddings, 1), 0), self.padding_idx)
            self.weight.assign(ops.where(is_padding, 0.0, self.weight.value))

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Self:
        """Return a layer with the rows ``embeddings``.

        Args:
            embeddings: a matrix, one row for each token id.
            freeze: do not train the rows.
            options: further arguments of the constructor.
        """
        if embeddings.ndim != 2:
            raise ShapeError(f"[{cls.__name__}] embeddings must be a matrix; got shape {tuple(embeddings.shape)}.")
        rows, columns = embeddings.shape
        options["_weight"] = embeddings
        layer = cls(rows, columns, **options)
        layer.weight.requires_grad = not freeze
        return layer

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        optional = {
            "padding_idx": None,
            "max_norm": None,
            "norm_type": 2.0,
            "scale_grad_by_freq": False,
            "sparse": False,
        }
        for name, usual in optional.items():
            value = getattr(self, name)
            text += "" if value == usual else f", {name}={value}"
        return text


class Embedding(Table):
    """Look up the rows of ``weight``, of shape (num_embeddings, embedding_dim), by token ids.

    Args:
        num_embeddings: number of rows.
        embedding_dim: the length of each row.
        padding_idx: a row that starts as 0 and gets no gradient.
        max_norm: shorten the rows that are looked up to this ``norm_type``-norm, in ``weight``.
        norm_type: the p of the p-norm of ``max_norm``.
        scale_grad_by_freq: divide the gradient of each row by the number of times it was looked up.
        sparse: steps change only the rows that were looked up; use SparseAdam, SGD or Adagrad.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input ``(...)`` with integers; output ``(..., embedding_dim)``.

    Example:
        >>> nn.Embedding(1000, 64)(rn.tensor([[1, 2], [3, 4]])).shape
        (2, 2, 64)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        *,
        dtype: Dtype = None,
    ) -> None:
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, dtype
        )
        if _freeze:
            self.weight.requires_grad = False

    def forward(self, labels: Array) -> Any:
        return functions.embedding(
            labels, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        )


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
        per_sample_weights: a factor for the row of each label; only for "sum".
        include_last_offset: the last of ``offsets`` is the end of the last bag.
        padding_idx: labels that do not count.
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"[embedding_bag] mode must be 'sum', 'mean' or 'max'; got {mode!r}.")
    if (x.ndim, offsets is None) not in ((2, True), (1, False)):
        raise ShapeError(
            f"[embedding_bag] labels must be a matrix, or a vector with offsets; got shape {x.shape} "
            f"{'without' if offsets is None else 'with'} offsets."
        )
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != x.shape):
        raise ShapeError(
            f"[embedding_bag] per_sample_weights must have the shape of the labels, {x.shape}, and mode be 'sum'; got "
            f"shape {per_sample_weights.shape} and mode {mode!r}."
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

    Bags are the rows of a matrix of labels, or parts of a vector that begin at offsets.

    Args:
        mode: "sum", "mean" or "max".
        include_last_offset: the last offset is the end of the last bag.
        num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse, padding_idx, dtype: as in
            :class:`Embedding`.

    Shape:
        x ``(bags, labels)``, or ``(labels,)`` with offsets ``(bags,)``; output ``(bags, embedding_dim)``.
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
        *,
        dtype: Dtype = None,
    ) -> None:
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"[EmbeddingBag] mode must be 'sum', 'mean' or 'max'; got {mode!r}.")
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, dtype
        )
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(self, x: Array, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return embedding_bag(
            x, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
