"""Attention and its gradient in NumPy and float64: the oracle of their kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import Shape
from runnel.core.errors import ShapeError
from runnel.core.tables import reference
from runnel.ops.random import random_bits_p


class Heads(NamedTuple):
    """The extents of an attention."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    depth: int
    values: int

    @property
    def group(self) -> int:
        """How many heads read the same keys."""
        return self.heads // self.kv_heads if self.kv_heads else 0

    @property
    def parts(self) -> tuple[Shape, Shape, Shape]:
        """The shapes of the gradients of q, k and v as they lie in memory."""
        return (
            (self.batch, self.queries, self.heads, self.depth),
            (self.batch, self.keys, self.kv_heads, self.depth),
            (self.batch, self.keys, self.kv_heads, self.values),
        )


class Roles(NamedTuple):
    """The operands of an attention by their roles; None for what it does not have."""

    main: tuple[Any, ...]  # q, k and v, or the packed array
    mask: Any
    lengths: Any
    key: Any  # of dropout
    bounds: Any


class AttentionOperands(NamedTuple):
    """AttentionOperands that have shapes by their roles, and the extents."""

    main: tuple[Any, ...]
    mask: Any
    lengths: Any
    key: Any
    bounds: Any
    heads: Heads


def roles(
    arrays: tuple[Any, ...], *, packed: bool, masked: bool, limited: bool, dropout: float, ragged: bool, **_: Any
) -> Roles:
    """Sort arrays, avals or names by role; ShapeError if their number is wrong."""
    count = 1 if packed else 3
    present = (masked, limited, dropout > 0, ragged)
    if len(arrays) != count + sum(present):
        raise ShapeError(f"[attention] takes {count + sum(present)} operands, got {len(arrays)}.")
    extras = iter(arrays[count:])
    return Roles(arrays[:count], *(next(extras) if is_present else None for is_present in present))


def operands(arrays: tuple[Any, ...], *, packed: bool, **attrs: Any) -> AttentionOperands:
    """Sort arrays with shapes by role; ShapeError if their number or rank is wrong."""
    by_role = roles(arrays, packed=packed, **attrs)
    if any(x.ndim != (5 if packed else 4) for x in by_role.main):
        shapes = ", ".join(str(x.shape) for x in by_role.main)
        raise ShapeError(f"[attention] takes arrays of {5 if packed else 4} axes, got shapes {shapes}.")
    if packed:
        b, t, three, h, d = by_role.main[0].shape
        if three != 3:
            raise ShapeError(f"[attention] axis 2 of packed operands holds q, k and v; it has {three}.")
        return AttentionOperands(*by_role, Heads(b, h, h, t, t, d, d))
    q, k, v = (x.shape for x in by_role.main)
    return AttentionOperands(*by_role, Heads(q[0], q[1], k[1], q[2], k[2], q[3], v[3]))


def _visible_in_bounds(bounds: Any, queries: int, keys: int, causal: bool) -> Any:
    """Return which keys each query sees if sequences are stored one after another."""
    is_visible = np.zeros((queries, keys), bool)
    for begin, many, key_begin, key_many in bounds:
        own = np.tri(many, key_many, key_many - many, dtype=bool) if causal else True
        is_visible[begin : begin + many, key_begin : key_begin + key_many] = own
    return is_visible


def _dropout_factors(sorted_operands: AttentionOperands, dropout: float) -> Any:
    """Return the factor of each weight under dropout."""
    if not dropout:
        return 1.0
    at = sorted_operands.heads
    words = [np.asarray(sorted_operands.key[i]).reshape(1, 1, 1, 1) for i in range(2)]
    shape = (at.batch, at.heads, at.queries, at.keys)
    bits = reference[random_bits_p](*words, shape=shape, word=0, stream=0)
    below = (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24) < np.float32(dropout)
    return np.where(below, 0.0, 0.0 if dropout == 1 else 1 / (1 - dropout))


def _weights(sorted_operands: AttentionOperands, causal: bool, scale: float, packed: bool) -> tuple[Any, Any, Any, Any]:
    """q, k and v as [B, H, T, D], and the weights before dropout."""
    if packed:
        q, k, v = (
            np.moveaxis(sorted_operands.main[0], 2, 0).transpose(0, 1, 3, 2, 4)[i].astype(np.float64) for i in range(3)
        )
    else:
        q, k, v = (x.astype(np.float64) for x in sorted_operands.main)
        k, v = (np.repeat(x, sorted_operands.heads.group, axis=1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale
    if sorted_operands.mask is not None:
        scores = (
            np.where(sorted_operands.mask, scores, -np.inf)
            if sorted_operands.mask.dtype == bool
            else scores + sorted_operands.mask
        )
    rows, columns = np.arange(sorted_operands.heads.queries)[:, None], np.arange(sorted_operands.heads.keys)
    if sorted_operands.bounds is not None:
        is_visible = _visible_in_bounds(
            sorted_operands.bounds, sorted_operands.heads.queries, sorted_operands.heads.keys, causal
        )
        scores = np.where(is_visible, scores, -np.inf)
    elif causal:
        scores = np.where(columns <= rows, scores, -np.inf)
    if sorted_operands.lengths is not None:
        scores = np.where(columns < sorted_operands.lengths[:, None, None, None], scores, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = powers.sum(-1, keepdims=True)
    return q, k, v, powers / np.where(total == 0, 1, total)


def attention_reference(*arrays: Any, packed: bool, causal: bool, scale: float, dropout: float, **flags: bool) -> Any:
    sorted_operands = operands(arrays, packed=packed, dropout=dropout, **flags)
    _, _, v, weights = _weights(sorted_operands, causal, scale, packed)
    attended = (weights * _dropout_factors(sorted_operands, dropout)) @ v
    return np.ascontiguousarray(attended.transpose(0, 2, 1, 3)).astype(arrays[0].dtype)


def gradient_reference(
    g: Any, *arrays: Any, packed: bool, causal: bool, scale: float, dropout: float, **flags: bool
) -> tuple[Any, ...]:
    sorted_operands = operands(arrays, packed=packed, dropout=dropout, **flags)
    q, k, v, p = _weights(sorted_operands, causal, scale, packed)
    dropout_factors = _dropout_factors(sorted_operands, dropout)
    g64 = g.astype(np.float64).transpose(0, 2, 1, 3)
    dp = (g64 @ v.swapaxes(-1, -2)) * dropout_factors
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    gradients = [ds @ k, ds.swapaxes(-1, -2) @ q, (p * dropout_factors).swapaxes(-1, -2) @ g64]
    at = sorted_operands.heads
    if packed:
        return (np.stack([x.transpose(0, 2, 1, 3) for x in gradients], 2).astype(g.dtype),)
    for i in (1, 2):
        x = gradients[i]
        gradients[i] = x.reshape(at.batch, at.kv_heads, at.group, *x.shape[2:]).sum(2)
    return tuple(np.ascontiguousarray(x.transpose(0, 2, 1, 3)).astype(g.dtype) for x in gradients)
