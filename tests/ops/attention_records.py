"""The records of attention and its gradient: written out query by query."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = Any


def case(
    q: tuple[int, ...], k: tuple[int, ...] | None = None, v: tuple[int, ...] | None = None, *, causal: bool = False,
    mask: tuple[int, ...] | None = None, gradient: bool = False,
) -> Any:  # fmt: skip
    """Shapes and attributes; without k and v, ``q`` is the shape of packed operands."""
    packed = k is None or v is None
    main = (q,) if k is None or v is None else (q, k, v)
    result = (q[0], q[1], *q[3:]) if k is None or v is None else (q[0], q[2], q[1], v[3])
    shapes = (*((result,) if gradient else ()), *main, *(() if mask is None else (mask,)))
    attrs = {
        "packed": packed,
        "causal": causal,
        "scale": 0.4,
        "masked": mask is not None,
        "limited": False,
        "dropout": 0.0,
        "ragged": False,
    }
    return shapes, attrs


def cases(*, gradient: bool) -> Any:
    return (
        case((1, 1, 3, 2), (1, 1, 4, 2), (1, 1, 4, 3), gradient=gradient),
        case((2, 3, 3, 2, 4), causal=True, gradient=gradient),
        case((1, 4, 3, 2), (1, 2, 3, 2), (1, 2, 3, 1), mask=(1, 1, 3, 3), gradient=gradient),
        case((2, 2, 5, 3), (2, 1, 2, 3), (2, 1, 2, 3), causal=True, gradient=gradient),
        case((1, 2, 0, 2), (1, 2, 3, 2), (1, 2, 3, 2), gradient=gradient),
        case((1, 2, 2, 2), (1, 2, 0, 2), (1, 2, 0, 2), gradient=gradient),
        case((2, 2, 19, 5), (2, 2, 21, 5), (2, 2, 21, 7), causal=True, mask=(1, 2, 1, 21), gradient=gradient),
    )


def split(arrays: Arrays, packed: bool) -> tuple[Any, Any, Any, Any]:
    """q, k, v as [B, heads, T, D], each head of queries with its own keys, and the mask or 0."""
    if packed:
        q, k, v = (arrays[0][:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        return q, k, v, arrays[1] if len(arrays) > 1 else 0.0
    q, k, v = arrays[:3]
    group = q.shape[1] // k.shape[1]
    owner = np.arange(q.shape[1]) // group
    return q, k[:, owner], v[:, owner], arrays[3] if len(arrays) > 3 else 0.0


def weights(q: Any, k: Any, mask: Any, causal: bool, scale: float) -> Any:
    scores = np.einsum("bhid,bhjd->bhij", q, k) * scale + mask
    if causal:
        scores[..., np.triu_indices(scores.shape[-2], 1, scores.shape[-1])[0],
               np.triu_indices(scores.shape[-2], 1, scores.shape[-1])[1]] = -np.inf  # fmt: skip
    powers = np.exp(scores)
    return powers / np.maximum(powers.sum(-1, keepdims=True), 1e-300)


def attention(*arrays: Any, packed: bool, causal: bool, scale: float, **_: Any) -> Any:
    q, k, v, mask = split(arrays, packed)
    return np.einsum("bhij,bhjv->bihv", weights(q, k, mask, causal, scale), v)


def attention_gradient(g: Any, *arrays: Any, packed: bool, causal: bool, scale: float, **_: Any) -> Any:
    q, k, v, mask = split(arrays, packed)
    p = weights(q, k, mask, causal, scale)
    by_p = np.einsum("bihv,bhjv->bhij", g, v)
    by_s = p * (by_p - np.einsum("bhij,bhij->bhi", p, by_p)[..., None])
    actual = [
        scale * np.einsum("bhij,bhjd->bihd", by_s, k),
        scale * np.einsum("bhij,bhid->bjhd", by_s, q),
        np.einsum("bhij,bihv->bjhv", p, g),
    ]
    if packed:
        return (np.stack(actual, 2),)
    few = arrays[1].shape[1]
    for i in (1, 2):
        b, t, h, d = actual[i].shape
        actual[i] = actual[i].reshape(b, t, few, h // few, d).sum(3)
    return tuple(actual)


def largest(*arrays: Any, **attrs: Any) -> Any:
    """The greatest gradient in place of each: they are differences of what may be near one another."""
    actual = attention_gradient(*arrays, **attrs)
    top = max(np.max(np.abs(x), initial=0.0) for x in actual)
    return tuple(np.full_like(x, top) for x in actual)
