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
    """``num_heads`` attentions over parts of ``embed_dim`` features, between a projection of queries, keys and values
    and one of the results (A. Vaswani et al., 2017).

    Called with (query, key, value), each of shape (time, batch, features), or (batch, time, features) where
    ``batch_first``, or without a batch. Gives the pair (result, weights); the weights are None without
    ``need_weights``: then the matrix of all of them is never made, which takes less time and memory. ``add_bias_kv``
    puts a trained key and value behind the others, and ``add_zero_attn`` one of zeros.
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
            raise ValueError(f"[MultiheadAttention] embed_dim {embed_dim} is no multiple of num_heads {num_heads}.")
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
        """Draw new initial values, distributed as PyTorch's."""
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
        """``key_padding_mask`` (batch, keys) and ``attn_mask`` (queries, keys) or (batch·heads, queries, keys) are
        added to the scores, or, of bools, hide what is True. ``is_causal`` says that the attention is causal, as an
        ``attn_mask`` given beside it would. ``lengths`` are the numbers of keys of each sequence, as integers: what a
        ``key_padding_mask`` would say, and the keys beyond cost nothing."""
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
