"""Operators, truth and texts by Python's data model, so that methods written in Python run observed.

Operators of C code are applied to plain values and exact containers of these; others are refused.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Final

from runnel.compile.observe import numbers
from runnel.compile.observe.containers import change, content, grow, items, length, pairs
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import (
    C_FUNCTIONS,
    CONTAINERS,
    DICT_VIEWS,
    FIXED,
    MISSING,
    SETS,
    SINGLETONS,
    SYMBOLIC,
    Text,
    Whole,
    container_of,
    described,
    is_class,
    is_python_class,
    is_simple,
    is_users_method,
    lookup,
)

COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "@": operator.matmul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "@=": operator.imatmul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow, "<<=": operator.ilshift,
    ">>=": operator.irshift, "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor,
}  # fmt: skip
UNARY: Final[dict[str, Callable[[Any], Any]]] = {"+": operator.pos, "-": operator.neg, "~": operator.invert}
CONVERSIONS: Final[dict[int, Callable[[Any], Any]]] = {0: lambda x: x, 1: str, 2: repr, 3: ascii}
_METHODS: Final = {
    "+": "add", "-": "sub", "*": "mul", "@": "matmul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
_UNARY_METHODS: Final = {"+": "__pos__", "-": "__neg__", "~": "__invert__"}
_COMPARISON_METHODS: Final = {
    "<": ("__lt__", "__gt__"), "<=": ("__le__", "__ge__"), "==": ("__eq__", "__eq__"), "!=": ("__ne__", "__ne__"),
    ">": ("__gt__", "__lt__"), ">=": ("__ge__", "__le__"),
}  # fmt: skip
_IN_PLACE: Final = {"|=": "__ior__", "&=": "__iand__", "-=": "__isub__", "^=": "__ixor__", "*=": "__imul__"}
_OF_OBJECT: Final = frozenset(getattr(object, name) for names in _COMPARISON_METHODS.values() for name in names)


def binary(rec: Recorder, symbol: str, a: Any, b: Any) -> Any:
    """Return ``a + b`` and the like, in place or not."""
    if numbers.is_number(a) and numbers.is_number(b):
        if not numbers.is_any(rec, a, b):
            return OPERATORS[symbol](a, b)
        try:
            result = OPERATORS[symbol](numbers.bare(a), numbers.bare(b))
        except (ArithmeticError, TypeError, ValueError):  # perhaps because of the values
            rec.concrete_number(a), rec.concrete_number(b)
            raise
        return numbers.binary(rec, symbol, a, b, result)
    answer = rec.policy.operator(numbers.kind_of(a), numbers.kind_of(b))
    if answer is not None:
        return answer(rec, OPERATORS[symbol], _beside(rec, symbol, a, b), _beside(rec, symbol, b, a))
    if is_python_class(type(a)) or is_python_class(type(b)):
        result = by_methods(rec, symbol, a, b)
        if result is not NotImplemented:
            return result
    if symbol in ("+", "+=") and type(a) is type(b) and type(a) in (list, tuple):
        if symbol == "+=" and type(a) is list:
            grow(rec, a, "extend", list(items(rec, b)))
            return a
        return items(rec, a) + items(rec, b)
    if symbol.endswith("=") and container_of(type(a)) not in (None, tuple, frozenset):
        return _changed(rec, symbol, a, b)
    if symbol == "%" and type(a) in (str, Text) and type(b) is tuple:
        parts = items(rec, b)
        if numbers.is_any(rec, a, *parts) and all(map(numbers.is_number, parts)):
            places = "".join([f"{{a{i + 1}}}, " for i in range(len(parts))])
            result = numbers.bare(a) % tuple(map(numbers.bare, parts))
            return numbers.computed(rec, f"({{a0}} % ({places}))", (a, *parts), result, (), False)
    return OPERATORS[symbol](content(rec, a), content(rec, b))


def _beside(rec: Recorder, symbol: str, value: Any, other: Any) -> Any:
    """Return an operand as an op takes it: an int that may differ becomes a float where the result is the same."""
    operand = rec.policy.integer_beside(rec, symbol, value, other) if type(value) is Whole else None
    if operand is not None:
        return operand
    is_exact = type(value) is Whole and abs(value) < 1 << 53
    if is_exact and rec.policy.takes_floats(symbol, other):
        return numbers.computed(rec, "{0}({a0})", (value,), float(value), (float,))
    return value if type(value) not in SYMBOLIC else rec.concrete_number(value)


def _changed(rec: Recorder, symbol: str, a: Any, b: Any) -> Any:
    """Do ``a += b`` of a list, dict, set or deque: of the object itself, and not of a copy for C code."""
    base = container_of(type(a))
    if base is dict and symbol == "|=" and container_of(type(b)) is dict:
        for key, item in pairs(rec, b).items():
            rec.hooks.set_item(item, a, key)
        return a
    if symbol == "+=" and base in (list, deque):
        grow(rec, a, "extend", list(rec.hooks.iterate(b)))
        return a
    is_set = container_of(type(b)) in SETS or type(b) in DICT_VIEWS
    if (symbol == "*=" and base is list) or (base is set and is_set):
        change(rec, a, _IN_PLACE[symbol], (content(rec, b),))
        return a
    rec.refuse(f"{described(a)} is changed by {symbol}", "use its methods")


def by_methods(rec: Recorder, symbol: str, a: Any, b: Any) -> Any:
    """Return what methods written in Python give for an operator, or NotImplemented."""
    plain, in_place = symbol.removesuffix("="), symbol.endswith("=")
    name, kind, other = _METHODS[plain], type(a), type(b)
    if in_place:
        method = rec.class_attribute(kind, f"__i{name}__")
        if is_users_method(kind, f"__i{name}__", method):
            result = passed(rec, method, a, b)
            if result is not NotImplemented:
                return result
        elif method is not MISSING:  # C code changes it
            return NotImplemented
    method, reflected = rec.class_attribute(kind, f"__{name}__"), rec.class_attribute(other, f"__r{name}__")
    if not (is_users_method(kind, f"__{name}__", method) or is_users_method(other, f"__r{name}__", reflected)):
        return NotImplemented
    order = [(method, a, b)]
    if kind is not other:
        is_override = issubclass(other, kind) and reflected is not lookup(kind, f"__r{name}__")
        is_sequence = plain in ("+", "*") and type(method) in C_FUNCTIONS and container_of(kind) is not None
        order.insert(0 if is_override or is_sequence else 1, (reflected, b, a))
    for candidate, value, argument in order:
        if candidate is not MISSING and type(candidate) not in C_FUNCTIONS:
            result = passed(rec, candidate, value, argument)
            if result is not NotImplemented:
                return result
    return NotImplemented


def unary(rec: Recorder, symbol: str, value: Any) -> Any:
    """Return ``-value`` and the like."""
    if numbers.is_number(value):
        result = UNARY[symbol](numbers.bare(value))
        return numbers.computed(rec, f"({symbol}{{a0}})", (value,), result) if numbers.is_any(rec, value) else result
    answer = rec.policy.operator(type(value), type(value))
    if answer is not None:
        return answer(rec, UNARY[symbol], value)
    method = rec.class_attribute(type(value), _UNARY_METHODS[symbol])
    if is_users_method(type(value), _UNARY_METHODS[symbol], method):
        return passed(rec, method, value)
    return UNARY[symbol](content(rec, value))


def compare(rec: Recorder, symbol: str, a: Any, b: Any) -> Any:
    """Return ``a < b`` and the like."""
    if numbers.is_number(a) and numbers.is_number(b):
        if not numbers.is_any(rec, a, b):
            return COMPARISONS[symbol](rec.concrete_number(a), rec.concrete_number(b))
        result = COMPARISONS[symbol](numbers.bare(a), numbers.bare(b))
        return numbers.computed(rec, f"({{a0}} {symbol} {{a1}})", (a, b), result)
    answer = rec.policy.operator(numbers.kind_of(a), numbers.kind_of(b))
    if answer is not None:
        return answer(rec, COMPARISONS[symbol], _beside(rec, symbol, a, b), _beside(rec, symbol, b, a))
    if is_python_class(type(a)) or is_python_class(type(b)):
        return compared(rec, symbol, a, b)
    if symbol in ("==", "!=") and _by_identity(a) and _by_identity(b):
        return identity(rec, a, b, symbol == "!=")
    return COMPARISONS[symbol](content(rec, a), content(rec, b))


def _by_identity(value: Any) -> bool:
    return type(value) in (FunctionType, *FIXED) or type(value) in SINGLETONS or is_class(value)


def compared(rec: Recorder, symbol: str, a: Any, b: Any) -> Any:
    """Return what the methods of the operands give for a comparison."""
    name, reflected_name = _COMPARISON_METHODS[symbol]
    kind, other = type(a), type(b)
    order = [(name, a, b), (reflected_name, b, a)]
    if kind is not other and issubclass(other, kind):
        order.reverse()
    for method_name, value, argument in order:
        method = rec.class_attribute(type(value), method_name)
        if symbol == "!=" and method is object.__ne__:  # the inverse of ==
            method = rec.class_attribute(type(value), "__eq__")
            if method not in _OF_OBJECT and method is not MISSING:
                result = passed(rec, method, value, argument)
                if result is not NotImplemented:
                    return not truth(rec, result)
            continue
        if method is MISSING or method in _OF_OBJECT:
            continue
        result = passed(rec, method, value, argument)
        if result is not NotImplemented:
            return result
    if symbol in ("==", "!="):
        return identity(rec, a, b, symbol == "!=")
    raise TypeError(f"'{symbol}' not supported between instances of '{kind.__name__}' and '{other.__name__}'")


def identity(rec: Recorder, a: Any, b: Any, inverted: bool) -> bool:
    """Return ``a is b``. For values from outside it must come out the same at later calls."""
    same = a is b
    if type(a) not in SINGLETONS and type(b) not in SINGLETONS:
        one, other = rec.source_of(a), rec.source_of(b)
        if one is not None and other is not None:
            if one is not other:
                fails = "{s0} is not {s1}" if same else "{s0} is {s1}"
                rec.log.check(None, fails, f"whether {one} is {other}", (), (one, other))
        elif numbers.is_number(a) and numbers.is_number(b) and type(numbers.bare(a)) is type(numbers.bare(b)):
            if rec.concrete_number(a) == rec.concrete_number(b):
                rec.refuse("'is' between equal numbers or strings depends on how they were made", "compare them by ==")
            return inverted
    return not same if inverted else same


def truth(rec: Recorder, value: Any) -> bool:
    """Return ``bool(value)``."""
    kind = type(value)
    if numbers.is_number(value):
        if numbers.is_any(rec, value):
            return bool(numbers.computed(rec, "(not not {a0})", (value,), bool(numbers.bare(value))))
        return bool(rec.concrete_number(value))
    answer = rec.policy.operator(kind, kind)
    if answer is not None:
        return bool(answer(rec, bool, value))
    if is_python_class(kind):
        for name in ("__bool__", "__len__"):
            method = rec.class_attribute(kind, name)
            if is_users_method(kind, name, method):
                result = rec.concrete_number(passed(rec, method, value))
                if type(result) is not bool and (name == "__bool__" or type(result) is not int or result < 0):
                    raise TypeError(f"{name} should return bool or a length, returned {type(result).__name__}")
                return bool(result)
            if method is not MISSING:
                break
    base = container_of(kind)
    if base is None:
        if lookup(kind, "__bool__") is MISSING and lookup(kind, "__len__") is MISSING:
            return True
        return bool(content(rec, value))
    source = rec.source_of(value)
    if source is None or rec.effects.is_changed(value):
        return bool(rec.concrete_number(length(rec, value)))
    is_filled = base.__len__(value) > 0
    fails = "not {0}.__len__({v})" if is_filled else "{0}.__len__({v})"
    rec.log.check(source, fails, f"truth of {source}", (base,))
    return bool(is_filled)


def text(rec: Recorder, convert: Any, value: Any) -> Any:
    """Return ``str(value)``, ``repr(value)`` or ``ascii(value)``."""
    kind = type(value)
    if numbers.is_number(value):
        if kind in (str, Text) and convert is str:
            return value
        if convert is ascii:
            return ascii(rec.concrete_number(value))
        again = numbers.called(rec, convert, (value,), {})
        return convert(value) if again is None else again[0]
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
    if kind in (FunctionType, MethodType):
        rec.refuse("the text of a function shows its address", "use its __name__")
    return convert(rec.policy.shown(rec, value))


def formatted(rec: Recorder, how: int, value: Any, spec: Any) -> Any:
    """Return ``f"{value!r:spec}"``."""
    if how:
        value = text(rec, CONVERSIONS[how], value)
    kind = type(value)
    if numbers.is_number(value):
        again = numbers.called(rec, format, (value, spec), {})
        return format(value, rec.concrete_number(spec)) if again is None else again[0]
    spec = rec.concrete_number(spec)
    if is_python_class(kind):
        method = rec.class_attribute(kind, "__format__")
        if is_users_method(kind, "__format__", method):
            return passed(rec, method, value, spec)
        if method is object.__format__ and spec == "":
            return text(rec, str, value)
    if kind in CONTAINERS and spec == "":
        return text(rec, str, value)
    return format(rec.policy.shown(rec, value), spec)


def passed(rec: Recorder, method: Any, value: Any, *args: Any) -> Any:
    """Call a special method found on a class, observed."""
    if type(method) is FunctionType:
        return rec.passed(method, (value, *args))
    return rec.passed(method.__get__(value, type(value)), args)


def require_hashable(rec: Recorder, value: Any) -> Any:
    """Return the argument of ``hash``, which must depend on its value alone."""
    value = content(rec, value)
    if not is_simple(value):
        rec.refuse(f"the hash of {described(value)} depends on its address", "keep a counter instead")
    return value
