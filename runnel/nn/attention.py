"""Multi-head attention with PyTorch's names: projections around :func:`runnel.ops.scaled_dot_product_attention`."""

from __future__ import annotations

import functools
import math
from typing import Any

from runnel import ops
from runnel.core.dtypes import bool_
from runnel.core.surface import offered
from runnel.nn import init
from runnel.nn.linear import Linear
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.ops.attention_terms import Options, attention_weights, dropped
from runnel.tensor import random
from runnel.tensor.creation import zeros


@offered("nn", alone="it is made of other layers")
class MultiheadAttention(Module):
    """``num_heads`` attentions over parts of ``embed_dim`` features, between a projection of queries, keys and values
    and one of the results (A. Vaswani et al., 2017).

    Called with (query, key, value), each of shape (time, batch, features), or (batch, time, features) where
    ``batch_first``, or without a batch. Gives the pair (result, weights); the weights are None unless
    ``need_weights``, since only then is the matrix of all of them ever made. ``add_bias_kv`` puts a trained key and
    value behind the others, and ``add_zero_attn`` one of zeros.
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
        need_weights: bool = False,
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
        if query.ndim == 2:
            single = [ops.expand_dims(x, 0 if self.batch_first else 1) for x in (query, key, value)]
            query, key, value = (single[0],) * 3 if query is key is value else single
            key_padding_mask = None if key_padding_mask is None else ops.expand_dims(key_padding_mask, 0)
            attended, weights = self.forward(
                query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal,
                lengths=lengths,
            )  # fmt: skip
            axis = 0 if self.batch_first else 1
            return ops.squeeze(attended, axis), None if weights is None else ops.squeeze(weights, 0)
        mask = self._mask(query, key_padding_mask, None if is_causal else attn_mask)
        p = self.dropout if self.training else 0.0
        dropout_key = random.next_key(None, query.device) if p else None
        weights = None
        extra = (self.bias_k is not None) + self.add_zero_attn
        if extra and lengths is not None:
            raise ValueError("[MultiheadAttention] lengths= is not for add_bias_kv and add_zero_attn; give a mask.")
        if query is key and key is value and self.in_proj_weight is not None and not need_weights and not extra:
            qkv = self._heads(ops.linear(query, self.in_proj_weight, self.in_proj_bias), 3)
            result = ops.packed_attention(qkv, mask, is_causal, lengths=lengths, dropout_p=p, dropout_key=dropout_key)
        else:
            q, k, v = (ops.permute(x, (0, 2, 1, 3)) for x in self._projected(query, key, value))
            if extra:
                mask, is_causal = self._mask_with(extra, mask, is_causal, q, k), False
                k, v = self._with_extra(k, self.bias_k), self._with_extra(v, self.bias_v)
            if need_weights:
                options = Options(is_causal, float(q.shape[-1]) ** -0.5, mask, lengths, p, dropout_key)
                weights = dropped(attention_weights(q, k, options), options)
                heads_first = ops.matmul(weights, v)
                weights = ops.mean(weights, 1) if average_attn_weights else weights
            else:
                heads_first = ops.scaled_dot_product_attention(
                    q, k, v, mask, p, is_causal, lengths=lengths, dropout_key=dropout_key
                )
            result = ops.permute(heads_first, (0, 2, 1, 3))
        return self.out_proj(self._joined(result)), weights

    def _heads(self, x: Any, parts: int) -> Any:
        """Projections (…, parts·heads·D) as (batch, time, parts, heads, D); one part without its axis."""
        first, second, width = x.shape
        split = (self.num_heads, width // parts // self.num_heads)
        shaped = ops.reshape(x, (first, second, *((parts,) if parts > 1 else ()), *split))
        return shaped if self.batch_first else ops.transpose(shaped, 0, 1)

    def _joined(self, x: Any) -> Any:
        """(batch, time, heads, D) in the order of the inputs, heads side by side."""
        ordered = x if self.batch_first else ops.transpose(x, 0, 1)
        return ops.reshape(ordered, (*ordered.shape[:2], self.embed_dim))

    def _projected(self, query: Any, key: Any, value: Any) -> list[Any]:
        """q, k and v as (batch, time, heads, D)."""
        width = self.embed_dim
        biases: list[Any] = [None] * 3 if self.in_proj_bias is None else list(ops.split(self.in_proj_bias, width))
        weights: list[Any] = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        if self.in_proj_weight is not None:
            weights = list(ops.split(self.in_proj_weight, width))
        inputs = (query, key, value)
        return [self._heads(ops.linear(x, w, b), 1) for x, w, b in zip(inputs, weights, biases, strict=True)]

    def _with_extra(self, x: Any, bias: Any) -> Any:
        """Keys or values (batch, heads, time, D) with a trained one behind them, and one of zeros."""
        single = (x.shape[0], x.shape[1], 1, x.shape[3])
        if bias is not None:
            heads = ops.reshape(ops.cast(bias, x.dtype), (1, self.num_heads, 1, -1))
            x = ops.concat([x, ops.broadcast_to(heads, single)], 2)
        return ops.concat([x, ops.full_like(x, 0, single)], 2) if self.add_zero_attn else x

    def _mask_with(self, extra: int, mask: Any, is_causal: bool, q: Any, k: Any) -> Any:
        """A mask that lets ``extra`` keys more be seen by all."""
        if is_causal:
            shape = (1, 1, q.shape[2], k.shape[2])
            causal = ops.greater_equal(ops.iota(q, shape, 2), ops.iota(q, shape, 3))
            mask = causal if mask is None else _joint(mask, causal, q)
        if mask is None:
            return None
        if mask.shape[-1] == 1:
            mask = ops.broadcast_to(mask, (*mask.shape[:-1], k.shape[2]))
        return ops.pad(mask, ((0, 0),) * (mask.ndim - 1) + ((0, extra),), mask.dtype is bool_)

    def _mask(self, query: Any, padding: Any, mask: Any) -> Any:
        """Both masks as one over (batch, heads, queries, keys): a bool one of what is seen, or one to be added."""
        if mask is not None:
            if mask.ndim == 3:
                mask = ops.reshape(mask, (-1, self.num_heads, *mask.shape[1:]))
            elif mask.ndim == 2:
                mask = ops.expand_dims(mask, (0, 1))
        if padding is not None:
            padding = ops.expand_dims(padding, (1, 2))
        masks = [m for m in (mask, padding) if m is not None]
        if not masks:
            return None
        if all(m.dtype is bool_ for m in masks):
            return functools.reduce(ops.logical_and, map(ops.logical_not, masks))
        return functools.reduce(ops.add, [_added(m, query) for m in masks])

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}"


def _joint(mask: Any, visible: Any, like: Any) -> Any:
    """A mask that hides what ``mask`` hides, and what is not ``visible``."""
    if mask.dtype is bool_:
        return ops.logical_and(mask, visible)
    return mask + _added(ops.logical_not(visible), like)


def _added(mask: Any, like: Any) -> Any:
    """A mask as numbers to be added: -inf where a bool one hides."""
    if mask.dtype is bool_:
        return ops.where(mask, ops.full_like(like, -math.inf, (1,) * mask.ndim), 0)
    return ops.cast(mask, like.dtype)
