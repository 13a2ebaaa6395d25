"""Scaled dot-product attention: one primitive and its gradient, whose scores never lie in memory as a whole.

Heads come as views, in any order of axes. The primitive's result is laid out [batch, queries, heads, values], as the
projection that usually follows wants it, and the gradient's parts likewise. A. Vaswani et al., "Attention is all you
need", 2017; that the gradient makes the weights anew is of T. Dao et al., "FlashAttention", 2022.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import Aval, Shape, aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import bool_, float32, float64
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.tables import Op, cost, infer, lower, reference, vjp
from runnel.loops.rules import Attention, AttentionGradient
from runnel.ops.arguments import Array, require_dtype, require_same_dtype
from runnel.ops.attention_terms import Options, gathered, mask_gradient, repeated, second_gradient
from runnel.ops.broadcasting import unbroadcast
from runnel.ops.pieces import concat_same, narrow
from runnel.ops.views import permute, reshape

_SIGNATURE = "q, k, v, [mask], [lengths], *, packed, causal, scale, masked, limited"
attention_p = Op(
    "attention",
    _SIGNATURE,
    "softmax(scale·q·kᵀ + mask)·v as [B, Tq, H, V], from q[B, H, Tq, D], k[B, K, Tk, D] and v[B, K, Tk, V] (packed: "
    "from one array [B, T, 3, H, D]). Head h reads head h // (H / K) of k and v; a query sees the keys below its "
    "sequence's length and, causal, none after its own position; one that sees none gives 0.",
)
attention_gradient_p = Op(
    "attention_gradient",
    f"g, {_SIGNATURE}",
    "The gradients of attention by q, k and v, each laid out [B, T, heads, D], one after the other in a flat array; of "
    "a packed operand, as it is packed.",
)
lower.register(attention_p, Attention())
lower.register(attention_gradient_p, AttentionGradient())


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


class Operands(NamedTuple):
    """The operands of an attention by their roles."""

    main: tuple[Any, ...]  # q, k and v, or the packed array
    mask: Any  # None: there is none
    lengths: Any
    heads: Heads


def operands(arrays: tuple[Any, ...], *, packed: bool, masked: bool, limited: bool, **_: Any) -> Operands:
    """Sort what has shapes; ShapeError where the number or rank of arrays is wrong."""
    count = 1 if packed else 3
    main, extras = arrays[:count], arrays[count:]
    if len(extras) != masked + limited or any(x.ndim != (5 if packed else 4) for x in main):
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise ShapeError(f"[attention] operands of shapes {shapes} are not as expected: {attention_p.doc}")
    if packed:
        b, t, three, h, d = main[0].shape
        if three != 3:
            raise ShapeError(f"[attention] axis 2 of packed operands holds q, k and v; got shape {main[0].shape}.")
        heads = Heads(b, h, h, t, t, d, d)
    else:
        q, k, v = (x.shape for x in main)
        heads = Heads(q[0], q[1], k[1], q[2], k[2], q[3], v[3])
    return Operands(main, extras[0] if masked else None, extras[-1] if limited else None, heads)


# --- infer, cost, reference ---------------------------------------------------------------------------------------


@infer.rule(attention_p)
def _infer(*arrays: Aval, packed: bool, causal: bool, scale: float, masked: bool, limited: bool) -> Aval:
    given = operands(arrays, packed=packed, masked=masked, limited=limited)
    main, at = given.main, given.heads
    require_same_dtype("attention", *main)
    dtype = main[0].dtype
    require_dtype("attention", dtype, (float32, float64))
    if not packed:
        q, k, v = (x.shape for x in main)
        if not (q[0] == k[0] == v[0] and k[1:3] == v[1:3] and q[3] == k[3] and (q[1] % k[1] if k[1] else q[1]) == 0):
            raise ShapeError(f"[attention] shapes of q {q}, k {k} and v {v} do not fit one another.")
    if not scale > 0:
        raise ShapeError(f"[attention] the scale is a positive number, got {scale}.")
    if given.mask is not None:
        full = (at.batch, at.heads, at.queries, at.keys)
        shape = given.mask.shape
        if len(shape) != 4 or any(n not in (1, m) for n, m in zip(shape, full, strict=True)):
            raise ShapeError(f"[attention] a mask of shape {shape} does not broadcast to {full}.")
        if given.mask.dtype is not bool_ and given.mask.dtype is not dtype:
            raise DTypeError(f"[attention] a mask is bool or {dtype.name}, got {given.mask.dtype.name}.")
    if given.lengths is not None and (given.lengths.shape != (at.batch,) or not given.lengths.dtype.is_integer):
        raise ShapeError(f"[attention] lengths are {at.batch} integers, one for each sequence; got {given.lengths}.")
    return aval((at.batch, at.queries, at.heads, at.values), dtype)


@infer.rule(attention_gradient_p)
def _gradient_infer(g: Aval, *arrays: Aval, **attrs: Any) -> Aval:
    result = _infer(*arrays, **attrs)
    if g is not result:
        raise ShapeError(f"[attention_gradient] the gradient is {g}, and attention's result {result}.")
    if attrs["packed"]:
        return arrays[0]
    return aval((sum(math.prod(p) for p in operands(arrays, **attrs).heads.parts),), g.dtype)


def _flops(products: int) -> Callable[..., int]:
    def count(*arrays: Aval, **attrs: Any) -> int:
        at = operands(arrays, **attrs).heads
        pairs = at.batch * at.heads * at.queries * at.keys
        return (products * (at.depth + at.values) + 20) * (pairs // 2 if attrs["causal"] else pairs)

    return count


cost.register(attention_p, _flops(2))
cost.register(attention_gradient_p, lambda g, *arrays, **attrs: _flops(5)(*arrays, **attrs))


def _weights(given: Operands, causal: bool, scale: float, packed: bool) -> tuple[Any, Any, Any, Any]:
    """In NumPy and float64: q, k and v as [B, H, T, D], and the weights."""
    if packed:
        q, k, v = (np.moveaxis(given.main[0], 2, 0).transpose(0, 1, 3, 2, 4)[i].astype(np.float64) for i in range(3))
    else:
        q, k, v = (x.astype(np.float64) for x in given.main)
        k, v = (np.repeat(x, given.heads.group, axis=1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale
    if given.mask is not None:
        scores = np.where(given.mask, scores, -np.inf) if given.mask.dtype == bool else scores + given.mask
    rows, columns = np.arange(given.heads.queries)[:, None], np.arange(given.heads.keys)
    if causal:
        scores = np.where(columns <= rows, scores, -np.inf)
    if given.lengths is not None:
        scores = np.where(columns < given.lengths[:, None, None, None], scores, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = powers.sum(-1, keepdims=True)
    return q, k, v, powers / np.where(total == 0, 1, total)


@reference.rule(attention_p)
def _reference(*arrays: Any, packed: bool, causal: bool, scale: float, masked: bool, limited: bool) -> Any:
    given = operands(arrays, packed=packed, masked=masked, limited=limited)
    _, _, v, weights = _weights(given, causal, scale, packed)
    return np.ascontiguousarray((weights @ v).transpose(0, 2, 1, 3)).astype(arrays[0].dtype)


@reference.rule(attention_gradient_p)
def _gradient_reference(g: Any, *arrays: Any, packed: bool, causal: bool, scale: float, **flags: bool) -> Any:
    given = operands(arrays, packed=packed, **flags)
    q, k, v, p = _weights(given, causal, scale, packed)
    g64 = g.astype(np.float64).transpose(0, 2, 1, 3)
    dp = g64 @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    found = [ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g64]
    at = given.heads
    if packed:
        return np.stack([x.transpose(0, 2, 1, 3) for x in found], 2).astype(g.dtype)
    for i in (1, 2):
        x = found[i]
        found[i] = x.reshape(at.batch, at.kv_heads, at.group, *x.shape[2:]).sum(2)
    return np.concatenate([x.transpose(0, 2, 1, 3).reshape(-1) for x in found]).astype(g.dtype)


# --- gradients ----------------------------------------------------------------------------------------------------


def _head_first(x: Array) -> Array:
    return permute(x, (0, 2, 1, 3))


def _unpacked(given: Operands, packed: bool) -> tuple[Array, Array, Array]:
    """q, k and v as [B, heads, T, D]."""
    if not packed:
        q, k, v = given.main
        return q, k, v
    b, t, _, h, d = given.main[0].shape
    q, k, v = (_head_first(reshape(narrow(given.main[0], 2, i, 1), (b, t, h, d))) for i in range(3))
    return q, k, v


def _part(flat: Array, heads: Heads, index: int) -> Array:
    """The gradient number ``index`` of a flat array of three, as [B, heads, T, D]."""
    sizes = [math.prod(p) for p in heads.parts]
    piece = narrow(flat, 0, sum(sizes[:index]), sizes[index])
    return _head_first(reshape(piece, heads.parts[index]))


def _options(given: Operands, attrs: dict[str, Any]) -> Options:
    return Options(attrs["causal"], attrs["scale"], given.mask, given.lengths)


def _extras(given: Operands, mask_rule: Callable[[], Array]) -> tuple[Callable[[], Array] | None, ...]:
    """Cotangents of the mask and of the lengths, where they are."""
    found: list[Callable[[], Array] | None] = []
    if given.mask is not None:
        found.append(None if given.mask.dtype is bool_ else mask_rule)
    if given.lengths is not None:
        found.append(None)
    return tuple(found)


@vjp.rule(attention_p)
def _vjp(g: Array, out: Array, *arrays: Array, **attrs: Any) -> tuple[Any, ...]:
    given = operands(arrays, **attrs)
    flat = functools.cache(lambda: apply(attention_gradient_p, g, *arrays, **attrs))

    def into_mask() -> Array:
        q, k, v = _unpacked(given, attrs["packed"])
        heads = given.heads.heads
        wide = repeated(k, heads), repeated(v, heads)
        return mask_gradient(_head_first(g), q, *wide, _options(given, attrs), given.mask.shape)

    extras = _extras(given, into_mask)
    if attrs["packed"]:
        return (flat, *extras)
    parts = [functools.partial(lambda i: _part(flat(), given.heads, i), i) for i in range(3)]
    return (*parts, *extras)


@vjp.rule(attention_gradient_p)
def _gradient_vjp(c: Array, out: Array, g: Array, *arrays: Array, **attrs: Any) -> tuple[Any, ...]:
    given = operands(arrays, **attrs)
    at, packed = given.heads, attrs["packed"]

    @functools.cache
    def second() -> Any:
        q, k, v = _unpacked(given, packed)
        if packed:
            by_q, by_k, by_v = _unpacked(Operands((c,), None, None, at), packed=True)
        else:
            by_q, by_k, by_v = (_part(c, at, i) for i in range(3))
        k, v, by_k, by_v = (repeated(x, at.heads) for x in (k, v, by_k, by_v))
        return second_gradient(by_q, by_k, by_v, _head_first(g), q, k, v, _options(given, attrs))

    extras = _extras(given, lambda: unbroadcast(second().scores, given.mask.shape))
    into_g = lambda: _head_first(second().g)  # noqa: E731
    if packed:
        shape = (at.batch, at.queries, 1, at.heads, at.depth)
        return (
            into_g,
            lambda: concat_same([reshape(_head_first(x), shape) for x in second()[1:4]], 2),
            *extras,
        )
    return (
        into_g,
        lambda: second().q,
        lambda: gathered(second().k, at.kv_heads),
        lambda: gathered(second().v, at.kv_heads),
        *extras,
    )
