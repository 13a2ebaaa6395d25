"""One record for each op: how to sample its inputs, in which dtypes, what it means in float64, where it is smooth."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from runnel.backends import context
from runnel.core import dtypes as dt
from runnel.core.dtypes import DType
from runnel.ops.elementwise.rows import ANY, BITS, NUMBERS

from . import attention_records
from .expression_records import EXPRESSIONS
from .library_records import LIBRARY
from .spatial_records import SPATIAL

Case = tuple[tuple[tuple[int, ...], ...], dict[str, Any]]  # shapes of the inputs, attrs


@dataclass(frozen=True)
class Record:
    """``oracle(*arrays, **attrs)`` works in float64 (or in exact integers); ``domain`` is where samples come from;
    ``smooth`` says that differences there measure the derivative."""

    oracle: Callable[..., Any]
    cases: tuple[Case, ...]
    dtypes: tuple[DType, ...]
    domain: tuple[float, float] = (-3.0, 3.0)
    smooth: bool = True
    input_dtypes: tuple[DType | None, ...] = ()  # an input's dtype where it is not the sampled one
    index_limit: int = 0  # integer inputs lie in [0, index_limit)
    made_late: bool = False  # by a rule of table expand alone, when gradients have been taken: it needs no vjp
    scale: Callable[..., Any] | None = None  # the size of the terms, where the oracle of magnitudes does not give it


WIDTH = context.current().target.panel_columns(dt.float32)
ONE: tuple[Case, ...] = tuple(((s,), {}) for s in ((), (5,), (2, 3), (0, 4), (3, 1, 17)))
TWO: tuple[Case, ...] = (
    (((), ()), {}), (((5,), (5,)), {}), (((2, 3), (2, 1)), {}), (((1, 3), (4, 1)), {}), (((0, 3), (1, 3)), {}),
    (((2, 1, 5), (1, 3, 1)), {}),
)  # fmt: skip
AXES: tuple[Case, ...] = (
    (((5,),), {"axes": (0,)}), (((2, 3),), {"axes": (1,)}), (((2, 3, 4),), {"axes": (0, 2)}), (((),), {"axes": ()}),
    (((3, 33),), {"axes": (1,)}), (((3, 4),), {"axes": (0, 1)}), (((0, 4),), {"axes": (1,)}),
)  # fmt: skip
AXES_EMPTY: tuple[Case, ...] = (*AXES, (((0, 4),), {"axes": (0,)}))
FLOATS, INTEGERS = dt.FLOATS, dt.INTEGERS


def _one(oracle: Any, dtypes: Any = FLOATS, **more: Any) -> Record:
    return Record(oracle, ONE, tuple(dtypes), **more)


def _two(oracle: Any, dtypes: Any = NUMBERS, **more: Any) -> Record:
    return Record(oracle, TWO, tuple(dtypes), **more)


def _reduce(oracle: Any, dtypes: Any, cases: Any = AXES, **more: Any) -> Record:
    return Record(lambda x, *, axes: oracle(x, axis=axes, keepdims=True), cases, tuple(dtypes), **more)


def _safe(function: Any) -> Any:
    return lambda a, b: (
        np.where(b == 0, 0, function(a, np.where(b == 0, 1, b))) if a.dtype.kind in "iu" else function(a, b)
    )


def _shift_left(a: Any, b: Any) -> Any:
    bits = a.dtype.itemsize * 8
    low = [int(x) * 2 ** int(y) if 0 <= y < bits else 0 for x, y in np.broadcast(a, b)]
    wrapped = [(v + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) if a.dtype.kind == "i" else v % 2**bits for v in low]
    return np.array(wrapped, a.dtype).reshape(np.broadcast_shapes(a.shape, b.shape))


def _shift_right(a: Any, b: Any) -> Any:
    bits = a.dtype.itemsize * 8
    return np.array(
        [int(x) >> (int(y) if 0 <= y < bits else bits - 1) for x, y in np.broadcast(a, b)], a.dtype
    ).reshape(np.broadcast_shapes(a.shape, b.shape))


def _slice(x: Any, *, starts: Any, sizes: Any, steps: Any) -> Any:
    return x[np.ix_(*(s + d * np.arange(n) for s, n, d in zip(starts, sizes, steps, strict=True)))]


def _iota(start: Any, *, shape: Any, axis: int) -> Any:
    return start + np.moveaxis(
        np.broadcast_to(np.arange(shape[axis]), (*shape[:axis], *shape[axis + 1 :], shape[axis])), -1, axis
    )


def _scatter(indices: Any, updates: Any, *, shape: Any) -> Any:
    result = np.zeros(shape, updates.dtype)
    for i, u in zip(indices, updates, strict=True):
        result[i] += u
    return result


def _sort(x: Any, *, descending: bool) -> Any:
    """One element after the other; NaN is above all."""
    actual = np.zeros(x.shape, np.int64)
    for row in np.ndindex(x.shape[:-1]):
        key = [(v != v, 0 if v != v else v) for v in x[row].tolist()]
        actual[row] = sorted(range(len(key)), key=key.__getitem__, reverse=descending)
    return np.take_along_axis(x, actual, -1), actual


def _written(x: Any, i: Any, new: Any, *, axis: int) -> Any:
    result = np.moveaxis(np.array(x), axis, 0)
    for at, row in zip(i, np.moveaxis(new, axis, 0), strict=True):
        result[at] = row
    return np.moveaxis(result, 0, axis)


def _buckets(labels: Any, *, rows: int) -> Any:
    places = [[i for i, label in enumerate(labels) if label == row] for row in range(rows)]
    begins = [sum(len(p) for p in places[:row]) for row in range(rows + 1)]
    return np.array([*begins, len(labels), *(i for p in places for i in p)])


def _of_buckets(combine: Any, first: Any) -> Any:
    """Return the reduction of updates by any table of positions; positions outside the array count as its edges."""

    def reduced(table: Any, labels: Any, updates: Any, *, shape: Any) -> Any:
        result, count = np.full(shape, first(updates.dtype), updates.dtype), len(updates)
        for row in range(shape[0]):
            for k in range(min(int(table[row + 1]) - int(table[row]), count)):
                at = min(int(table[row]) + k, count - 1)
                result[row] = combine(result[row], updates[min(int(table[shape[0] + 2 + at]), count - 1)])
        return result

    return reduced


def _bound(sign: int) -> Any:
    """Return a function from a dtype to its greatest (or least) value."""

    def bound(dtype: Any) -> Any:
        if dtype.kind in "iu":
            return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min
        return sign * np.inf

    return bound


def _philox_word(k0: Any, k1: Any, *, shape: Any, word: int, stream: int, order: Any = ()) -> Any:
    if order:
        meant = tuple(shape[order.index(a)] for a in range(len(shape)))
        return np.transpose(_philox_word(k0, k1, shape=meant, word=word, stream=stream), order)
    result = np.zeros(math.prod(shape), np.uint32)
    for i in range(result.size):
        c, k = [i & 0xFFFFFFFF, i >> 32, 0, stream], [int(k0.flat[0]), int(k1.flat[0])]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        result[i] = c[word]
    return result.reshape(shape)


def _panel_product(x: Any, panels: Any, *, axes: int, columns: tuple[int, ...]) -> Any:
    rows = x.shape[: x.ndim - axes]
    matrix = np.concatenate(list(panels), axis=1)[:, : math.prod(columns)]
    return (x.reshape(math.prod(rows), panels.shape[1]) @ matrix).reshape(*rows, *columns)


def _winograd(x: Any, filters: Any, *, height: int, width: int, count: int, sign: Any = np.positive) -> Any:
    """Tile by tile; with ``sign`` np.abs, the size of the terms."""
    entering, leaving = sign(WINOGRAD_INPUT), sign(WINOGRAD_OUTPUT)
    n, rows, columns = len(x), -(-height // 4), -(-width // 4)
    out = np.zeros((n, rows * 4, columns * 4, filters.shape[2]), x.dtype)
    for i, r, c in np.ndindex(n, rows, columns):
        tile = np.einsum("ri,sj,ijc->rsc", entering, entering, x[i, r * 4 : r * 4 + 6, c * 4 : c * 4 + 6])
        planes = np.einsum("rsc,rsck->rsk", tile, filters.reshape(6, 6, *filters.shape[1:]))
        result = np.einsum("pr,qs,rsk->pqk", leaving, leaving, planes)
        out[i, r * 4 : r * 4 + 4, c * 4 : c * 4 + 4] = result
    return out[:, :height, :width, :count]


def _winograd_gradient(x: Any, dy: Any, *, sign: Any = np.positive) -> Any:
    """Slab by slab, tile by tile; with ``sign`` np.abs, the size of the terms."""
    entering, leaving = sign(WINOGRAD_INPUT), sign(WINOGRAD_OUTPUT)
    n, height, width, k = dy.shape
    rows, columns = -(-height // 4), -(-width // 4)
    padded = np.zeros((n, rows * 4, columns * 4, k), x.dtype)
    padded[:, :height, :width] = dy
    tiles = list(np.ndindex(n, rows, columns))
    many = -(-8 // (_blocks(x.shape[3]) * _blocks(k)))
    parts = np.zeros((many, 6, 6, x.shape[3], k), x.dtype)
    share = -(-len(tiles) // many)
    for t, (i, r, c) in enumerate(tiles):
        v = np.einsum("ri,sj,ijc->rsc", entering, entering, x[i, r * 4 : r * 4 + 6, c * 4 : c * 4 + 6])
        d = np.einsum("pr,qs,pqk->rsk", leaving, leaving, padded[i, r * 4 : r * 4 + 4, c * 4 : c * 4 + 4])
        parts[t // share] += np.einsum("rsc,rsk->rsck", v, d)
    return np.einsum("ri,sj,prsck->pijck", sign(WINOGRAD_FILTER), sign(WINOGRAD_FILTER), parts)


def _blocks(channels: int) -> int:
    """The fewest equal blocks of at most 128 channels, multiples of 16; one where there are none."""
    return next((n for n in range(1, channels) if channels % (16 * n) == 0 and channels <= 128 * n), 1)


# for the points 0, ±3/4, ±3/2 and infinity
WINOGRAD_INPUT = np.array([
    [81 / 64, 0, -45 / 16, 0, 1, 0], [0, -27 / 16, -9 / 4, 3 / 4, 1, 0], [0, 27 / 16, -9 / 4, -3 / 4, 1, 0],
    [0, -27 / 32, -9 / 16, 3 / 2, 1, 0], [0, 27 / 32, -9 / 16, -3 / 2, 1, 0], [0, 81 / 64, 0, -45 / 16, 0, 1],
])  # fmt: skip
WINOGRAD_FILTER = np.array([
    [64 / 81, 0, 0], [-128 / 243, -32 / 81, -8 / 27], [-128 / 243, 32 / 81, -8 / 27], [32 / 243, 16 / 81, 8 / 27],
    [32 / 243, -16 / 81, 8 / 27], [0, 0, 1],
])  # fmt: skip
WINOGRAD_OUTPUT = np.array([
    [1, 1, 1, 1, 1, 0], [0, 3 / 4, -3 / 4, 3 / 2, -3 / 2, 0], [0, 9 / 16, 9 / 16, 9 / 4, 9 / 4, 0],
    [0, 27 / 64, -27 / 64, 27 / 8, -27 / 8, 1],
])  # fmt: skip


def _orders(cases: tuple[Case, ...], attrs: dict[str, Any]) -> tuple[Case, ...]:
    return tuple((shapes, own | attrs) for shapes, own in cases)


POSITIVE = (0.1, 3.0)
RECORDS: dict[str, Record] = {
    "add": _two(np.add), "sub": _two(np.subtract), "mul": _two(np.multiply),
    "div": _two(np.divide, FLOATS, domain=(0.5, 3.0)),
    "floor_divide": _two(_safe(np.floor_divide), smooth=False),
    "remainder": _two(_safe(np.remainder), smooth=False),
    "maximum": _two(np.maximum), "minimum": _two(np.minimum),
    "pow": _two(np.power, FLOATS, domain=POSITIVE),
    "neg": _one(np.negative, NUMBERS), "abs": _one(np.abs, NUMBERS), "sign": _one(np.sign, NUMBERS, smooth=False),
    "relu": _one(lambda x: np.maximum(x, 0), NUMBERS),
    "sqrt": _one(np.sqrt, domain=POSITIVE), "exp": _one(np.exp), "expm1": _one(np.expm1),
    "log": _one(np.log, domain=POSITIVE), "log1p": _one(np.log1p, domain=POSITIVE),
    "log2": _one(np.log2, domain=POSITIVE),
    "tanh": _one(np.tanh), "sigmoid": _one(scipy.special.expit), "erf": _one(scipy.special.erf),
    "sin": _one(np.sin), "cos": _one(np.cos),
    "floor": _one(np.floor, smooth=False), "ceil": _one(np.ceil, smooth=False), "trunc": _one(np.trunc, smooth=False),
    "round": _one(np.rint, smooth=False),
    "lt": _two(np.less), "le": _two(np.less_equal), "gt": _two(np.greater), "ge": _two(np.greater_equal),
    "eq": _two(np.equal, ANY), "ne": _two(np.not_equal, ANY),
    "isnan": _one(np.isnan), "isinf": _one(np.isinf),
    "and": _two(np.bitwise_and, BITS), "or": _two(np.bitwise_or, BITS), "xor": _two(np.bitwise_xor, BITS),
    "not": _one(np.invert, BITS),
    "shift_left": _two(_shift_left, INTEGERS), "shift_right": _two(_shift_right, INTEGERS),
    "where": Record(
        np.where, ((((), (), ()), {}), (((2, 1), (2, 3), (1, 3)), {}), (((0,), (0,), (1,)), {})), ANY,
        input_dtypes=(dt.bool_, None, None),
    ),
    "cast": Record(
        lambda x, *, dtype: x.astype(dtype.numpy),
        tuple((((2, 3),), {"dtype": d}) for d in (dt.float32, dt.float64, dt.int32, dt.bfloat16, dt.float16)),
        tuple(d for d in ANY if d.kind != "uint"), smooth=False,
    ),
    "optimization_barrier": Record(
        lambda x, *after: x, ((((2, 3),), {}), (((2, 3), (4,)), {}), (((), (0, 2), (3,)), {})), ANY
    ),
    "contiguous": _one(lambda x: x, ANY),
    "stop_gradient": _one(lambda x: x, ANY, smooth=False),
    "sum": _reduce(np.sum, (dt.int64, dt.uint64, dt.float32, dt.float64), AXES_EMPTY),
    "cast_reduce": Record(
        lambda x, *, reduction, dtype, axes: getattr(np, reduction)(
            x.astype(np.float64 if dtype.is_float else dtype.numpy), axis=axes, keepdims=True
        ),
        tuple(
            (shapes, {"reduction": r, "dtype": d, **attrs})
            for (shapes, attrs), (r, d) in itertools.product(
                AXES_EMPTY, (("sum", dt.float32), ("sum", dt.int64), ("prod", dt.float64), ("any", dt.bool_))
            )
        ),
        (dt.int8, dt.float16, dt.bfloat16, dt.bool_, dt.int32), smooth=False,
    ),
    "prod": _reduce(np.prod, (dt.int64, dt.uint64, dt.float32, dt.float64), AXES_EMPTY),
    "max": _reduce(np.max, NUMBERS), "min": _reduce(np.min, NUMBERS),
    "any": _reduce(np.any, (dt.bool_,), AXES_EMPTY), "all": _reduce(np.all, (dt.bool_,), AXES_EMPTY),
    "reshape": Record(
        lambda x, *, shape: x.reshape(shape),
        tuple(((a,), {"shape": b}) for a, b in (
            ((), (1, 1)), ((6,), (2, 3)), ((2, 12), (2, 1, 3, 4)), ((2, 3), (6,)), ((0, 4), (2, 0)), ((1, 5, 1), (5,)),
            ((4, 6), (2, 2, 3, 2)), ((2, 3, 1, 4), (2, 3, 2, 2)), ((2, 6), (3, 4)),
        )), ANY,
    ),
    "permute": Record(
        lambda x, *, axes: np.transpose(x, axes),
        tuple(((s,), {"axes": a}) for s, a in (((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((), ()), ((0, 2), (1, 0)))),
        ANY,
    ),
    "broadcast": Record(
        lambda x, *, shape: np.broadcast_to(x, shape),
        tuple(((a,), {"shape": b}) for a, b in (((1, 3), (4, 3)), ((2, 1), (2, 5)), ((), ()), ((1,), (0,)))),
        ANY,
    ),
    "slice": Record(_slice, (
        (((5,),), {"starts": (1,), "sizes": (3,), "steps": (1,)}),
        (((5, 4),), {"starts": (4, 0), "sizes": (5, 2), "steps": (-1, 3)}),
        (((7, 2),), {"starts": (5, 1), "sizes": (3, 1), "steps": (-2, 1)}),
        (((3,),), {"starts": (0,), "sizes": (0,), "steps": (1,)}),
    ), ANY),
    "concat": Record(lambda *xs, axis: np.concatenate(xs, axis), (
        (((2,), (3,)), {"axis": 0}), (((2, 1), (2, 3), (2, 0)), {"axis": 1}), (((4, 2),), {"axis": 0}),
    ), ANY),
    "iota": Record(_iota, (
        (((1,),), {"shape": (7,), "axis": 0}), (((1, 1),), {"shape": (3, 4), "axis": 0}),
        (((1, 1, 1),), {"shape": (2, 3, 4), "axis": 1}), (((1,),), {"shape": (0,), "axis": 0}),
    ), NUMBERS),
    "matmul": Record(np.matmul, (
        (((2, 3), (3, 4)), {}), (((5, 2, 3), (5, 3, 1)), {}), (((2, 0), (0, 3)), {}), (((0, 2), (2, 2)), {}),
        (((2, 2, 1, 4), (2, 2, 4, 2)), {}),
    ), (dt.float32, dt.float64, dt.bfloat16)),
    "tensordot": Record(lambda x, y, *, axes: np.tensordot(x, y, axes), (
        (((2, 3), (3, 4)), {"axes": 1}), (((2, 3, 4), (3, 4, 2)), {"axes": 2}), (((2, 3, 4), (4,)), {"axes": 1}),
        (((3, 4), (3, 4, 2, 2)), {"axes": 2}), (((2, 2), (3,)), {"axes": 0}), (((2, 0), (0, 3)), {"axes": 1}),
        (((0, 2), (2, 2)), {"axes": 1}), (((3, 1, 5, 2, 3), (2, 3, 1, 17)), {"axes": 2}),
    ), (dt.float32, dt.float64, dt.bfloat16)),
    "panel_product": Record(_panel_product, (
        (((5, 7), (2, 7, WIDTH)), {"axes": 1, "columns": (2 * WIDTH,)}),
        (((3, 2, 3, 4), (3, 12, WIDTH)), {"axes": 2, "columns": (2, WIDTH + 3)}),
        (((1, 40), (1, 40, WIDTH)), {"axes": 1, "columns": (5,)}),
        (((0, 4), (1, 4, WIDTH)), {"axes": 1, "columns": (3,)}),
        (((3, 0), (1, 0, WIDTH)), {"axes": 1, "columns": (WIDTH,)}),
    ), (dt.float32,), smooth=False, made_late=True),
    "winograd": Record(_winograd, (
        (((1, 6, 6, 3), (36, 3, 8)), {"height": 4, "width": 4, "count": 2}),
        (((2, 10, 6, 17), (36, 17, 40)), {"height": 7, "width": 3, "count": 33}),
        (((5, 6, 10, 16), (36, 16, 16)), {"height": 1, "width": 5, "count": 16}),
        (((0, 6, 6, 2), (36, 2, 8)), {"height": 4, "width": 4, "count": 2}),
    ), (dt.float32, dt.float64), smooth=False, made_late=True, scale=functools.partial(_winograd, sign=np.abs)),
    "winograd_gradient": Record(_winograd_gradient, (
        (((1, 6, 6, 3), (1, 4, 4, 2)), {}), (((5, 10, 6, 17), (5, 7, 3, 33)), {}), (((0, 6, 6, 2), (0, 4, 4, 2)), {}),
        (((1, 10, 6, 144), (1, 8, 4, 16)), {}),
    ), (dt.float32, dt.float64), smooth=False, made_late=True,
        scale=functools.partial(_winograd_gradient, sign=np.abs)),
    "label": Record(
        lambda x, *, extent, allowed: x,
        tuple((c[0], {"extent": 3, "allowed": a}) for c, a in zip(ONE, (None, -100, None, 7, None), strict=True)),
        (dt.int64,),
        smooth=False,
        input_dtypes=(dt.int64,),
        index_limit=3,
    ),
    "required": Record(
        lambda x, *, extent, allowed, message: x,
        tuple((c[0], {"extent": 1, "allowed": None, "message": "it holds"}) for c in ONE),
        (dt.int64,),
        smooth=False,
        input_dtypes=(dt.int64,),
        index_limit=1,
    ),
    "sort": Record(_sort, tuple(
        ((shape,), {"descending": descending})
        for shape in ((5,), (2, 3), (3, 1), (4, 0), (0, 4), (2, 130), (2, 3, 17)) for descending in (False, True)
    ), ANY),
    "take": Record(lambda x, i, *, axis: np.take(x, i, axis), (
        (((5,), (3,)), {"axis": 0}), (((5, 2), (2, 3)), {"axis": 0}), (((2, 5, 2), (4,)), {"axis": 1}),
        (((2, 5), ()), {"axis": 1}), (((5, 2), (0,)), {"axis": 0}),
    ), ANY, input_dtypes=(None, dt.int64), index_limit=5),
    "spread": Record(lambda x, i, *, axis: np.take(x, i, axis), (
        (((5,), (3,)), {"axis": 0}), (((5, 2), (7,)), {"axis": 0}), (((5, 3), (0,)), {"axis": 0}),
    ), ANY, input_dtypes=(None, dt.int64), index_limit=5, smooth=False),  # labels that ascend: tests/uneven
    "small_solve": Record(np.linalg.solve, (  # random matrices may be singular; tests/linalg has regular ones
        (((1, 1), (1, 3)), {}), (((1, 1), (1, 1)), {}), (((4, 1, 1), (4, 1, 2)), {}),
    ), (dt.float32, dt.float64), smooth=False, domain=(1.0, 2.0)),
    "scatter_add": Record(_scatter, (
        (((4,), (4,)), {"shape": (5,)}), (((6,), (6, 2)), {"shape": (5, 2)}), (((0,), (0, 3)), {"shape": (5, 3)}),
    ), NUMBERS, input_dtypes=(dt.int32, None), index_limit=5),
    "write_rows": Record(_written, (
        (((5,), (3,), (3,)), {"axis": 0}), (((5, 17), (2,), (2, 17)), {"axis": 0}),
        (((2, 5, 3), (4,), (2, 4, 3)), {"axis": 1}), (((4, 5), (1,), (4, 1)), {"axis": 1}),
        (((5, 2), (0,), (0, 2)), {"axis": 0}), (((0, 5), (2,), (0, 2)), {"axis": 1}),
    ), ANY, input_dtypes=(None, dt.int64, None), index_limit=5),
    "counting_sort": Record(_buckets, tuple(
        (((count,),), {"rows": rows}) for count, rows in ((0, 5), (4, 5), (40, 5), (1, 9))
    ), (dt.int32, dt.int64), input_dtypes=(dt.int64,), smooth=False, index_limit=5),
    **{
        name: Record(_of_buckets(combine, first), tuple(
            (((rows + 2 + n,), (n,), (n, *rest)), {"shape": (rows, *rest)})
            for rows, n, rest in (
                (5, 6, (3,)), (5, 4, (2, 17)), (2, 0, (3,)), (1, 4, (3,)), (5, 7, ()), (5, 3, (1,)), (3, 30, (33,)),
            )
        ), NUMBERS, input_dtypes=(dt.int64, dt.int64, None), smooth=False, index_limit=9)
        for name, combine, first in (
            ("segment_sums", np.add, lambda dtype: 0), ("segment_maxima", np.maximum, _bound(-1)),
            ("segment_minima", np.minimum, _bound(1)),
        )
    },
    **{
        name: Record(
            lambda x, *, extent, allowed: x, ((((4,),), {"extent": 3, "allowed": None}),), (dt.int64,), smooth=False,
            input_dtypes=(dt.int64,), index_limit=3,
        )
        for name in ("sequence_offset", "sequence_length", "ragged_offset", "ragged_length")
    },
    "attention": Record(
        attention_records.attention, attention_records.cases(gradient=False), (dt.float32, dt.float64),
        domain=(-1.0, 1.0),
    ),
    "attention_gradient": Record(
        attention_records.attention_gradient, attention_records.cases(gradient=True), (dt.float32, dt.float64),
        domain=(-1.0, 1.0), scale=attention_records.largest,
    ),
    "random_bits": Record(_philox_word, tuple(
        (((1,) * len(s), (1,) * len(s)), {"shape": s, "word": w, "stream": t} | ({"order": o} if o else {}))
        for s, w, t, o in (
            ((5,), 0, 0, ()), ((2, 3), 3, 1, ()), ((), 1, 0, ()), ((0,), 2, 0, ()), ((2, 3, 4), 0, 0, (1, 2, 0)),
            ((3, 5), 1, 0, (1, 0)),
        )
    ), (dt.uint32,)),
}  # fmt: skip
RECORDS |= {
    name: Record(oracle, _orders(TWO if arity == 2 else ONE, attrs), tuple(dtypes or FLOATS), **more)
    for name, (oracle, arity, attrs, dtypes, more) in LIBRARY.items()
}
RECORDS |= {name: Record(**given) for name, given in (SPATIAL | EXPRESSIONS).items()}


def sample(record: Record, case: Case, dtype: DType, seed: int = 0) -> list[Any]:
    """Inputs for ``case``: floats from the domain, small integers, coins."""
    rng = np.random.default_rng(seed)
    arguments = record.input_dtypes or (None,) * len(case[0])
    arrays = []
    for shape, fixed in zip(case[0], arguments, strict=True):
        kind = fixed or dtype
        if kind is dt.bool_:
            array = rng.integers(0, 2, shape).astype(bool)
        elif kind.is_integer:
            limits = (0, record.index_limit) if fixed is not None else (-7 if kind.kind == "int" else 0, 9)
            array = rng.integers(*limits, shape).astype(kind.numpy)
        else:
            array = rng.uniform(*record.domain, shape).astype(kind.numpy)
        arrays.append(np.asarray(array))
    return arrays
