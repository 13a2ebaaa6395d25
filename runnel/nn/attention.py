"""Multi-head attention with PyTorch's names: projections around :func:`runnel.ops.scaled_dot_product_attention`."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from runnel import ops
from runnel.core.dtypes import Dtype, bool_
from runnel.core.errors import ArgumentError, ShapeError
from runnel.nn import init
from runnel.nn.linear import Linear
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.ops.arguments import Array
from runnel.ops.attention.terms import Options, attention_weights, dropped
from runnel.tensor import random
from runnel.tensor.creation import zeros


class Projections(NamedTuple):
    """The weights of :class:`runnel.nn.MultiheadAttention`. Without ``in_proj_weight``, queries, keys and values have
    ``separate`` weights."""

    embed_dim: int
    num_heads: int
    in_proj_weight: Any
    separate: tuple[Any, Any, Any]
    in_proj_bias: Any
    bias_k: Any
    bias_v: Any
    add_zero_attn: bool
    batch_first: bool

    def attend(
        self,
        query: Array,
        key: Array,
        value: Array,
        key_padding_mask: Any,
        need_weights: bool,
        attn_mask: Any,
        average_attn_weights: bool,
        is_causal: bool,
        *,
        lengths: Any,
        dropout_p: float,
        static_k: Any = None,
        static_v: Any = None,
    ) -> tuple[Any, Any]:
        """Return the concatenated results of the heads, before their projection, and the weights or None."""
        if query.ndim == 2:
            single = [ops.expand_dims(x, 0 if self.batch_first else 1) for x in (query, key, value)]
            query, key, value = (single[0],) * 3 if query is key is value else single
            key_padding_mask = None if key_padding_mask is None else ops.expand_dims(key_padding_mask, 0)
            attended, weights = self.attend(
                query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal,
                lengths=lengths, dropout_p=dropout_p, static_k=static_k, static_v=static_v,
            )  # fmt: skip
            axis = 0 if self.batch_first else 1
            return ops.squeeze(attended, axis), None if weights is None else ops.squeeze(weights, 0)
        mask = self._mask(query, key_padding_mask, None if is_causal else attn_mask)
        dropout_key = random.next_key(None, query.device) if dropout_p else None
        weights, static = None, static_k is not None or static_v is not None
        extra = (self.bias_k is not None) + self.add_zero_attn
        if extra and lengths is not None:
            raise ValueError("[MultiheadAttention] lengths must be None with add_bias_kv or add_zero_attn; use a mask.")
        if query is key and key is value and self.in_proj_weight is not None and not (need_weights or extra or static):
            qkv = self._heads(ops.linear(query, self.in_proj_weight, self.in_proj_bias), 3)
            result = ops.packed_attention(
                qkv, mask, is_causal, lengths=lengths, dropout_p=dropout_p, dropout_key=dropout_key
            )
        else:
            q, k, v = (ops.permute(x, (0, 2, 1, 3)) for x in self._projected(query, key, value))
            k, v = (x if given is None else self._given(given) for x, given in ((k, static_k), (v, static_v)))
            if extra:
                mask, is_causal = self._mask_with(extra, mask, is_causal, q, k), False
                k, v = self._with_extra(k, self.bias_k), self._with_extra(v, self.bias_v)
            if need_weights:
                options = Options(is_causal, float(q.shape[-1]) ** -0.5, mask, lengths, dropout_p, dropout_key)
                weights = dropped(attention_weights(q, k, options), options)
                heads_first = ops.matmul(weights, v)
                weights = ops.mean(weights, 1) if average_attn_weights else weights
            else:
                heads_first = ops.scaled_dot_product_attention(
                    q, k, v, mask, dropout_p, is_causal, lengths=lengths, dropout_key=dropout_key
                )
            result = ops.permute(heads_first, (0, 2, 1, 3))
        return self._joined(result), weights

    def _heads(self, x: Any, parts: int) -> Any:
        """Reshape projections (…, parts·heads·D) to (batch, time, parts, heads, D); one part has no axis."""
        first, second, width = x.shape
        split = (self.num_heads, width // parts // self.num_heads)
        shaped = ops.reshape(x, (first, second, *((parts,) if parts > 1 else ()), *split))
        return shaped if self.batch_first else ops.transpose(shaped, 0, 1)

    def _joined(self, x: Any) -> Any:
        """Concatenate the heads of (batch, time, heads, D), with axes in the order of the inputs."""
        ordered = x if self.batch_first else ops.transpose(x, 0, 1)
        return ops.reshape(ordered, (*ordered.shape[:2], self.embed_dim))

    def _projected(self, query: Any, key: Any, value: Any) -> list[Any]:
        """Return q, k and v as (batch, time, heads, D)."""
        width = self.embed_dim
        biases: list[Any] = [None] * 3 if self.in_proj_bias is None else list(ops.split(self.in_proj_bias, width))
        weights = list(self.separate)
        if self.in_proj_weight is not None:
            weights = list(ops.split(self.in_proj_weight, width))
        inputs = (query, key, value)
        return [self._heads(ops.linear(x, w, b), 1) for x, w, b in zip(inputs, weights, biases, strict=True)]

    def _given(self, x: Any) -> Any:
        """Reshape projected keys or values (batch·heads, time, D) to (batch, heads, time, D)."""
        return ops.reshape(x, (-1, self.num_heads, *x.shape[1:]))

    def _with_extra(self, x: Any, bias: Any) -> Any:
        """Append a trained key or value, and one of zeros, to (batch, heads, time, D)."""
        single = (x.shape[0], x.shape[1], 1, x.shape[3])
        if bias is not None:
            heads = ops.reshape(ops.cast(bias, x.dtype), (1, self.num_heads, 1, -1))
            x = ops.concat([x, ops.broadcast_to(heads, single)], 2)
        return ops.concat([x, ops.full_like(x, 0, single)], 2) if self.add_zero_attn else x

    def _mask_with(self, extra: int, mask: Any, is_causal: bool, q: Any, k: Any) -> Any:
        """Return a mask in which all queries also see ``extra`` more keys."""
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
        """Join both masks over (batch, heads, queries, keys): bools are True where seen, numbers are added."""
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


def _joint(mask: Any, visible: Any, like: Any) -> Any:
    """Return a mask that hides what ``mask`` hides, and what is not ``visible``."""
    if mask.dtype is bool_:
        return ops.logical_and(mask, visible)
    return mask + _added(ops.logical_not(visible), like)


def _added(mask: Any, like: Any) -> Any:
    """Return a mask as numbers to add: -inf where a mask of bools hides."""
    if mask.dtype is bool_:
        return ops.where(mask, ops.full_like(like, -math.inf, (1,) * mask.ndim), 0)
    return ops.cast(mask, like.dtype)


def multi_head_attention_forward(
    query: Array,
    key: Array,
    value: Array,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Array | None,
    in_proj_bias: Array | None,
    bias_k: Array | None,
    bias_v: Array | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Array,
    out_proj_bias: Array | None,
    training: bool = True,
    key_padding_mask: Array | None = None,
    need_weights: bool = True,
    attn_mask: Array | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Array | None = None,
    k_proj_weight: Array | None = None,
    v_proj_weight: Array | None = None,
    static_k: Array | None = None,
    static_v: Array | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Array, Array | None]:
    """Apply multi-head attention with the weights of :class:`runnel.nn.MultiheadAttention`.

    Inputs have shape (time, batch, features) or (time, features). ``static_k`` and ``static_v``, of shape (batch·heads,
    time, features of a head), replace the projected keys and values.

    Returns:
        The result, and the weights or None without ``need_weights``.
    """
    if query.shape[-1] != embed_dim_to_check or num_heads < 1 or embed_dim_to_check % num_heads:
        raise ShapeError(
            f"[multi_head_attention_forward] query must have {embed_dim_to_check} features, divisible by "
            f"num_heads={num_heads}; got shape {query.shape}."
        )
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else (None, None, None)
    if any(w is None for w in (separate if use_separate_proj_weight else (in_proj_weight,))):
        raise ArgumentError(
            "[multi_head_attention_forward] must get in_proj_weight, or with use_separate_proj_weight q_proj_weight, "
            "k_proj_weight and v_proj_weight."
        )
    weights = None if use_separate_proj_weight else in_proj_weight
    projections = Projections(
        embed_dim_to_check, num_heads, weights, separate, in_proj_bias, bias_k, bias_v, add_zero_attn, False
    )
    attended, attention = projections.attend(
        query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal,
        lengths=None, dropout_p=dropout_p if training else 0.0, static_k=static_k, static_v=static_v,
    )  # fmt: skip
    return ops.linear(attended, out_proj_weight, out_proj_bias), attention


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
        *,
        dtype: Dtype = None,
    ) -> None:
        if num_heads <= 0 or embed_dim <= 0 or embed_dim % num_heads:
            raise ValueError(
                f"[MultiheadAttention] embed_dim must be divisible by num_heads; got {embed_dim} and {num_heads}."
            )
        kind = parameter_dtype(dtype)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
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
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype=kind)
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

    _reset_parameters = reset_parameters

    def forward(
        self,
        query: Array,
        key: Array,
        value: Array,
        key_padding_mask: Array | None = None,
        need_weights: bool = True,
        attn_mask: Array | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        lengths: Array | None = None,
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
