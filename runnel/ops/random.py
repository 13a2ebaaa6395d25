"""Random numbers as functions of a key and a position: the same on one thread and on many, eager and compiled.

The generator is Philox-4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
SC 2011; its multipliers and key increments are the paper's. A key is a uint32 array of two words.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval, row_major
from runnel.core.axes import AxisRule
from runnel.core.composed import composed
from runnel.core.dispatch import TensorLike, apply
from runnel.core.dtypes import as_dtype, bool_, float32, float64, int32, int64, uint32, uint64
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.rules import no_tangent
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr
from runnel.loops.rules import IotaLike
from runnel.ops.arguments import Array, as_sizes, require_dtype
from runnel.ops.conversion import cast
from runnel.ops.creation_like import full_like, iota
from runnel.ops.elementwise.arithmetic import add, multiply, subtract
from runnel.ops.elementwise.comparison import bitwise_right_shift, bitwise_xor, less, where
from runnel.ops.elementwise.exponential import cos, log, sqrt
from runnel.ops.shapes.pieces import narrow
from runnel.ops.shapes.views import reshape

RandomKey: TypeAlias = Any  # a TensorLike: uint32[2]

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_INCREMENTS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_DRAWING, _DERIVING = 0, 1  # the last counter word keeps keys apart from numbers

# --- the primitive ------------------------------------------------------------------------------------------------

random_bits_p = Op(
    "random_bits",
    "key0, key1, *, shape, word, stream, order=(), keyed=0",
    "Word `word` of the Philox block whose counter is (row-major position, stream), for the key (key0, key1); with an "
    "order, axis i is axis order[i] of the array whose positions count. Each index of its first keyed axes has its "
    "own key, and counts from 0.",
)
vjp.register(random_bits_p, lambda g, out, key0, key1, **attrs: (None, None))
jvp.register(random_bits_p, no_tangent)
cost.register(random_bits_p, lambda key0, key1, *, shape, **attrs: 8 * _ROUNDS * math.prod(shape))


@abstract_eval.rule(random_bits_p)
def _bits_abstract_eval(
    key0: ShapedArray, key1: ShapedArray, *, shape: Shape, word: int, stream: int, order: Shape = (), keyed: int = 0
) -> ShapedArray:
    require_dtype("random_bits", key0.dtype, (uint32,))
    require_dtype("random_bits", key1.dtype, (uint32,))
    has_own = [a < keyed for a in order or range(len(shape))]
    for key in (key0, key1):
        if key.ndim != len(shape) or any(
            k not in ((1, n) if own else (1,)) for k, n, own in zip(key.shape, shape, has_own, strict=True)
        ):
            raise ShapeError(
                f"[random_bits] key words of shapes {key0.shape}, {key1.shape} must have rank {len(shape)} and one "
                f"element, or one for each index of the first {keyed} axes."
            )
    return aval(shape, uint32)


Word = Any  # an Expr or a uint32 array: the rounds are written once for both
Binary = Callable[[Word, Word], Word]


def philox(
    counter: tuple[Word, ...],
    key: tuple[Word, Word],
    word: Callable[[int], Word],
    add: Binary,
    mul: Binary,
    mul_high: Binary,
    xor: Binary,
) -> tuple[Word, ...]:
    """Return the four words of one block, computed with the given operations; ``word`` makes a constant."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    m0, m1 = map(word, _MULTIPLIERS)
    for turn in range(_ROUNDS):
        if turn:
            k0, k1 = add(k0, word(_INCREMENTS[0])), add(k1, word(_INCREMENTS[1]))
        c0, c1, c2, c3 = (
            xor(xor(mul_high(m1, c2), c1), k0),
            mul(m1, c2),
            xor(xor(mul_high(m0, c0), c3), k1),
            mul(m0, c0),
        )
    return c0, c1, c2, c3


@reference.rule(random_bits_p)
def _bits_reference(
    key0: Any, key1: Any, *, shape: Shape, word: int, stream: int, order: Shape = (), keyed: int = 0
) -> Any:
    positions = np.indices(shape, dtype=np.uint64, sparse=True)
    position = np.zeros(shape, np.uint64)
    for step, along in zip(_position_steps(shape, order, keyed), positions, strict=True):
        position = position + np.uint64(step) * along
    low, high = position.astype(np.uint32), (position >> np.uint64(32)).astype(np.uint32)
    counter = (low, high, np.zeros_like(low), np.full_like(low, stream))
    with np.errstate(over="ignore"):
        block = philox(counter, (key0, key1), np.uint32, np.add, np.multiply, scalar.mul_high.numpy, np.bitwise_xor)
    return np.asarray(block[word])


def _position_steps(shape: Shape, order: Shape, keyed: int) -> Shape:
    """Return how positions count along each axis of ``shape``."""
    of_axes = order or tuple(range(len(shape)))
    meant = tuple(shape[of_axes.index(a)] for a in range(len(shape)))
    steps = (*(0,) * keyed, *row_major(meant[keyed:]))
    return tuple(steps[a] for a in of_axes)


def _bits_steps(result: ShapedArray, *, order: Shape = (), keyed: int = 0, **attrs: Any) -> Shape:
    return _position_steps(result.shape, order, keyed)


def _bits_expr(
    avals: Any, position: Expr, key0: Expr, key1: Expr, *, shape: Shape, word: int, stream: int, **attrs: Any
) -> Expr:
    high = Apply(scalar.shift_right, (Apply(scalar.cast, (position,), uint64), Const(32, uint64)), uint64)
    counter = (Apply(scalar.cast, (position,), uint32), Apply(scalar.cast, (high,), uint32), _word(0), _word(stream))
    operations = (_operation(op) for op in (scalar.add, scalar.mul, scalar.mul_high, scalar.xor))
    block: tuple[Expr, ...] = philox(counter, (key0, key1), _word, *operations)
    return block[word]


def _word(value: int) -> Expr:
    return Const(value, uint32)


def _operation(op: scalar.ScalarOp) -> Binary:
    return lambda x, y: Apply(op, (x, y), uint32)


lower.register(random_bits_p, IotaLike(_bits_expr, _bits_steps))


class _Drawn(AxisRule):
    """Positions count in the order that the program meant, for each key by themselves."""

    def batched(self, op: Op, size: int, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        changed = {"shape": (size, *attrs["shape"]), "keyed": attrs.get("keyed", 0) + 1}
        if attrs.get("order"):
            changed["order"] = (0, *(a + 1 for a in attrs["order"]))
        return apply(op, *operands, **attrs | changed)

    def in_order(self, attrs: dict[str, Any], order: Shape, result: ShapedArray) -> dict[str, Any]:
        meant = attrs.get("order") or tuple(range(len(order)))
        shape = tuple(attrs["shape"][a] for a in order)
        return attrs | {"shape": shape, "order": tuple(meant[a] for a in order)}

    def with_rows_merged(self, attrs: dict[str, Any], ndim: int) -> dict[str, Any] | None:
        if attrs.get("order") or attrs.get("keyed"):
            return None
        return attrs | {"shape": (math.prod(attrs["shape"][:-1]), attrs["shape"][-1])}


axes.register(random_bits_p, _Drawn())

# --- keys and bits ------------------------------------------------------------------------------------------------


def random_bits(key: RandomKey, shape: int | Iterable[int], word: int = 0) -> Array:
    """Return uniform uint32 numbers of ``shape``. The four ``word``s (0 to 3) are independent."""
    return _bits(key, as_sizes("random_bits", shape), operator.index(word), _DRAWING)


def _bits(key: RandomKey, shape: Shape, word: int, stream: int) -> Array:
    if not 0 <= word <= 3:
        raise ValueError(f"[random_bits] word must be 0, 1, 2 or 3; got {word}.")
    if key.shape != (2,) or key.dtype is not uint32:
        raise ShapeError(f"[random_bits] a key is a uint32 array of shape (2,); got {key.aval}.")
    k0, k1 = (reshape(narrow(key, 0, i, 1), (1,) * len(shape)) for i in range(2))
    return apply(random_bits_p, k0, k1, shape=shape, word=word, stream=stream)


@composed
def split_key(key: RandomKey, count: int = 2) -> Array:
    """Return ``count`` new keys, the rows of the result.

    Numbers drawn with them are unrelated to each other and to numbers drawn with ``key``."""
    return _bits(key, as_sizes("split_key", (count, 2)), 0, _DERIVING)


@composed
def fold_in(key: RandomKey, data: Array | int) -> Array:
    """Return a new key from ``key`` and an integer, such as the number of a step."""
    mixed = _bits(key, (2,), 1, _DERIVING)  # hashed first, so that nearby keys and nearby data do not meet
    wide = (
        cast(reshape(data, (1,)), uint64) if isinstance(data, TensorLike) else full_like(key, int(data), (1,), uint64)
    )
    shifts = multiply(iota(key, (2,), dtype=uint64), 32)
    return _bits(bitwise_xor(mixed, cast(bitwise_right_shift(wide, shifts), uint32)), (2,), 2, _DERIVING)


# --- distributions ------------------------------------------------------------------------------------------------

_FRACTION_BITS = {"float16": 11, "bfloat16": 8, "float32": 24}


@composed
def uniform(
    key: RandomKey, shape: int | Iterable[int] = (), dtype: Any = float32, low: float = 0.0, high: float = 1.0
) -> Array:
    """Return uniform numbers in [low, high): multiples of the spacing of the dtype just below 1."""
    unit = _unit(key, as_sizes("uniform", shape), as_dtype(dtype), 0)
    return unit if (low, high) == (0.0, 1.0) else add(multiply(unit, high - low), low)


def _unit(key: RandomKey, shape: Shape, dtype: Any, word: int) -> Array:
    """Return uniform numbers in [0, 1), from word ``word`` of the block (and the next one, for float64)."""
    if not dtype.is_float:
        raise DTypeError(f"[uniform] draws floats, not {dtype.name}; use randint.")
    if dtype is float64:
        upper = cast(bitwise_right_shift(_bits(key, shape, word, _DRAWING), 5), float64)
        lower_bits = cast(bitwise_right_shift(_bits(key, shape, word + 1, _DRAWING), 6), float64)
        return multiply(add(multiply(upper, 2.0**26), lower_bits), 2.0**-53)
    fraction_bits = _FRACTION_BITS[dtype.name]
    whole = bitwise_right_shift(_bits(key, shape, word, _DRAWING), 32 - fraction_bits)
    # fewer than 31 bits: int32 holds them, and converts to float in one instruction where uint32 does not
    return cast(multiply(cast(cast(whole, int32), float32), 2.0**-fraction_bits), dtype)


@composed
def normal(
    key: RandomKey, shape: int | Iterable[int] = (), dtype: Any = float32, mean: float = 0.0, std: float = 1.0
) -> Array:
    """Return normal numbers (G. Box, M. Muller, "A note on the generation of random normal deviates", 1958)."""
    sizes, chosen = as_sizes("normal", shape), as_dtype(dtype)
    wide = chosen if chosen is float64 else float32
    radius = sqrt(multiply(log(subtract(1, _unit(key, sizes, wide, 0))), -2))
    result = multiply(radius, cos(multiply(_unit(key, sizes, wide, 2), 2 * math.pi)))
    if (mean, std) != (0.0, 1.0):
        result = add(multiply(result, std), mean)
    return cast(result, chosen)


def bernoulli(key: RandomKey, p: float | Array, shape: int | Iterable[int] = ()) -> Array:
    """Return True with probability ``p``."""
    return less(uniform(key, shape), p)


@composed
def randint(key: RandomKey, low: int, high: int, shape: int | Iterable[int] = (), dtype: Any = int64) -> Array:
    """Return integers in [low, high), at most 2³² of them.

    Computed as low + floor(bits·(high - low) / 2³²), with a bias of less than 2⁻³²."""
    if not 0 < high - low <= 1 << 32:
        raise ShapeError(f"[randint] the range [{low}, {high}) must hold from 1 to 2³² integers.")
    wide = multiply(cast(random_bits(key, shape), uint64), high - low)
    return cast(add(cast(bitwise_right_shift(wide, 32), int64), low), dtype)


@composed
def dropout(x: Array, key: RandomKey, p: float = 0.5) -> Array:
    """Set each element to 0 with probability ``p``, and divide the others by 1 - p, which keeps the mean."""
    if not 0 <= p <= 1:
        raise ValueError(f"[dropout] p is a probability, got {p}.")
    if p == 0:
        return x
    if p == 1:
        return where(full_like(x, True, dtype=bool_), 0, x)  # with a gradient, which is 0
    dropped = less(uniform(key, x.shape), p)
    return where(dropped, 0, multiply(x, 1 / (1 - p)))
