"""Signs and neighbours of floats from their bits, float16 and bfloat16 included."""

from __future__ import annotations

from runnel.core.dtypes import by_name
from runnel.loops.formulas.casts import HALVES, widen
from runnel.loops.formulas.value import Value, choose


def _whole(x: Value) -> Value:
    return x.reinterpret(by_name(f"int{x.dtype.itemsize * 8}"))


def _wide(x: Value) -> Value:
    """In float32 at least: LLVM cannot lower some operations on the sign of a bfloat16."""
    return widen(x) if x.dtype in HALVES else x


def signbit(x: Value) -> Value:
    """Whether the sign bit is set; of integers, whether they are negative."""
    if x.dtype.is_float:
        return _whole(_wide(x)) < 0
    return x < 0


def copysign(x: Value, y: Value) -> Value:
    """|x| with the sign of y."""
    if x.dtype in HALVES:
        differs = (_whole(widen(x)) ^ _whole(widen(y))) < 0
        return choose(differs, (x.bits() ^ (1 << 15)).reinterpret(x.dtype), x)
    sign = 1 << (x.dtype.itemsize * 8 - 1)
    return ((x.bits() & (sign - 1)) | (y.bits() & sign)).reinterpret(x.dtype)


def nextafter(x: Value, y: Value) -> Value:
    """The float next to x on the way to y."""
    a, b = (widen(v) if v.dtype in HALVES else v for v in (x, y))
    up = a < b
    bits = _whole(x)
    sign = -1 << (x.dtype.itemsize * 8 - 1)
    away = (bits < 0) ^ up
    moved = choose(away, bits + 1, bits - 1)
    first = choose(up, bits.constant(1), sign + 1)
    stepped = choose(a.eq(0.0), first, moved)
    result = choose(a.eq(b), _whole(y), stepped)
    nan = choose(a.is_nan(), bits, _whole(y))
    return choose(a.compare("uno", b), nan, result).reinterpret(x.dtype)
