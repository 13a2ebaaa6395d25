"""Symbolic numbers and texts: they may change at each call, and what Python computes from them is recorded for the
guard. Nothing is checked before somebody looks at the value.

A float made for one read has an identity of its own, by which it is known; so ``type(x) is float`` stays true. Whole
numbers and texts have classes of their own, which the hooks alone see (``varying.py``).
"""

from __future__ import annotations

import math
import operator
from types import BuiltinFunctionType
from typing import Any, Final

from runnel.compile.observe.expressions import Expression, NotWritten
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import SYMBOLIC, Text, Whole

PARTS: Final = 64  # items that are computed one by one
MOST: Final = 256  # values that are computed in one run; others are looked at
_LONGEST: Final = 160  # characters of a label
STORES: Final = frozenset(  # they put away their last argument unseen
    {"append", "appendleft", "setattr", "setitem", "__setattr__", "__setitem__", "setdefault", "insert", "set", "write"}
)
MERGES: Final = frozenset({"update"})  # they put away what they are given by name
_FUNCTIONS: Final = {
    id(f): f
    for f in (
        abs, min, max, round, float, int, pow, divmod, sum, sorted, str, repr, ascii, format, hex, oct, bin, chr, ord,
        operator.mod, operator.getitem, math.sqrt, math.exp, math.log, math.log2, math.log10, math.log1p, math.fsum,
        math.prod, math.expm1, math.sin, math.cos, math.tan, math.tanh, math.sinh, math.cosh, math.atan, math.atan2,
        math.asin, math.acos, math.pow, math.floor, math.ceil, math.trunc, math.fabs, math.copysign, math.hypot,
        math.fmod, math.isfinite, math.isnan, math.isinf, math.degrees, math.radians, math.erf, math.erfc, math.gamma,
        math.lgamma, math.gcd, math.lcm, math.comb, math.isclose, math.remainder, math.ldexp, math.isqrt,
    )
}  # fmt: skip
_SURE: Final = frozenset(
    map(id, (abs, str, repr, ascii, math.fabs, math.copysign, math.isfinite, math.isnan, math.isinf))
)
_OWNERS: Final = frozenset({str, int, float, *SYMBOLIC})  # their methods depend on them and on plain arguments alone


def begin(rec: Recorder, value: Any, source: Source) -> Any:
    """A value with an identity of its own, which stands for whatever is found at ``source``."""
    rec.log.check(source, f"type({{v}}) is not {type(value).__name__}", f"type of {source}")
    return _known(rec, value, source)


def reach(rec: Recorder, value: Any, source: Source) -> Any:
    """A value that was found at ``source``, and may be another at later calls."""
    kind = type(value)
    if rec.net is None and (kind is float or (kind in (int, str) and rec.session.varying)):
        return begin(rec, value, source)
    return rec.reach(value, source)


def parts(rec: Recorder, values: Any, source: Source) -> Any:
    """The items of a list or tuple that the guard makes."""
    rec.log.check(source, f"len({{v}}) != {len(values)}", f"len({source})")
    places = [rec.log.source(source, f"{{p}}[{i}]", f"{source}[{i}]", x) for i, x in enumerate(values)]
    return type(values)([reach(rec, x, at) for x, at in zip(values, places, strict=True)])


def _known(rec: Recorder, value: Any, source: Source) -> Any:
    kind = type(value)
    own = value * 1.0 if kind is float else Whole(value) if kind is int else Text(value)
    rec.symbols[id(own)] = source
    rec.keep(own)
    return own


def bare(value: Any) -> Any:
    """A number or text as all others see it, also in lists and tuples."""
    kind = type(value)
    if kind is Whole:
        return int(value)
    if kind is Text:
        return str(value)
    return kind(map(bare, value)) if kind in (tuple, list) else value


def computed(
    rec: Recorder,
    text: str,
    operands: tuple[Any, ...],
    result: Any,
    constants: tuple[Any, ...] = (),
    is_sure: bool = True,
) -> Any:
    """The result of Python arithmetic on plain values, at least one of them a symbol. ``text`` names them {a0}, …

    ``is_sure`` says that values of the same kinds give a result of the same kind, and no error. Otherwise the guard
    computes it even where nobody uses the result.
    """
    if not _can_be_computed(rec, result):
        for value in operands:
            rec.concrete_number(value)
        return result
    parents = [rec.symbols.get(id(x)) for x in operands]
    label = text.replace("{0}", getattr(constants[0], "__name__", str(constants[0]))) if constants else text
    known = list(constants)
    for i, (value, parent) in enumerate(zip(operands, parents, strict=True)):
        label = label.replace(f"{{a{i}}}", repr(value) if parent is None else str(parent))
        if parent is None:
            text = text.replace(f"{{a{i}}}", f"{{{len(known)}}}")
            known.append(value)
    source = rec.log.computed(text, tuple(parents), shortened(label), tuple(known))
    return _computed_at(rec, source, result, is_sure)


def _can_be_computed(rec: Recorder, result: Any) -> bool:
    kind = type(result)
    if kind in (tuple, list):
        return len(result) <= PARTS and all(type(x) in (float, int, str, bool) for x in result)
    is_value = kind in (float, int, bool) or (kind is str and bool(rec.session.varying))
    return is_value and rec.computed < MOST


def _computed_at(rec: Recorder, source: Source, result: Any, is_sure: bool = True) -> Any:
    rec.computed += 1
    kind = type(result)
    if kind in (tuple, list):
        return parts(rec, result, source)
    if not is_sure:
        rec.log.check(source, f"type({{v}}) is not {kind.__name__}", f"type of {source}")
    if kind is float or (kind in (int, str) and rec.session.varying):
        return _known(rec, result, source)
    rec.is_plain(result, source)
    return result


def shortened(label: str) -> str:
    """A label of bearable length."""
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST // 2]}…{label[-_LONGEST // 2 :]}"


def binary(rec: Recorder, symbol: str, a: Any, b: Any, result: Any) -> Any:
    """``a + b`` and its kin of plain values; ``result`` is what it gave."""
    plain = symbol[:-1] if symbol.endswith("=") else symbol
    divides = type(bare(a)) is not str and plain in ("/", "//", "%", "<<", ">>") and id(b) not in rec.symbols
    is_sure = plain in ("+", "-", "*", "&", "|", "^") or divides  # by a number that has just divided another one
    return computed(rec, f"({{a0}} {plain} {{a1}})", (a, b), result, (), is_sure)


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
    """What a pure function of plain values gives, in a tuple; None where it is none, or no symbol is among them."""
    if not takes_plain_values(function) or not is_among(rec, function, (*args, *kwargs.values())):
        return None
    expression = Expression(rec)
    try:
        name = function.__name__
        head = f"{expression.of(function.__self__)}.{name}" if _is_method(function) else expression.constant(function)
        written = [expression.of(x) for x in args] + [f"{key}={expression.of(x)}" for key, x in kwargs.items()]
    except NotWritten:
        return None
    values, named = bare(args), {key: bare(x) for key, x in kwargs.items()}
    if not all(key.isidentifier() for key in kwargs):
        return None
    plain = getattr(bare(function.__self__), name) if _is_method(function) else function
    try:
        result = plain(*values, **named)
    except Exception:  # which may be due to the values
        look_at(rec, function, (*args, *kwargs.values()))
        raise
    if not _can_be_computed(rec, result):
        return None
    operands, constants = tuple(expression.operands), tuple(expression.constants)
    label = shortened(f"{name}({', '.join(map(_described(rec), args))})")
    source = rec.log.computed(f"{head}({', '.join(written)})", operands, label, constants)
    return (_computed_at(rec, source, result, id(function) in _SURE),)


def _described(rec: Recorder) -> Any:
    def describe(value: Any) -> str:
        symbol = rec.symbols.get(id(value)) or rec.followed(value)
        if symbol is None and type(value) in (list, tuple):
            return "[" + ", ".join(map(describe, value)) + "]"
        return repr(value) if symbol is None else str(symbol)

    return describe


def _is_method(function: Any) -> bool:
    return type(function) is BuiltinFunctionType and type(function.__self__) in _OWNERS


def takes_plain_values(function: Any) -> bool:
    """Whether a guard can compute again what a function gives for numbers and texts."""
    return id(function) in _FUNCTIONS or _is_method(function)


def unseen(function: Any, args: tuple[Any, ...]) -> int:
    """How many of its last arguments a function of C code puts away, or gives back, without looking at them."""
    name = function.__name__
    if name in ("get", "pop") and type(function) is BuiltinFunctionType:
        return int(len(args) == 2)  # what stands for something missing
    return int(name in STORES)


def is_among(rec: Recorder, function: Any, values: Any) -> bool:
    """Whether there is a symbol among the arguments of a function, or in lists and tuples among them."""
    if _is_method(function) and id(function.__self__) in rec.symbols:
        return True
    return any(_holds_one(rec, x) for x in values)


def _holds_one(rec: Recorder, value: Any) -> bool:
    if id(value) in rec.symbols:
        return True
    if rec.source_of(value) is not None:
        return rec.followed(value) is not None
    return type(value) in (list, tuple) and any(id(x) in rec.symbols for x in value)


def look_at(rec: Recorder, function: Any, values: Any) -> None:
    """All symbols among these are looked at."""
    owner = (function.__self__,) if _is_method(function) else ()
    for value in (*owner, *values):
        for part in value if type(value) in (list, tuple) else (value,):
            rec.concrete_number(part)


def is_any(rec: Recorder, values: Any) -> bool:
    """Whether there is a symbol among the values."""
    symbols = rec.symbols
    return bool(symbols) and any(id(x) in symbols for x in values)
