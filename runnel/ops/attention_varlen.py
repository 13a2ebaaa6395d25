"""Attention over packed sequences of different lengths, without padding.

Lengths are values and not shapes: other lengths are another input of the same program. Offsets that make no sense stop
a program with an error before anything is changed.
"""

from __future__ import annotations

import math

from runnel.core.axes import ELEMENTWISE
from runnel.core.dispatch import apply
from runnel.core.dtypes import float32, int64
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.rules import no_tangent
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops.rules import BoundsChecked
from runnel.ops.arguments import Array
from runnel.ops.arithmetic import multiply, subtract
from runnel.ops.attention import apply_attention
from runnel.ops.attention_terms import Options
from runnel.ops.conversion import cast
from runnel.ops.pieces import narrow, stack
from runnel.ops.views import expand_dims, permute, reshape


def _checked(name: str, doc: str) -> Op:
    """An op that gives its operand, whose elements must lie in [0, extent) or equal allowed."""
    op = Op(name, "x, *, extent, allowed", doc)
    abstract_eval.register(op, lambda x, *, extent, allowed: x)
    reference.register(op, lambda x, *, extent, allowed: x)
    lower.register(op, BoundsChecked(lambda avals, x, *, extent, allowed: x))
    vjp.register(op, lambda g, out, x, *, extent, allowed: (None,))
    cost.register(op, lambda x, *, extent, allowed: 0)
    jvp.register(op, no_tangent)
    axes.register(op, ELEMENTWISE)
    return op


sequence_offset_p = _checked("sequence_offset", "x, known to lie in [0, extent): where sequences begin and end.")
sequence_length_p = _checked("sequence_length", "x, known to lie in [0, extent): how long sequences are.")


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
        query: (queries, H, D), those of all sequences.
        key: (keys, H, D); with ``enable_gqa`` H may be a divisor of that of ``query``.
        value: (keys, H, V).
        cu_seq_q: integers, one more than there are sequences: where each one's queries begin, then the end of the last.
            They ascend and are no greater than the number of queries; what lies outside belongs to no sequence: such
            queries give 0. Others are an AxisError.
        cu_seq_k: the same of the keys; those of the queries by default.
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
    _check(query, key, value, enable_gqa)
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
    """Where each sequence begins and how long it is, known to lie within so many rows."""
    if offsets.ndim != 1 or offsets.size < 1:
        raise ShapeError(f"[varlen_attn] {name} is a vector of one element or more, got shape {offsets.shape}.")
    if not offsets.dtype.is_integer:
        raise DTypeError(f"[varlen_attn] {name} holds integers, got {offsets.dtype.name}.")
    count = offsets.size - 1
    known = apply(sequence_offset_p, cast(offsets, int64), extent=rows + 1, allowed=None)
    begins, ends = narrow(known, 0, 0, count), narrow(known, 0, 1, count)
    return begins, apply(sequence_length_p, subtract(ends, begins), extent=rows + 1, allowed=None)


def _check(query: Array, key: Array, value: Array, enable_gqa: bool) -> None:
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
