"""Embeddings: a trained vector for each token id."""

from __future__ import annotations

from typing import Any, Self

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn import functions, init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.tensor.creation import zeros


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
        dtype: Any,
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
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, dtype
        )
        if _freeze:
            self.weight.requires_grad = False

    def forward(self, labels: Any) -> Any:
        return functions.embedding(
            labels, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        )
