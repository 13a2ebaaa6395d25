"""Scaled dot-product attention: a primitive and its gradient, neither of which stores the whole score matrix.

Heads are views, in any order of axes. The primitive's result is laid out [batch, queries, heads, values], as the
projection that usually follows reads it, and the gradient's parts likewise. A. Vaswani et al., "Attention is all you
need", 2017; the gradient recomputes the weights as in T. Dao et al., "FlashAttention", 2022.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import batching
from runnel.core.dispatch import apply
from runnel.core.dtypes import bool_, float32, float64, int64, uint32
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.rules import TRANSPOSED
from runnel.core.tables import Op, abstract_eval, cost, jvp, lower, reference, vjp
from runnel.loops.rules import Attention, AttentionGradient
from runnel.ops.arguments import Array, require_dtype, require_same_dtype
from runnel.ops.attention.reference import AttentionOperands, attention_reference, gradient_reference, operands, roles
from runnel.ops.attention.terms import Options, gathered, mask_gradient, repeated, second_gradient
from runnel.ops.creation_like import or_zeros
from runnel.ops.shapes.broadcasting import broadcast_to, unbroadcast
from runnel.ops.shapes.pieces import concat_same, narrow
from runnel.ops.shapes.views import merged_rows, permute, reshape, split_rows

_SIGNATURE = "q, k, v, [mask], [lengths], [key], [bounds], *, packed, causal, scale, masked, limited, dropout, ragged"
attention_p = Op(
    "attention",
    _SIGNATURE,
    "softmax(scale·q·kᵀ + mask)·v as [B, Tq, H, V], from q[B, H, Tq, D], k[B, K, Tk, D] and v[B, K, Tk, V] (packed: "
    "from one array [B, T, 3, H, D]). Head h reads head h // (H / K) of k and v; a query sees the keys below its "
    "sequence's length and, causal, none after its own position; one that sees none gives 0. Weights are zeroed with "
    "probability dropout by key. Ragged (then B = 1), a line of bounds[S, 4] is where a sequence's queries begin, how "
    "many they are, and the same of its keys: queries see the keys of their sequence, and the last of each stand "
    "beside one another. Queries of no sequence give 0.",
)
attention_gradient_p = Op(
    "attention_gradient",
    f"g, {_SIGNATURE}",
    "The gradients of attention by q, k and v, each laid out [B, T, heads, D]; or by the packed operand.",
    multiple_results=True,
)
jvp.register(attention_p, TRANSPOSED)
jvp.register(attention_gradient_p, TRANSPOSED)
lower.register(attention_p, Attention())
lower.register(attention_gradient_p, AttentionGradient())
reference.register(attention_p, attention_reference)
reference.register(attention_gradient_p, gradient_reference)


# --- infer, cost --------------------------------------------------------------------------------------------------


@abstract_eval.rule(attention_p)
def _abstract_eval(
    *arrays: ShapedArray,
    packed: bool,
    causal: bool,
    scale: float,
    masked: bool,
    limited: bool,
    dropout: float,
    ragged: bool,
) -> ShapedArray:
    sorted_operands = operands(arrays, packed=packed, masked=masked, limited=limited, dropout=dropout, ragged=ragged)
    main, at = sorted_operands.main, sorted_operands.heads
    require_same_dtype("attention", *main)
    dtype = main[0].dtype
    require_dtype("attention", dtype, (float32, float64))
    if not packed:
        q, k, v = (x.shape for x in main)
        if not (q[0] == k[0] == v[0] and k[1:3] == v[1:3] and q[3] == k[3] and (q[1] % k[1] if k[1] else q[1]) == 0):
            raise ShapeError(f"[attention] shapes of q {q}, k {k} and v {v} do not fit one another.")
    if not scale > 0:
        raise ShapeError(f"[attention] the scale is a positive number, got {scale}.")
    if sorted_operands.mask is not None:
        full = (at.batch, at.heads, at.queries, at.keys)
        shape = sorted_operands.mask.shape
        if len(shape) != 4 or any(n not in (1, m) for n, m in zip(shape, full, strict=True)):
            raise ShapeError(f"[attention] a mask of shape {shape} does not broadcast to {full}.")
        if sorted_operands.mask.dtype is not bool_ and sorted_operands.mask.dtype is not dtype:
            raise DTypeError(f"[attention] a mask is bool or {dtype.name}, got {sorted_operands.mask.dtype.name}.")
    if sorted_operands.lengths is not None and (
        sorted_operands.lengths.shape != (at.batch,) or not sorted_operands.lengths.dtype.is_integer
    ):
        raise ShapeError(
            f"[attention] lengths are {at.batch} integers, one for each sequence; got {sorted_operands.lengths}."
        )
    if not 0 <= dropout <= 1:
        raise ShapeError(f"[attention] dropout is a probability, got {dropout}.")
    if sorted_operands.key is not None and sorted_operands.key is not aval((2,), uint32):
        raise ShapeError(f"[attention] dropout's key is a uint32 array of shape (2,), got {sorted_operands.key}.")
    if ragged and (masked or limited or at.batch != 1):
        raise ShapeError("[attention] bounds go with neither mask nor lengths, and with a batch of 1.")
    if ragged and (
        sorted_operands.bounds.shape[1:] != (4,)
        or sorted_operands.bounds.ndim != 2
        or sorted_operands.bounds.dtype is not int64
    ):
        raise ShapeError(
            f"[attention] bounds are an int64 array of shape (sequences, 4), got {sorted_operands.bounds}."
        )
    return aval((at.batch, at.queries, at.heads, at.values), dtype)


@abstract_eval.rule(attention_gradient_p)
def _gradient_abstract_eval(g: ShapedArray, *arrays: ShapedArray, **attrs: Any) -> tuple[ShapedArray, ...]:
    result = _abstract_eval(*arrays, **attrs)
    if g is not result:
        raise ShapeError(f"[attention_gradient] the gradient is {g}, and attention's result {result}.")
    if attrs["packed"]:
        return (arrays[0],)
    return tuple(aval(shape, g.dtype) for shape in operands(arrays, **attrs).heads.parts)


def _flops(products: int) -> Callable[..., int]:
    def count(*arrays: ShapedArray, **attrs: Any) -> int:
        at = operands(arrays, **attrs).heads
        pairs = at.batch * at.heads * at.queries * at.keys
        return (products * (at.depth + at.values) + 20) * (pairs // 2 if attrs["causal"] else pairs)

    return count


cost.register(attention_p, _flops(2))
cost.register(attention_gradient_p, lambda g, *arrays, **attrs: _flops(5)(*arrays, **attrs))


# --- gradients ----------------------------------------------------------------------------------------------------


def _head_first(x: Array) -> Array:
    return permute(x, (0, 2, 1, 3))


def _unpacked(sorted_operands: AttentionOperands, packed: bool) -> tuple[Array, Array, Array]:
    """Return q, k and v as [B, heads, T, D]."""
    if not packed:
        q, k, v = sorted_operands.main
        return q, k, v
    b, t, _, h, d = sorted_operands.main[0].shape
    q, k, v = (_head_first(reshape(narrow(sorted_operands.main[0], 2, i, 1), (b, t, h, d))) for i in range(3))
    return q, k, v


def _options(sorted_operands: AttentionOperands, attrs: dict[str, Any]) -> Options:
    return Options(
        attrs["causal"],
        attrs["scale"],
        sorted_operands.mask,
        sorted_operands.lengths,
        attrs["dropout"],
        sorted_operands.key,
        sorted_operands.bounds,
    )


def _extras(
    sorted_operands: AttentionOperands, mask_rule: Callable[[], Array]
) -> tuple[Callable[[], Array] | None, ...]:
    """Return the gradients of the operands after q, k and v."""
    trained = sorted_operands.mask is not None and sorted_operands.mask.dtype is not bool_
    whole = [
        x
        for x in (sorted_operands.mask, sorted_operands.lengths, sorted_operands.key, sorted_operands.bounds)
        if x is not None
    ]
    return tuple(mask_rule if x is sorted_operands.mask and trained else None for x in whole)


@vjp.rule(attention_p)
def _vjp(g: Array, out: Array, *arrays: Array, **attrs: Any) -> tuple[Any, ...]:
    sorted_operands = operands(arrays, **attrs)
    gradients = functools.cache(lambda: apply(attention_gradient_p, g, *arrays, **attrs))

    def into_mask() -> Array:
        q, k, v = _unpacked(sorted_operands, attrs["packed"])
        heads = sorted_operands.heads.heads
        wide = repeated(k, heads), repeated(v, heads)
        return mask_gradient(_head_first(g), q, *wide, _options(sorted_operands, attrs), sorted_operands.mask.shape)

    extras = _extras(sorted_operands, into_mask)
    if attrs["packed"]:
        return (lambda: gradients()[0], *extras)
    return (*(functools.partial(lambda i: _head_first(gradients()[i]), i) for i in range(3)), *extras)


@vjp.rule(attention_gradient_p)
def _gradient_vjp(
    cotangents: tuple[Array | None, ...],
    outs: tuple[Array, ...],
    g: Array,
    *arrays: Array,
    needs_grad: tuple[bool, ...],
    **attrs: Any,
) -> tuple[Any, ...]:
    sorted_operands = operands(arrays, **attrs)
    at, packed = sorted_operands.heads, attrs["packed"]
    cs = or_zeros(cotangents, outs)

    @functools.cache
    def second() -> Any:
        q, k, v = _unpacked(sorted_operands, packed)
        if packed:
            by_q, by_k, by_v = _unpacked(sorted_operands._replace(main=(cs[0],)), packed=True)
        else:
            by_q, by_k, by_v = map(_head_first, cs)
        k, v, by_k, by_v = (repeated(x, at.heads) for x in (k, v, by_k, by_v))
        return second_gradient(by_q, by_k, by_v, _head_first(g), q, k, v, _options(sorted_operands, attrs))

    extras = _extras(sorted_operands, lambda: unbroadcast(second().scores, sorted_operands.mask.shape))
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


# --- a new axis ---------------------------------------------------------------------------------------------------


def _merged(size: int, arrays: tuple[Array, ...], attrs: dict[str, Any]) -> list[Array] | None:
    """Merge the operands of all elements into sequences of one batch; None with dropout, which counts sequences, or
    ragged ones."""
    if attrs["dropout"] or attrs["ragged"]:
        return None
    mask = roles(arrays, **attrs).mask
    return [
        reshape(x, x.shape[1:]) if x is mask and x.shape[:2] == (1, 1) else _for_each(x, size, x is mask, arrays[0])
        for x in arrays
    ]


def _for_each(x: Array, size: int, is_mask: bool, main: Array) -> Array:
    batch = main.shape[1] if is_mask else x.shape[1]
    return merged_rows(broadcast_to(x, (size, batch, *x.shape[2:])))


@batching(attention_p)
def _batched(size: int, *arrays: Array, **attrs: Any) -> Array | None:
    sorted_operands = _merged(size, arrays, attrs)
    return (
        None
        if sorted_operands is None
        else split_rows(apply(attention_p, *sorted_operands, **attrs), size, arrays[0].shape[1])
    )


@batching(attention_gradient_p)
def _gradient_batched(size: int, g: Array, *arrays: Array, **attrs: Any) -> tuple[Array, ...] | None:
    sorted_operands = _merged(size, arrays, attrs)
    if sorted_operands is None:
        return None
    gradients = apply(
        attention_gradient_p, merged_rows(broadcast_to(g, (size, *g.shape[1:]))), *sorted_operands, **attrs
    )
    return tuple(split_rows(x, size, arrays[0].shape[1]) for x in gradients)
