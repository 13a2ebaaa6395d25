"""Attention of ragged values: each row attends to itself, or to the row of its number in other keys."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError, UnsupportedError
from runnel.nn import functions
from runnel.uneven.joining import regular
from runnel.uneven.value import Ragged


def attention(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``scaled_dot_product_attention`` of (rows, length, heads, D), or of (rows, length, D) for one head."""

    def attend(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
        **options: Any,
    ) -> Any:
        if attn_mask is not None or any(x is not None for x in options.values()):
            raise UnsupportedError("[scaled_dot_product_attention] ragged values take no mask, only is_causal.")
        q, k, v = (x if isinstance(x, Ragged) else regular(x) for x in (query, key, value))
        heads = q.ndim == 4
        if not heads:
            q, k, v = (x.map(ops.expand_dims, 1) for x in (q, k, v))
        result = attended(q, k, v, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa, dropout_p=dropout_p)
        result = result if heads else ops.squeeze(result, 1)
        if isinstance(query, Ragged):
            return Ragged.made(result, query.offsets)
        return ops.reshape(result, (*query.shape[:2], *result.shape[1:]))

    return attend(*args, **kwargs)


def attended(query: Ragged, key: Ragged, value: Ragged, *, is_causal: bool, **options: Any) -> Any:
    """Return the values of the attention within rows."""
    same = key.offsets is query.offsets
    if query.count != key.count:
        raise ShapeError(f"[attention] query and key must have the same number of rows; got {query} and {key}.")
    if is_causal and not same:
        raise UnsupportedError("[attention] is_causal needs a key with the offsets of the query.")
    return functions.varlen_attn(
        query.values, key.values, value.values, query.offsets, None if same else key.offsets, is_causal=is_causal,
        **options,
    )  # fmt: skip


def multihead(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Ragged, None]:
    """Return the result of ``nn.MultiheadAttention``, and None instead of the weights."""

    def forward(
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
    ) -> tuple[Any, None]:
        masks = {"key_padding_mask": key_padding_mask, "lengths": lengths, "attn_mask": attn_mask}
        for name, mask in masks.items():
            if mask is not None and not (is_causal and name == "attn_mask"):
                raise UnsupportedError(f"[MultiheadAttention] {name} must be None for ragged values; use is_causal.")
        if layer.bias_k is not None or layer.add_zero_attn:
            raise UnsupportedError("[MultiheadAttention] add_bias_kv and add_zero_attn must be False for ragged x.")
        q, k, v = _projected(layer, query, key, value)
        result = attended(q, k, v, is_causal=is_causal, dropout_p=layer.dropout if layer.training else 0.0)
        joined = layer.out_proj(ops.reshape(result, (result.shape[0], layer.embed_dim)))
        if isinstance(query, Ragged):
            return Ragged.made(joined, query.offsets), None
        return ops.reshape(joined, (*query.shape[:2], layer.embed_dim)), None

    return forward(*args, **kwargs)


def _projected(layer: Any, query: Any, key: Any, value: Any) -> list[Ragged]:
    """Return queries, keys and values of (total, heads, D)."""
    shape = (layer.num_heads, layer.head_dim)
    if layer.in_proj_weight is not None and _is_one(query, key, value):
        whole = ops.linear(query.values, layer.in_proj_weight, layer.in_proj_bias)
        split = ops.reshape(whole, (whole.shape[0], 3, *shape))
        return [Ragged.made(split[:, i], query.offsets) for i in range(3)]
    width = layer.embed_dim
    weights = [layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight]
    if layer.in_proj_weight is not None:
        weights = list(ops.split(layer.in_proj_weight, width))
    biases = [None] * 3 if layer.in_proj_bias is None else list(ops.split(layer.in_proj_bias, width))
    ragged = {id(x): x if isinstance(x, Ragged) else regular(x) for x in (query, key, value)}
    results = []
    for x, weight, bias in zip((query, key, value), weights, biases, strict=True):
        rows = ragged[id(x)]
        flat = ops.linear(rows.values, weight, bias)
        results.append(Ragged.made(ops.reshape(flat, (flat.shape[0], *shape)), rows.offsets))
    return results


def _is_one(*values: Any) -> bool:
    """Return whether all are the same Ragged. A compiled function passes on the same tensors, perhaps in several."""
    first = values[0]
    return all(isinstance(x, Ragged) and x.values is first.values and x.offsets is first.offsets for x in values)
