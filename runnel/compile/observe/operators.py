"""Operators on objects of user classes, by Python's data model, so that their methods run observed.

Where neither operand has a method written in Python the operator itself is applied, and counts as having looked at all
that its operands hold.
"""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any, Final

from runnel.compile.observe import proxies, symbols, texts
from runnel.compile.observe.classes import MISSING, is_python_class, lookup
from runnel.compile.observe.containers import content
from runnel.compile.observe.plain import COMPARISONS, CONVERSIONS, OPERATORS, UNARY
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import (
    BOUND,
    C_FUNCTIONS,
    CONTAINERS,
    PLAIN,
    SINGLETONS,
    SYMBOLIC,
    Text,
    container_of,
    is_class,
    is_users_method,
)

_METHODS: Final = {
    "+": "add", "-": "sub", "*": "mul", "@": "matmul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
_UNARY_METHODS: Final = {"+": "__pos__", "-": "__neg__", "~": "__invert__"}
_COMPARISON_METHODS: Final = {
    "<": ("__lt__", "__gt__"), "<=": ("__le__", "__ge__"), "==": ("__eq__", "__eq__"), "!=": ("__ne__", "__ne__"),
    ">": ("__gt__", "__lt__"), ">=": ("__ge__", "__le__"),
}  # fmt: skip
_SEQUENCE_OPERATORS: Final = frozenset({"+", "*"})  # of C types that try the other operand's method first


def binary(rec: Recorder, symbol: str, a: Any, b: Any) -> Any:
    """``a + b`` and its kin, in place or not."""
    if type(a) in PLAIN and type(b) in PLAIN:
        try:
            result = OPERATORS[symbol](a, b)
        except (ArithmeticError, TypeError, ValueError):  # which may be due to the values
            rec.concrete_number(a), rec.concrete_number(b)
            raise
        return symbols.binary(rec, symbol, a, b, result) if symbols.is_any(rec, (a, b)) else result
    in_place = symbol.endswith("=")
    plain = symbol[:-1] if in_place else symbol
    answer = rec.policy.operator(type(a), type(b))
    if answer is not None:
        return answer(rec, OPERATORS[symbol], a, b)
    if symbol == "+" and type(a) is type(b) and type(a) in (list, tuple):
        return rec.hooks.spread(a) + rec.hooks.spread(b)
    if plain == "[]":
        return rec.hooks.get_item(a, b)
    if is_python_class(type(a)) or is_python_class(type(b)):
        result = by_methods(rec, symbol, a, b)
        if result is not NotImplemented:
            return result
    if in_place and rec.source_of(a) is not None and container_of(type(a)) not in (None, tuple, frozenset):
        return rec.change(a, symbol, b)
    return rec.calls_c(OPERATORS[symbol], (a, b))


def by_methods(rec: Recorder, symbol: str, a: Any, b: Any) -> Any:
    """What the methods of the operands give; NotImplemented where none of them is written in Python or none answers."""
    plain, in_place = symbol.removesuffix("="), symbol.endswith("=")
    name, sequence = _METHODS[plain], plain in _SEQUENCE_OPERATORS
    kind, other = type(a), type(b)
    if in_place:
        method = rec.class_attribute(kind, f"__i{name}__")
        if is_users_method(kind, f"__i{name}__", method):
            result = passed(rec, method, a, b)
            if result is not NotImplemented:
                return result
        elif method is not MISSING and not sequence:  # C code changes it, or tries the methods then
            return NotImplemented
    method, reflected = rec.class_attribute(kind, f"__{name}__"), rec.class_attribute(other, f"__r{name}__")
    if not (is_users_method(kind, f"__{name}__", method) or is_users_method(other, f"__r{name}__", reflected)):
        return NotImplemented
    first = (
        kind is not other
        and reflected is not MISSING
        and (
            (issubclass(other, kind) and reflected is not lookup(kind, f"__r{name}__"))
            or _is_sequence(method, sequence, a)
        )
    )
    if first:
        result = passed(rec, reflected, b, a)
        if result is not NotImplemented:
            return result
    if method is not MISSING and not _is_sequence(method, sequence, a):
        result = passed(rec, method, a, b)
        if result is not NotImplemented:
            return result
    if not first and reflected is not MISSING and kind is not other:
        return passed(rec, reflected, b, a)
    return NotImplemented


def _is_sequence(method: Any, sequence: bool, a: Any) -> bool:
    return sequence and type(method) in C_FUNCTIONS and container_of(type(a)) is not None


def unary(rec: Recorder, symbol: str, value: Any) -> Any:
    """``-value`` and its kin."""
    if type(value) in PLAIN:
        result = UNARY[symbol](value)
        return symbols.unary(rec, symbol, value, result) if symbols.is_any(rec, (value,)) else result
    answer = rec.policy.operator(type(value), type(value))
    if answer is not None:
        return answer(rec, UNARY[symbol], value)
    if is_python_class(type(value)):
        method = rec.class_attribute(type(value), _UNARY_METHODS[symbol])
        if is_users_method(type(value), _UNARY_METHODS[symbol], method):
            return rec.invoke_special(method, value, ())
    return rec.calls_c(UNARY[symbol], (value,))


def compare(rec: Recorder, symbol: str, a: Any, b: Any) -> Any:
    """``a < b`` and its kin."""
    if type(a) in PLAIN and type(b) in PLAIN:
        texts.look_at(rec, a, b)
        result = COMPARISONS[symbol](a, b)
        return symbols.compared(rec, symbol, a, b, result) if symbols.is_any(rec, (a, b)) else result
    answer = rec.policy.operator(type(a), type(b))
    if answer is not None:
        return answer(rec, COMPARISONS[symbol], a, b)
    if is_python_class(type(a)) or is_python_class(type(b)):
        return compared(rec, symbol, a, b)
    if type(a) in BOUND and type(a) is type(b) and symbol in ("==", "!="):
        return _same_parts(rec, a, b) is (symbol == "==")
    return rec.calls_c(COMPARISONS[symbol], (a, b))


def _same_parts(rec: Recorder, a: Any, b: Any) -> bool:
    """Whether two bound methods are of one object and one function."""
    for name in BOUND[type(a)]:
        one, other = rec.hooks.load_attr(name, a), rec.hooks.load_attr(name, b)
        same = compare(rec, "==", one, other) if type(one) in PLAIN else identity(rec, one, other, False)
        if not same:
            return False
    return True


def compared(rec: Recorder, symbol: str, a: Any, b: Any) -> Any:
    """What the methods of the operands give for a comparison."""
    name, reflected_name = _COMPARISON_METHODS[symbol]
    kind, other = type(a), type(b)
    method, reflected = rec.class_attribute(kind, name), rec.class_attribute(other, reflected_name)
    first = kind is not other and issubclass(other, kind)
    order = [(reflected, b, a), (method, a, b)] if first else [(method, a, b), (reflected, b, a)]
    for candidate, value, argument in order:
        if candidate is MISSING or candidate is _ROOT[_COMPARISON_METHODS[symbol][0]] or candidate in _ROOTS:
            if symbol == "!=" and candidate is object.__ne__:  # the inverse of ==
                equal = rec.class_attribute(type(value), "__eq__")
                if equal is not object.__eq__:
                    result = rec.invoke_special(equal, value, (argument,))
                    if result is not NotImplemented:
                        return not truth(rec, result)
            continue
        result = rec.invoke_special(candidate, value, (argument,))
        if result is not NotImplemented:
            return result
    if symbol in ("==", "!="):
        return identity(rec, a, b, symbol == "!=")
    return COMPARISONS[symbol](a, b)  # raises


_ROOT: Final = {name: getattr(object, name) for name in ("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__")}
_ROOTS: Final = frozenset(_ROOT.values())


def identity(rec: Recorder, a: Any, b: Any, inverted: bool) -> bool:
    """``a is b``: for things from outside it must come out the same at later calls."""
    same = a is b
    if type(a) not in SINGLETONS and type(b) not in SINGLETONS:
        one, other = [rec.source_of(x) or rec.stand_ins.get(id(x)) for x in (a, b)]
        if one is not None and other is not None:
            if one is not other:
                fails = "{s0} is not {s1}" if same else "{s0} is {s1}"
                rec.log.check(None, fails, f"whether {one} is {other}", (), (one, other))
        elif type(a) in PLAIN and type(a) is type(b) and not (type(a) is type(b) and a != b):
            rec.refuse("'is' between equal numbers or strings depends on how they were made", "compare them by ==")
    return not same if inverted else same


def truth(rec: Recorder, value: Any) -> bool:
    """``bool(value)``."""
    value = proxies.shown(rec, value)
    kind = type(value)
    if kind in PLAIN:
        return symbols.truth(rec, value) if symbols.is_any(rec, (value,)) else bool(value)
    answer = rec.policy.operator(kind, kind)
    if answer is not None:
        return answer(rec, bool, value)
    if kind in CONTAINERS:
        source = rec.source_of(value)
        if source is None:
            return bool(value)
        if rec.effects.is_changed(value):
            content(rec, value)
        else:
            rec.log.check(source, "not {v}" if value else "{v}", f"truth of {source}")
        return bool(value)
    if is_python_class(kind):
        for name in ("__bool__", "__len__"):
            method = rec.class_attribute(kind, name)
            if is_users_method(kind, name, method):
                return bool(giving(name, rec.invoke_special(method, value, ())))
            if method is not MISSING:
                break
    if kind in (FunctionType, MethodType) or is_class(value):
        return bool(value)
    base, source = container_of(kind), rec.source_of(value)
    if base is not None and source is not None and not rec.effects.is_changed(value):
        fails = "not {0}.__len__({v})" if base.__len__(value) else "{0}.__len__({v})"
        rec.log.check(source, fails, f"truth of {source}", (base,))
        return base.__len__(value) > 0
    content(rec, value)
    return bool(value)


def giving(name: str, result: Any) -> Any:
    """An object whose special method gives this result, for C code to check it."""
    kind: Any = type("_", (), {name: lambda self, *args: result})
    return kind()


def text(rec: Recorder, convert: Any, value: Any) -> str:
    """``str(value)`` or ``repr(value)``."""
    kind = type(value)
    if kind in PLAIN or kind in SYMBOLIC:
        if kind in (str, Text) and convert is str:
            return value
        again = symbols.called(rec, convert, (value,), {})
        return convert(rec.concrete_number(value)) if again is None else again[0]
    if is_python_class(kind):
        for name in ("__str__", "__repr__") if convert is str else ("__repr__",):
            method = rec.class_attribute(kind, name)
            if is_users_method(kind, name, method):
                result = passed(rec, method, value)
                if issubclass(type(result), str):
                    return result
                raise TypeError(f"{name} returned non-string (type {type(result).__name__})")
            if method is object.__repr__:
                rec.refuse("the text of an object shows its address", "give its class a __repr__")
            if method is not object.__str__:
                break
    return rec.calls_c(convert, (value,))


def passed(rec: Recorder, method: Any, value: Any, *args: Any) -> Any:
    """What a special method gives to the observed code."""
    if type(method) is FunctionType:
        return rec.passed(method, (value, *args))
    return rec.invoke_special(method, value, args)


def formatted(rec: Recorder, how: int, value: Any, spec: Any) -> str:
    """``f"{value!r:spec}"``."""
    if how:
        value = text(rec, CONVERSIONS[how], value)
    kind = type(value)
    if kind in PLAIN or kind in SYMBOLIC:
        again = symbols.called(rec, format, (value, spec), {})
        return format(rec.concrete_number(value), rec.concrete_number(spec)) if again is None else again[0]
    spec = rec.concrete_number(spec)
    if is_python_class(kind):
        method = rec.class_attribute(kind, "__format__")
        if is_users_method(kind, "__format__", method):
            return passed(rec, method, value, spec)
        if method is object.__format__ and spec == "":
            return text(rec, str, value)
    if kind in CONTAINERS and spec == "":
        return text(rec, str, value)
    return rec.calls_c(format, (value, spec))
