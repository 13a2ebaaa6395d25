"""Numbers that may differ at later calls: float arguments, and attributes and variables that changed between calls.

Such a number is a *symbol*: a value made for one read and known by its identity. Python arithmetic on symbols is
recorded as expressions that the guard computes at each call, so ``n += 1`` stores the number of each call. Any other
use of a symbol (``rec.concrete_number``) adds a check of its value.

A float is a symbol by its identity alone. Ints and the texts made of numbers have separate classes (``Whole``,
``Text``), which the hooks replace by plain values before other code sees them.
"""

from __future__ import annotations

import math
from typing import Any, Final

from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import PLAIN, SYMBOLIC, Text, Whole

MOST: Final = 256  # computed numbers of one run; later ones are checked by value
_LONGEST: Final = 160  # characters of a label
_FUNCTIONS: Final = frozenset(
    map(
        id,
        (
            abs, min, max, round, float, int, pow, divmod, str, repr, format, bool,
            *(getattr(math, name) for name in dir(math) if callable(getattr(math, name))),
        ),
    )
)  # fmt: skip
_SURE: Final = frozenset(map(id, (abs, str, repr, math.fabs)))  # the same kind of result for every number


def begin(rec: Recorder, value: Any, source: Source) -> Any:
    """Return a symbol for the number found at ``source``."""
    rec.log.check(source, f"type({{v}}) is not {type(value).__name__}", f"type of {source}")
    return symbol(rec, value, source)


def symbol(rec: Recorder, value: Any, source: Source) -> Any:
    """Return a symbol for a number whose kind is known."""
    kind = type(value)
    own = value * 1.0 if kind is float else Whole(value) if kind is int else Text(value)
    rec.symbols[id(own)] = source
    rec.keep(own)
    return own


def bare(value: Any) -> Any:
    """Return the plain value of a symbol, and other values as they are."""
    kind = SYMBOLIC.get(type(value))
    return value if kind is None else kind(value)


def is_any(rec: Recorder, *values: Any) -> bool:
    """Return whether a symbol is among the values."""
    symbols = rec.symbols
    return bool(symbols) and any(id(x) in symbols for x in values)


def is_number(value: Any) -> bool:
    """Return whether ``value`` is plain or a symbol."""
    return type(value) in PLAIN or type(value) in SYMBOLIC


def kind_of(value: Any) -> type:
    """Return the class of a value as code outside the hooks sees it."""
    kind = type(value)
    return SYMBOLIC.get(kind, kind)


def computed(
    rec: Recorder,
    text: str,
    operands: tuple[Any, ...],
    result: Any,
    constants: tuple[Any, ...] = (),
    is_sure: bool = True,
) -> Any:
    """Return the symbol of a result computed from plain values, at least one of them a symbol.

    Args:
        text: the expression over the operands ``{a0}``, ``{a1}``, ... and the constants ``{0}``, ...
        is_sure: whether other values of the same types give a result of the same type and no error. Otherwise the guard
            computes the expression even where nothing uses the result.
    """
    if type(result) not in (float, int, bool, str) or rec.computed >= MOST:
        for value in operands:
            rec.concrete_number(value)
        return result
    rec.computed += 1
    parents = [rec.symbols.get(id(x)) for x in operands]
    label = text.replace("{0}", getattr(constants[0], "__name__", str(constants[0]))) if constants else text
    known = list(constants)
    for i, (value, parent) in enumerate(zip(operands, parents, strict=True)):
        label = label.replace(f"{{a{i}}}", repr(value) if parent is None else str(parent))
        if parent is None:
            text = text.replace(f"{{a{i}}}", f"{{{len(known)}}}")
            known.append(bare(value))
    label = label if len(label) <= _LONGEST else f"{label[: _LONGEST // 2]}…{label[-_LONGEST // 2 :]}"
    source = rec.log.computed(text, tuple(parents), label, tuple(known))
    if not is_sure:
        rec.log.check(source, f"type({{v}}) is not {type(result).__name__}", f"type of {source}")
    if type(result) is bool:
        rec.is_plain(result, source)
        return result
    return symbol(rec, result, source)


def binary(rec: Recorder, sign: str, a: Any, b: Any, result: Any) -> Any:
    """Return the symbol of ``a + b`` and the like; ``result`` is its value."""
    plain = sign[:-1] if sign.endswith("=") else sign
    divides = type(bare(a)) is not str and plain in ("/", "//", "%", "<<", ">>") and id(b) not in rec.symbols
    is_sure = plain in ("+", "-", "*", "&", "|", "^") or divides  # the divisor is the same at each call
    number = computed(rec, f"({{a0}} {plain} {{a1}})", (a, b), result, (), is_sure)
    rec.session.calculated(plain, a, b, number)
    return number


def called(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return in a tuple what a known function of numbers gives, or None if this is no such call."""
    if id(function) not in _FUNCTIONS or kwargs or not is_any(rec, *args) or not all(map(is_number, args)):
        return None
    values = tuple(map(bare, args))
    try:
        result = function(*values)
    except Exception:  # perhaps because of the values
        for value in args:
            rec.concrete_number(value)
        raise
    if type(result) not in (float, int, bool, str):
        return None
    places = ", ".join([f"{{a{i}}}" for i in range(len(args))])
    return (computed(rec, f"{{0}}({places})", args, result, (function,), id(function) in _SURE),)


def joined(rec: Recorder, parts: tuple[Any, ...]) -> Any:
    """Return the concatenation of texts, as f-strings make it."""
    text = "".join(map(bare, parts))
    if not is_any(rec, *parts):
        return text
    return computed(rec, "''.join(({}))".format("".join([f"{{a{i}}}, " for i in range(len(parts))])), parts, text)
