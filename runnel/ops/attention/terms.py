"""Attention in simpler ops: its weights, and the gradients that have no kernel.

Used for weights that are asked for, for masks that are trained, and for gradients of gradients. Here the scores do lie
in memory.
"""

from __future__ import annotations

from typing import NamedTuple

from runnel.core.avals import Shape
from runnel.core.dtypes import bool_, float32, int64
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast, stop_gradient
from runnel.ops.creation_like import full_like, iota
from runnel.ops.elementwise.arithmetic import add, divide, maximum, multiply, subtract
from runnel.ops.elementwise.comparison import equal, less, less_equal, logical_and, where
from runnel.ops.elementwise.exponential import exp
from runnel.ops.linear_algebra.contraction import matmul
from runnel.ops.random import dropout
from runnel.ops.reductions.primitives import max, sum
from runnel.ops.shapes.broadcasting import broadcast_to, unbroadcast
from runnel.ops.shapes.pieces import narrow
from runnel.ops.shapes.views import expand_dims, reshape, transpose

LOWEST = -1e30  # below any score, and finite, so that a row without keys has no NaN


class Options(NamedTuple):
    """Options of an attention, and its operands besides q, k and v. ``bounds`` locates sequences (``attention_p``)."""

    causal: bool
    scale: float
    mask: Array | None = None
    lengths: Array | None = None
    dropout: float = 0.0
    key: Array | None = None  # of dropout
    bounds: Array | None = None


def repeated(x: Array, heads: int) -> Array:
    """Repeat [B, K, T, D] to [B, ``heads``, T, D]: each of the K heads serves as many adjacent ones."""
    b, few, t, d = x.shape
    if few == heads:
        return x
    group = heads // few
    return reshape(broadcast_to(expand_dims(x, 2), (b, few, group, t, d)), (b, heads, t, d))


def gathered(x: Array, few: int) -> Array:
    """Return the gradient of :func:`repeated`: sums over the heads that read one."""
    b, heads, t, d = x.shape
    return x if few == heads else sum(reshape(x, (b, few, heads // few, t, d)), 2)


def visible(like: Array, shape: Shape, options: Options) -> Array | None:
    """Return which of the scores of ``shape`` [B, H, Tq, Tk] count; None for all of them."""
    mask: Array | None = None
    columns = iota(like, (1, 1, 1, shape[3]))
    if options.bounds is not None:
        mask = _visible_in_bounds(like, shape, options.bounds, options.causal)
    elif options.causal:
        mask = less_equal(columns, iota(like, (1, 1, shape[2], 1), axis=2))
    if options.lengths is not None:
        below = less(columns, reshape(cast(options.lengths, columns.dtype), (shape[0], 1, 1, 1)))
        mask = below if mask is None else logical_and(mask, below)
    if options.mask is not None and options.mask.dtype is bool_:
        mask = options.mask if mask is None else logical_and(mask, options.mask)
    return mask


def _visible_in_bounds(like: Array, shape: Shape, bounds: Array, causal: bool) -> Array:
    """Return which keys belong to a query's sequence and, if causal, are not after its position."""
    count = bounds.shape[0]
    first, many, key_first, key_many = (narrow(bounds, 1, i, 1) for i in range(4))
    rows, columns = iota(like, (1, shape[2]), dtype=int64), iota(like, (1, shape[3]), dtype=int64)
    asks = logical_and(less_equal(first, rows), less(rows, add(first, many)))
    holds = logical_and(less_equal(key_first, columns), less(columns, add(key_first, key_many)))
    if causal:
        ahead = subtract(add(key_first, key_many), add(first, many))
        last = sum(where(asks, add(rows, ahead), 0), 0)
        before = less_equal(reshape(columns, (1, 1, 1, shape[3])), reshape(last, (1, 1, shape[2], 1)))
    together = matmul(transpose(cast(asks, float32)), cast(holds, float32)) if count else None
    same = (
        full_like(like, False, shape, bool_) if together is None else reshape(less(0.5, together), (1, 1, *shape[2:]))
    )
    return logical_and(same, before) if causal else same


def dropped(x: Array, options: Options) -> Array:
    """Apply dropout at the positions of the weights."""
    return dropout(x, options.key, options.dropout) if options.dropout else x


def attention_weights(q: Array, k: Array, options: Options) -> Array:
    """Return softmax(scale·q·kᵀ + mask) for q[B, H, Tq, D] and k[B, H, Tk, D], before dropout.

    A row that may see no key is 0."""
    scores = multiply(matmul(q, transpose(k)), options.scale)
    if options.mask is not None and options.mask.dtype is not bool_:
        scores = add(scores, options.mask)
    mask = visible(q, scores.shape, options)
    if mask is not None:
        scores = where(mask, scores, LOWEST)
    if 0 in scores.shape:
        return scores
    top = stop_gradient(maximum(max(scores, -1, keepdims=True), LOWEST))
    powers = exp(subtract(scores, top))
    if mask is not None or options.mask is not None:
        powers = where(less_equal(scores, LOWEST), 0, powers)
    total = sum(powers, -1, keepdims=True)
    return divide(powers, where(equal(total, 0), 1, total))


def scores_gradient(weights: Array, g: Array) -> Array:
    """Return the gradient of the scores, given the gradient ``g`` of their softmax."""
    return multiply(weights, subtract(g, sum(multiply(weights, g), -1, keepdims=True)))


def mask_gradient(g: Array, q: Array, k: Array, v: Array, options: Options, shape: Shape) -> Array:
    """Return the gradient of an additive mask of ``shape``; ``g`` is the gradient of the result [B, H, Tq, V]."""
    weights = attention_weights(q, k, options)
    return unbroadcast(scores_gradient(weights, dropped(matmul(g, transpose(v)), options)), shape)


class Second(NamedTuple):
    """Gradients by the operands of attention's gradient."""

    g: Array
    q: Array
    k: Array
    v: Array
    scores: Array


def second_gradient(a: Array, b: Array, c: Array, g: Array, q: Array, k: Array, v: Array, options: Options) -> Second:
    """Return the gradients of ⟨a, dq⟩ + ⟨b, dk⟩ + ⟨c, dv⟩.

    dq, dk and dv are attention's gradients for the gradient ``g`` of its result. All are [B, H, T, ...], with k and
    v repeated for each head."""
    scale = options.scale
    p = attention_weights(q, k, options)
    dp = dropped(matmul(g, transpose(v)), options)
    dot = sum(multiply(p, dp), -1, keepdims=True)
    ds = multiply(p, subtract(dp, dot))
    by_ds = multiply(add(matmul(a, transpose(k)), matmul(q, transpose(b))), scale)
    by_dot = sum(multiply(p, by_ds), -1, keepdims=True)
    by_dp = dropped(multiply(p, subtract(by_ds, by_dot)), options)
    by_p = add(
        dropped(matmul(g, transpose(c)), options), subtract(multiply(by_ds, subtract(dp, dot)), multiply(by_dot, dp))
    )
    by_s = scores_gradient(p, by_p)
    return Second(
        g=add(matmul(dropped(p, options), c), matmul(by_dp, v)),
        q=multiply(add(matmul(ds, b), matmul(by_s, k)), scale),
        k=multiply(add(matmul(transpose(ds), a), matmul(transpose(by_s), q)), scale),
        v=matmul(transpose(by_dp), g),
        scores=by_s,
    )
