"""Embedding: a row of numbers for each of a set of labels."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.dtypes import as_dtype
from runnel.nn import init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter
from runnel.tensor.creation import zeros


class Embedding(Module):
    """The rows of ``weight``, of shape (num_embeddings, embedding_dim), numbered by an integer tensor."""

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = "float32") -> None:
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.weight = Parameter(zeros((num_embeddings, embedding_dim), as_dtype(dtype)))
        init.normal_(self.weight)

    def forward(self, labels: Any) -> Any:
        return ops.embedding(self.weight, labels)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"
