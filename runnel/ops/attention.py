"""Attention with PyTorch's arguments over any leading axes, and of packed projections."""

from __future__ import annotations

import math

from runnel.core.dispatch import apply
from runnel.core.dtypes import bool_, float32
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, broadcast_shapes
from runnel.ops.arithmetic import multiply
from runnel.ops.attention_primitives import attention_p
from runnel.ops.attention_terms import Options
from runnel.ops.broadcasting import broadcast_to, with_rank
from runnel.ops.conversion import cast
from runnel.ops.views import permute, reshape


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    lengths: Array | None = None,
    dropout_key: Array | None = None,
) -> Array:
    """softmax(query·keyᵀ·scale + mask)·value for queries (..., Tq, D), keys (..., Tk, D) and values (..., Tk, V),
    whose leading axes broadcast unless ``enable_gqa``.

    ``attn_mask`` broadcasts to (..., Tq, Tk): a bool one says what a query may see, a float one is added. ``is_causal``
    hides the keys after a query's position, beside what a mask hides. ``lengths``, one integer for each index of the
    first axis, hides (and skips) the keys from there on. ``scale`` is 1/√D by default. With ``enable_gqa`` there may be
    fewer heads (axis -3) of keys and values, each for as many adjacent heads of queries. ``dropout_p`` zeroes weights
    by ``dropout_key``, as :func:`dropout` would; no mask is stored. A query that sees no key gives 0. Half precision is
    computed in float32.
    """
    if query.dtype.itemsize == 2:
        q, k, v = (cast(x, float32) for x in (query, key, value))
        mask = attn_mask if attn_mask is None or attn_mask.dtype is bool_ else cast(attn_mask, float32)
        attended = scaled_dot_product_attention(
            q, k, v, mask, dropout_p, is_causal, scale, enable_gqa, lengths=lengths, dropout_key=dropout_key
        )
        return cast(attended, query.dtype)
    if not enable_gqa and len({x.shape[:-2] for x in (query, key, value)}) > 1:
        query, key, value = _with_leading_axes(query, key, value)
    _check(query, key, value, enable_gqa)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if not factor > 0:
        query, factor = multiply(query, factor), 1.0
    leading = query.shape[:-2]
    q, k, v = (_four_axes(x) for x in (query, key, value))
    mask = None if attn_mask is None else _mask(attn_mask, leading)
    options = Options(bool(is_causal), float(factor), mask, lengths, float(dropout_p), dropout_key)
    result = permute(apply_attention((q, k, v), options, packed=False), (0, 2, 1, 3))
    return reshape(result, (*leading, *result.shape[-2:]))


def packed_attention(
    qkv: Array,
    attn_mask: Array | None = None,
    is_causal: bool = False,
    *,
    lengths: Array | None = None,
    dropout_p: float = 0.0,
    dropout_key: Array | None = None,
) -> Array:
    """Self-attention of projections that lie together, (B, T, 3, H, D), as (B, T, H, D); other arguments are those of
    :func:`scaled_dot_product_attention`. The gradient lies as the projections do, so that nothing is copied."""
    if qkv.ndim != 5 or qkv.shape[2] != 3:
        raise ShapeError(f"[packed_attention] takes an array of shape (B, T, 3, H, D), got {qkv.shape}.")
    mask = None if attn_mask is None else with_rank(attn_mask, 4)
    options = Options(bool(is_causal), 1 / math.sqrt(qkv.shape[-1]), mask, lengths, float(dropout_p), dropout_key)
    return apply_attention((qkv,), options, packed=True)


def apply_attention(main: tuple[Array, ...], options: Options, *, packed: bool) -> Array:
    """The primitive, applied to q, k and v or to the ``packed`` array, and to what ``options`` hold."""
    if not 0 <= options.dropout <= 1:
        raise ValueError(f"[attention] dropout_p is a probability, got {options.dropout}.")
    if options.dropout and options.key is None:
        raise ValueError("[attention] dropout needs a dropout_key.")
    key = options.key if options.dropout else None
    extras = [x for x in (options.mask, options.lengths, key, options.bounds) if x is not None]
    return apply(
        attention_p, *main, *extras, packed=packed, causal=options.causal, scale=options.scale,
        masked=options.mask is not None, limited=options.lengths is not None, dropout=options.dropout,
        ragged=options.bounds is not None,
    )  # fmt: skip


def _with_leading_axes(*operands: Array) -> list[Array]:
    """Operands whose axes but the last two are broadcast to those of all."""
    leading = broadcast_shapes("scaled_dot_product_attention", *(x.shape[:-2] for x in operands))
    return [broadcast_to(x, (*leading, *x.shape[-2:])) for x in operands]


def _check(query: Array, key: Array, value: Array, enable_gqa: bool) -> None:
    name = "[scaled_dot_product_attention]"
    shapes = f"query {query.shape}, key {key.shape} and value {value.shape}"
    if query.ndim < 2 or not query.ndim == key.ndim == value.ndim:
        raise ShapeError(f"{name} {shapes} need the same number of axes, two or more.")
    if not query.shape[-1]:
        raise ShapeError(f"{name} {shapes}: queries need at least one number each.")
    if key.shape[:-1] != value.shape[:-1] or query.shape[-1] != key.shape[-1]:
        raise ShapeError(
            f"{name} {shapes} do not fit: key and value may differ in the last axis only, query and key must not."
        )
    if enable_gqa and query.ndim >= 3:
        few, many = key.shape[-3], query.shape[-3]
        if query.shape[:-3] != key.shape[:-3] or few == 0 or many % few:
            raise ShapeError(f"{name} {shapes}: the heads of query, {many}, are no multiple of those of key, {few}.")


def _four_axes(x: Array) -> Array:
    """(..., H, T, D) as (B, H, T, D)."""
    if x.ndim == 4:
        return x
    if x.ndim == 3:
        return reshape(x, (x.shape[0], 1, *x.shape[1:]))
    return reshape(x, (math.prod(x.shape[:-3]), *((1,) * (3 - x.ndim)), *x.shape[-3:]))


def _mask(mask: Array, leading: tuple[int, ...]) -> Array:
    """A mask over (..., Tq, Tk) as one of four axes, of size 1 where it broadcasts."""
    full = with_rank(mask, len(leading) + 2)
    if len(leading) < 2:
        return reshape(full, (*full.shape[:-2], *((1,) * (2 - len(leading))), *full.shape[-2:]))
    if len(leading) == 2:
        return full
    outer = leading[:-1]
    return reshape(broadcast_to(full, (*outer, *full.shape[-3:])), (math.prod(outer), *full.shape[-3:]))
