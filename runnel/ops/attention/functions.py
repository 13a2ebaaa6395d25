"""Attention with PyTorch's arguments over any leading axes, of packed projections, and of packed sequences.

Lengths of sequences are values, not shapes: other lengths are another input of the same program. A program stops
with an error before anything is changed if offsets are invalid.
"""

from __future__ import annotations

import math

from runnel.core.dispatch import apply
from runnel.core.dtypes import bool_, float32, int64
from runnel.core.errors import DTypeError, ShapeError
from runnel.ops.arguments import Array, broadcast_shapes
from runnel.ops.attention.primitives import attention_p
from runnel.ops.attention.terms import Options
from runnel.ops.conversion import cast
from runnel.ops.elementwise.arithmetic import multiply, subtract
from runnel.ops.indexing.gather import checked_op
from runnel.ops.shapes.broadcasting import broadcast_to, with_rank
from runnel.ops.shapes.pieces import narrow, stack
from runnel.ops.shapes.views import expand_dims, permute, reshape


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
    _require_fitting(query, key, value, enable_gqa)
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
    """Return self-attention (B, T, H, D) of packed projections (B, T, 3, H, D).

    The other arguments are as in :func:`scaled_dot_product_attention`. The gradient has the layout of the
    projections, so that nothing is copied."""
    if qkv.ndim != 5 or qkv.shape[2] != 3:
        raise ShapeError(f"[packed_attention] takes an array of shape (B, T, 3, H, D), got {qkv.shape}.")
    mask = None if attn_mask is None else with_rank(attn_mask, 4)
    options = Options(bool(is_causal), 1 / math.sqrt(qkv.shape[-1]), mask, lengths, float(dropout_p), dropout_key)
    return apply_attention((qkv,), options, packed=True)


def apply_attention(main: tuple[Array, ...], options: Options, *, packed: bool) -> Array:
    """Apply the primitive to q, k and v or to the ``packed`` array, with the operands in ``options``."""
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
    """Broadcast all axes but the last two of the operands."""
    leading = broadcast_shapes("scaled_dot_product_attention", *(x.shape[:-2] for x in operands))
    return [broadcast_to(x, (*leading, *x.shape[-2:])) for x in operands]


def _require_fitting(query: Array, key: Array, value: Array, enable_gqa: bool) -> None:
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
            raise ShapeError(f"{name} {shapes}: query must have a multiple of the heads of key, {few}; got {many}.")


def _four_axes(x: Array) -> Array:
    """Reshape (..., H, T, D) to (B, H, T, D)."""
    if x.ndim == 4:
        return x
    if x.ndim == 3:
        return reshape(x, (x.shape[0], 1, *x.shape[1:]))
    return reshape(x, (math.prod(x.shape[:-3]), *((1,) * (3 - x.ndim)), *x.shape[-3:]))


def _mask(mask: Array, leading: tuple[int, ...]) -> Array:
    """Reshape a mask over (..., Tq, Tk) to four axes, of size 1 where it broadcasts."""
    full = with_rank(mask, len(leading) + 2)
    if len(leading) < 2:
        return reshape(full, (*full.shape[:-2], *((1,) * (2 - len(leading))), *full.shape[-2:]))
    if len(leading) == 2:
        return full
    outer = leading[:-1]
    return reshape(broadcast_to(full, (*outer, *full.shape[-3:])), (math.prod(outer), *full.shape[-3:]))


sequence_offset_p = checked_op("sequence_offset", "x, known to lie in [0, extent): where sequences begin and end.")
sequence_length_p = checked_op("sequence_length", "x, known to lie in [0, extent): how long sequences are.")


def varlen_attn(
    query: Array,
    key: Array,
    value: Array,
    cu_seq_q: Array,
    cu_seq_k: Array | None = None,
    max_q: int | None = None,
    max_k: int | None = None,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    dropout_p: float = 0.0,
    dropout_key: Array | None = None,
) -> Array:
    """Attention within each of several sequences that lie one after another, as (queries, H, V).

    Args:
        query: (queries, H, D), the queries of all sequences.
        key: (keys, H, D); with ``enable_gqa`` H may be a divisor of the H of ``query``.
        value: (keys, H, V).
        cu_seq_q: integers, one more than there are sequences: where each one's queries begin, then the end of the last.
            They ascend and are no greater than the number of queries; what lies outside belongs to no sequence: such
            queries give 0. Others are an AxisError.
        cu_seq_k: the same for the keys; ``cu_seq_q`` by default.
        max_q: not needed; there because callers know it elsewhere.
        max_k: likewise.
        is_causal: hides later keys, where the last query of a sequence stands beside its last key.
        scale: of the scores, 1/√D by default.
        enable_gqa: see ``key``.
        dropout_p: the probability with which a weight is zeroed.
        dropout_key: decides which.
    """
    if query.dtype.itemsize == 2:
        q, k, v = (cast(x, float32) for x in (query, key, value))
        attended = varlen_attn(
            q, k, v, cu_seq_q, cu_seq_k, max_q, max_k, is_causal, scale=scale, enable_gqa=enable_gqa,
            dropout_p=dropout_p, dropout_key=dropout_key,
        )  # fmt: skip
        return cast(attended, query.dtype)
    _require_sequences(query, key, value, enable_gqa)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if not factor > 0:
        query, factor = multiply(query, factor), 1.0
    of_queries = _begins_and_lengths(cu_seq_q, query.shape[0], "cu_seq_q")
    of_keys = of_queries
    if cu_seq_k is not None or key.shape[0] != query.shape[0]:
        of_keys = _begins_and_lengths(cu_seq_q if cu_seq_k is None else cu_seq_k, key.shape[0], "cu_seq_k")
    if of_queries[0].shape != of_keys[0].shape:
        counts = f"{of_queries[0].size} sequences of queries and {of_keys[0].size} of keys"
        raise ShapeError(f"[varlen_attn] cu_seq_q and cu_seq_k tell of {counts}; there is one of each for each.")
    bounds = stack([*of_queries, *of_keys], 1)
    main = (
        permute(expand_dims(query, 0), (0, 2, 1, 3)),
        *(permute(expand_dims(x, 0), (0, 2, 1, 3)) for x in (key, value)),
    )
    options = Options(bool(is_causal), float(factor), dropout=float(dropout_p), key=dropout_key, bounds=bounds)
    result = apply_attention(main, options, packed=False)
    return reshape(result, result.shape[1:])


def _begins_and_lengths(offsets: Array, rows: int, name: str) -> tuple[Array, Array]:
    """Return where each sequence begins and its length, checked to be within ``rows``."""
    if offsets.ndim != 1 or offsets.size < 1:
        raise ShapeError(f"[varlen_attn] {name} is a vector of one element or more, got shape {offsets.shape}.")
    if not offsets.dtype.is_integer:
        raise DTypeError(f"[varlen_attn] {name} holds integers, got {offsets.dtype.name}.")
    count = offsets.size - 1
    known = apply(sequence_offset_p, cast(offsets, int64), extent=rows + 1, allowed=None)
    begins, ends = narrow(known, 0, 0, count), narrow(known, 0, 1, count)
    return begins, apply(sequence_length_p, subtract(ends, begins), extent=rows + 1, allowed=None)


def _require_sequences(query: Array, key: Array, value: Array, enable_gqa: bool) -> None:
    shapes = f"query {query.shape}, key {key.shape} and value {value.shape}"
    if not query.ndim == key.ndim == value.ndim == 3:
        raise ShapeError(f"[varlen_attn] {shapes} need three axes each: rows of all sequences, heads, elements.")
    if key.shape[:2] != value.shape[:2] or query.shape[2] != key.shape[2]:
        raise ShapeError(
            f"[varlen_attn] {shapes}: key and value may differ in the last axis only, query and key not in it."
        )
    heads, few = query.shape[1], key.shape[1]
    if heads != few and not (enable_gqa and few and heads % few == 0):
        raise ShapeError(
            f"[varlen_attn] {shapes}: {heads} heads read {few}; with enable_gqa these may be a divisor of those."
        )
