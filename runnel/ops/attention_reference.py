"""Attention and its gradient in NumPy and float64: what their kernels are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.tables import reference
from runnel.ops.attention_operands import AttentionOperands, operands
from runnel.ops.random import random_bits_p


def _seen_in_bounds(bounds: Any, queries: int, keys: int, causal: bool) -> Any:
    """Which keys each query sees where sequences lie one after another."""
    seen = np.zeros((queries, keys), bool)
    for begin, many, key_begin, key_many in bounds:
        own = np.tri(many, key_many, key_many - many, dtype=bool) if causal else True
        seen[begin : begin + many, key_begin : key_begin + key_many] = own
    return seen


def _kept(given: AttentionOperands, dropout: float) -> Any:
    """What dropout multiplies each weight by."""
    if not dropout:
        return 1.0
    at = given.heads
    words = [np.asarray(given.key[i]).reshape(1, 1, 1, 1) for i in range(2)]
    shape = (at.batch, at.heads, at.queries, at.keys)
    bits = reference[random_bits_p](*words, shape=shape, word=0, stream=0)
    below = (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24) < np.float32(dropout)
    return np.where(below, 0.0, 0.0 if dropout == 1 else 1 / (1 - dropout))


def _weights(given: AttentionOperands, causal: bool, scale: float, packed: bool) -> tuple[Any, Any, Any, Any]:
    """q, k and v as [B, H, T, D], and the weights before dropout."""
    if packed:
        q, k, v = (np.moveaxis(given.main[0], 2, 0).transpose(0, 1, 3, 2, 4)[i].astype(np.float64) for i in range(3))
    else:
        q, k, v = (x.astype(np.float64) for x in given.main)
        k, v = (np.repeat(x, given.heads.group, axis=1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale
    if given.mask is not None:
        scores = np.where(given.mask, scores, -np.inf) if given.mask.dtype == bool else scores + given.mask
    rows, columns = np.arange(given.heads.queries)[:, None], np.arange(given.heads.keys)
    if given.bounds is not None:
        seen = _seen_in_bounds(given.bounds, given.heads.queries, given.heads.keys, causal)
        scores = np.where(seen, scores, -np.inf)
    elif causal:
        scores = np.where(columns <= rows, scores, -np.inf)
    if given.lengths is not None:
        scores = np.where(columns < given.lengths[:, None, None, None], scores, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = powers.sum(-1, keepdims=True)
    return q, k, v, powers / np.where(total == 0, 1, total)


def attention_reference(*arrays: Any, packed: bool, causal: bool, scale: float, dropout: float, **flags: bool) -> Any:
    given = operands(arrays, packed=packed, dropout=dropout, **flags)
    _, _, v, weights = _weights(given, causal, scale, packed)
    found = (weights * _kept(given, dropout)) @ v
    return np.ascontiguousarray(found.transpose(0, 2, 1, 3)).astype(arrays[0].dtype)


def gradient_reference(
    g: Any, *arrays: Any, packed: bool, causal: bool, scale: float, dropout: float, **flags: bool
) -> tuple[Any, ...]:
    given = operands(arrays, packed=packed, dropout=dropout, **flags)
    q, k, v, p = _weights(given, causal, scale, packed)
    kept = _kept(given, dropout)
    g64 = g.astype(np.float64).transpose(0, 2, 1, 3)
    dp = (g64 @ v.swapaxes(-1, -2)) * kept
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    found = [ds @ k, ds.swapaxes(-1, -2) @ q, (p * kept).swapaxes(-1, -2) @ g64]
    at = given.heads
    if packed:
        return (np.stack([x.transpose(0, 2, 1, 3) for x in found], 2).astype(g.dtype),)
    for i in (1, 2):
        x = found[i]
        found[i] = x.reshape(at.batch, at.kv_heads, at.group, *x.shape[2:]).sum(2)
    return tuple(np.ascontiguousarray(x.transpose(0, 2, 1, 3)).astype(g.dtype) for x in found)
