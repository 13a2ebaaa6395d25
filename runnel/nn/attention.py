"""Multi-head attention with PyTorch's names: projections around :func:`runnel.ops.scaled_dot_product_attention`."""

from __future__ import annotations

from typing import Any

from runnel.nn import init
from runnel.nn.linear import Linear
from runnel.nn.module import Module
from runnel.nn.multi_head import Projections
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.tensor.creation import zeros


class MultiheadAttention(Module):
    """Apply multi-head attention (A. Vaswani et al., 2017).

    Queries, keys and values are projected to ``embed_dim`` features; each of ``num_heads`` heads attends with its part
    of them; and the concatenated results are projected again. Parameters have PyTorch's names.

    Args:
        embed_dim: number of features of queries and results.
        num_heads: number of heads, which divides ``embed_dim``.
        dropout: the probability with which attention weights are set to 0 in training mode.
        bias: whether the projections have a bias.
        add_bias_kv: append a trained key and value to the others.
        add_zero_attn: append a key and a value of zeros.
        kdim: number of features of keys; by default ``embed_dim``.
        vdim: number of features of values; by default ``embed_dim``.
        batch_first: inputs and results have the batch as first axis.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        query ``(T, N, embed_dim)``, key ``(S, N, kdim)``, value ``(S, N, vdim)``; result ``(T, N, embed_dim)``; weights
        ``(N, T, S)``. With ``batch_first`` N comes first; the batch may be left out.

    Example:
        >>> attention = nn.MultiheadAttention(64, 8, batch_first=True)
        >>> x = rn.ones((2, 10, 64))
        >>> result, weights = attention(x, x, x, need_weights=False)
        >>> result.shape
        (2, 10, 64)
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: Any = None,
    ) -> None:
        if num_heads <= 0 or embed_dim <= 0 or embed_dim % num_heads:
            raise ValueError(
                f"[MultiheadAttention] embed_dim must be divisible by num_heads; got {embed_dim} and {num_heads}."
            )
        kind = parameter_dtype(dtype)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = None
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = Parameter(zeros((3 * embed_dim, embed_dim), kind))
        else:
            self.q_proj_weight = Parameter(zeros((embed_dim, embed_dim), kind))
            self.k_proj_weight = Parameter(zeros((embed_dim, self.kdim), kind))
            self.v_proj_weight = Parameter(zeros((embed_dim, self.vdim), kind))
        self.register_parameter("in_proj_bias", Parameter(zeros((3 * embed_dim,), kind)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, kind)
        self.register_parameter("bias_k", Parameter(zeros((1, 1, embed_dim), kind)) if add_bias_kv else None)
        self.register_parameter("bias_v", Parameter(zeros((1, 1, embed_dim), kind)) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values with PyTorch's distributions."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None and self.out_proj.bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        lengths: Any = None,
    ) -> tuple[Any, Any]:
        """Return (result, weights).

        Args:
            query: the queries.
            key: the keys.
            value: the values.
            key_padding_mask: shape (N, S); True hides a key, numbers are added to the scores.
            need_weights: also return the weights. Without them less time and memory is needed, since the matrix of
                weights is never stored; the second result is None then.
            attn_mask: shape (T, S) or (N·num_heads, T, S); True hides a key, numbers are added to the scores.
            average_attn_weights: average the weights over the heads.
            is_causal: each query only attends to keys up to its own position.
            lengths: the number of keys of each sequence, shape (N,); faster than a ``key_padding_mask``.
        """
        projections = Projections(
            self.embed_dim, self.num_heads, self.in_proj_weight,
            (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight), self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.batch_first,
        )  # fmt: skip
        attended, weights = projections.attend(
            query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal,
            lengths=lengths, dropout_p=self.dropout if self.training else 0.0,
        )  # fmt: skip
        return self.out_proj(attended), weights

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}"
