"""Symbolic numbers: they may change at each call, and Python arithmetic on them is recorded for the guard. Nothing is
checked before somebody looks at the number.

A float made for one read has an identity of its own, by which it is known; so ``type(x) is float`` stays true.
"""

from __future__ import annotations

import math
from typing import Any, Final

from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import PLAIN


class Whole(int):
    """A whole number that may be another at later calls. See ``whole.py``."""

    __slots__ = ()


MOST: Final = 256  # numbers that are computed in one run; others are looked at
_LONGEST: Final = 160  # characters of a label
STORES: Final = frozenset(  # they put away their last argument unseen
    {"append", "appendleft", "setattr", "setitem", "__setattr__", "__setitem__", "setdefault", "insert"}
)
MERGES: Final = frozenset({"update"})  # they put away what they are given by name
_FUNCTIONS: Final = {
    id(f): f
    for f in (
        abs, min, max, round, float, int, pow, divmod, math.sqrt, math.exp, math.log, math.log2, math.log10, math.log1p,
        math.expm1, math.sin, math.cos, math.tan, math.tanh, math.sinh, math.cosh, math.atan, math.atan2, math.asin,
        math.acos, math.pow, math.floor, math.ceil, math.trunc, math.fabs, math.copysign, math.hypot, math.fmod,
        math.isfinite, math.isnan, math.isinf, math.degrees, math.radians, math.erf, math.erfc, math.gamma, math.lgamma,
    )
}  # fmt: skip


def begin(rec: Recorder, value: float, source: Source) -> float:
    """A number with an identity of its own, which stands for whatever is found at ``source``."""
    own = value * 1.0 if type(value) is float else Whole(value)
    rec.log.check(source, f"type({{v}}) is not {type(value).__name__}", f"type of {source}")
    return _known(rec, own, source)


def _known(rec: Recorder, value: Any, source: Source) -> Any:
    rec.symbols[id(value)] = source
    rec.keep(value)
    return value


def computed(rec: Recorder, text: str, operands: tuple[Any, ...], result: Any, constants: tuple[Any, ...] = ()) -> Any:
    """The result of Python arithmetic on plain values, at least one of them a symbol. ``text`` names them {a0}, …"""
    if type(result) not in (float, int, bool) or rec.computed >= MOST:
        for value in operands:
            rec.settled_number(value)
        return result
    rec.computed += 1
    parents = [rec.symbols.get(id(x)) for x in operands]
    label = text.replace("{0}", getattr(constants[0], "__name__", str(constants[0]))) if constants else text
    for i, (value, parent) in enumerate(zip(operands, parents, strict=True)):
        label = label.replace(f"{{a{i}}}", str(value) if parent is None else str(parent))
    if len(label) > _LONGEST:
        label = f"{label[: _LONGEST // 2]}…{label[-_LONGEST // 2 :]}"
    known = list(constants)
    for i, (value, parent) in enumerate(zip(operands, parents, strict=True)):
        if parent is None:
            text = text.replace(f"{{a{i}}}", f"{{{len(known)}}}")
            known.append(value)
    source = rec.log.computed(text, tuple(parents), label, tuple(known))
    if type(result) is float:
        return _known(rec, result * 1.0, source)
    if type(result) is int and rec.session.varying:
        return _known(rec, Whole(result), source)
    rec.is_plain(result, source)
    return result


def binary(rec: Recorder, symbol: str, a: Any, b: Any, result: Any) -> Any:
    """``a + b`` and its kin of plain values; ``result`` is what it gave."""
    plain = symbol[:-1] if symbol.endswith("=") else symbol
    return computed(rec, f"({{a0}} {plain} {{a1}})", (a, b), result)


def compared(rec: Recorder, symbol: str, a: Any, b: Any, result: Any) -> Any:
    """``a < b`` and its kin of plain values."""
    return computed(rec, f"({{a0}} {symbol} {{a1}})", (a, b), result)


def grown(rec: Recorder, value: Any, by: int) -> Any:
    """``value + by``, whether ``value`` is a symbol or not."""
    return binary(rec, "+", value, by, int(value) + by) if is_any(rec, (value,)) else value + by


def unary(rec: Recorder, symbol: str, value: Any, result: Any) -> Any:
    """``-a`` and its kin."""
    return computed(rec, f"({symbol}{{a0}})", (value,), result)


def truth(rec: Recorder, value: Any) -> bool:
    """``bool(a)``."""
    return bool(computed(rec, "(not not {a0})", (value,), bool(value)))


def called(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a pure function of numbers gives; None where it is none, or no symbol is among the arguments."""
    if kwargs or not takes_numbers(function, args) or not any(id(x) in rec.symbols for x in args):
        return None
    text = f"{{0}}({', '.join(f'{{a{i}}}' for i in range(len(args)))})"
    result = function(*[int(x) if type(x) is Whole else x for x in args])
    return (computed(rec, text, args, result, (function,)),)


def takes_numbers(function: Any, args: tuple[Any, ...]) -> bool:
    """Whether this is a function of numbers that a guard can compute again, called with plain values."""
    return id(function) in _FUNCTIONS and all(type(x) in PLAIN or type(x) is Whole for x in args)


def is_any(rec: Recorder, values: Any) -> bool:
    """Whether there is a symbol among the values."""
    symbols = rec.symbols
    return bool(symbols) and any(id(x) in symbols for x in values)
