"""Numbers and texts that may be others at each call, such as counters and what is written of them. They are of
classes of their own, which only the recorder sees: hooks that compute, store or pass values on know them, and to all
others a plain value is given, which is checked.

Such values are made only where an earlier trace ended because one had changed.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType
from typing import Any, Final

from runnel.compile.observe import containers, followed, keyed, symbols
from runnel.compile.observe.classes import is_python_class, lookup
from runnel.compile.observe.plain import COMPARISONS, OPERATORS, UNARY, returning, to_call
from runnel.compile.observe.recorder import AbstractHooks
from runnel.compile.observe.symbols import bare
from runnel.compile.observe.values import (
    C_FUNCTIONS,
    DICT_VIEWS,
    ITERATORS,
    SINGLETONS,
    SYMBOLIC,
    Text,
    Whole,
    is_class,
)

_EXACT: Final = 1 << 53  # whole numbers below are floats without rounding
_VALUES: Final = frozenset({int, float, bool, str, Whole, Text})
_TEXTS: Final = frozenset({str, Text})


class VaryingHooks:
    """The hooks of a recorder, behind a look at values that may be others."""

    def __init__(self, hooks: AbstractHooks) -> None:
        self.hooks = hooks
        self.rec = hooks.rec

    def __getattr__(self, kind: str) -> Any:
        method = getattr(self.hooks, kind)
        if kind in _PASS_ON:
            return method
        return lambda *args: method(*map(self.plain, args))

    def plain(self, value: Any) -> Any:
        """A plain value in place of one that is looked at."""
        return self.rec.concrete_number(value) if type(value) in SYMBOLIC else value

    # What computes ----------------------------------------------------------------------------------------------------

    def binary(self, symbol: str, a: Any, b: Any) -> Any:
        if self._are_values(a, b):
            return symbols.binary(self.rec, symbol, a, b, self._computed(OPERATORS[symbol], a, b))
        if symbol in ("%", "%=") and type(a) in (str, Text) and type(b) is tuple:
            text = symbols.called(self.rec, _percent, (a, b), {})
            if text is not None:
                return text[0]
        return self.hooks.binary(symbol, self._beside(symbol, a, b), self._beside(symbol, b, a))

    def unary(self, symbol: str, value: Any) -> Any:
        if type(value) is Whole:
            return symbols.unary(self.rec, symbol, value, UNARY[symbol](int(value)))
        return self.hooks.unary(symbol, self.plain(value))

    def compare(self, what: tuple[str, bool], a: Any, b: Any) -> Any:
        if self._are_values(a, b):
            return symbols.compared(self.rec, what[0], a, b, self._computed(COMPARISONS[what[0]], a, b))
        return self.hooks.compare(what, self._beside(what[0], a, b), self._beside(what[0], b, a))

    def contains(self, inverted: bool, value: Any, container: Any) -> bool:
        container = self.plain(container)
        members = self._members(container) if type(value) in SYMBOLIC else None
        if members is None:
            return self.hooks.contains(inverted, self.plain(value), container)
        result = symbols.computed(self.rec, "({a0} in {0})", (value,), bare(value) in members, (members,))
        return not result if inverted else bool(result)

    def _members(self, container: Any) -> tuple[Any, ...] | None:
        """What a container of plain values holds, all of which is read."""
        rec, kind = self.rec, type(container)
        if kind not in (dict, set, frozenset, list, tuple) or rec.effects.is_changed(container):
            return None
        members = tuple(container)
        if not all(type(x) in (int, str) for x in members):
            return None
        source = rec.source_of(container)
        if source is not None and kind is dict:
            containers.keys(rec, container, source)
        elif source is not None:
            containers.content(rec, container)
        return rec.constant(members)

    def truth(self, value: Any) -> bool:
        return symbols.truth(self.rec, value) if type(value) in SYMBOLIC else self.hooks.truth(value)

    def identity(self, inverted: bool, a: Any, b: Any) -> bool:
        if type(a) in SINGLETONS or type(b) in SINGLETONS:
            return (a is not b) if inverted else (a is b)
        return self.hooks.identity(inverted, self.plain(a), self.plain(b))

    def _beside(self, symbol: str, value: Any, other: Any) -> Any:
        """An operand: a whole number that may change, beside what takes it like the float of its value, is that."""
        operand = self.rec.policy.integer_beside(self.rec, symbol, value, other) if type(value) is Whole else None
        if operand is not None:
            return operand
        if not self.rec.policy.takes_floats(symbol, other):
            return self.plain(value)
        value = self.rec.policy.as_number(self.rec, value)
        if type(value) is not Whole or abs(int(value)) >= _EXACT:
            return self.plain(value)
        self.rec.log.check(self.rec.symbols[id(value)], f"not -{_EXACT} < {{v}} < {_EXACT}", "size of a counter")
        return symbols.computed(self.rec, "float({a0})", (value,), float(int(value)))

    def _are_values(self, a: Any, b: Any) -> bool:
        kinds = (type(a), type(b))
        return (kinds[0] in SYMBOLIC or kinds[1] in SYMBOLIC) and _VALUES.issuperset(kinds)

    def _computed(self, function: Any, a: Any, b: Any) -> Any:
        try:
            return function(bare(a), bare(b))
        except (ArithmeticError, TypeError, ValueError):
            self.plain(a), self.plain(b)
            raise

    # Texts ------------------------------------------------------------------------------------------------------------

    def build_string(self, parts: tuple[str, ...]) -> str:
        text = symbols.called(self.rec, "".join, (parts,), {})
        return "".join(map(self.plain, parts)) if text is None else text[0]

    def load_attr(self, name: str, value: Any) -> Any:
        """Methods of a value that may be another know it."""
        kind = SYMBOLIC.get(type(value))
        if kind is not None and type(lookup(kind, name)) is MethodDescriptorType:
            return getattr(value, name)
        return self.hooks.load_attr(name, self.plain(value))

    # What stores and passes on ----------------------------------------------------------------------------------------

    def store_attr(self, name: str, value: Any, target: Any) -> None:
        self.hooks.store_attr(name, value, self.plain(target))

    def set_item(self, value: Any, target: Any, key: Any) -> None:
        if not keyed.varies(key) or not keyed.stored(self.rec, target, key, value):
            self.hooks.set_item(value, target, self.plain(key))

    def get_item(self, value: Any, key: Any) -> Any:
        if type(value) is Text:
            part = symbols.called(self.rec, operator.getitem, (value, key), {})
            if part is not None:
                return part[0]
        value = self.plain(value)
        if type(key) in SYMBOLIC or type(key) is slice:
            item = followed.item_at(self.rec, value, key)
            if item is not None:
                return item[0]
        return self.hooks.get_item(value, self._plain_slice(key) if type(key) is slice else self.plain(key))

    def _plain_slice(self, key: slice) -> slice:
        return slice(self.plain(key.start), self.plain(key.stop), self.plain(key.step))

    def map_add(self, key: Any, value: Any, table: dict[Any, Any]) -> None:
        self.hooks.map_add(self.plain(key), value, table)

    def build_map(self, parts: tuple[Any, ...]) -> dict[Any, Any]:
        keys = [self.plain(key) for key in parts[::2]]
        return self.hooks.build_map(tuple(itertools.chain(*zip(keys, parts[1::2], strict=True))))

    def build_set(self, members: tuple[Any, ...]) -> set[Any]:
        return self.hooks.build_set(tuple(map(self.plain, members)))

    def _gone_over(self, function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The items of what the run made, in place of it, for functions that go over them once."""
        if function not in _GO_OVER and not (type(function) is BuiltinFunctionType and function.__name__ == "join"):
            return args
        is_made = [type(x) in DICT_VIEWS | ITERATORS and self.rec.source_of(x) is None for x in args]
        return tuple([_items(iter(x)) if made else x for x, made in zip(args, is_made, strict=True)])

    def call(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        if keyed.added(self.rec, function, args):
            return _giving(None)
        args = self._gone_over(function, args)
        result = keyed.got(self.rec, function, args) or symbols.called(self.rec, function, args, {})
        if result is not None:
            return _giving(result[0])
        return self.hooks.call(self._arguments(function, args), self._bare_method(function))

    def call_with_names(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        *values, names = args
        first = len(values) - len(names)
        values[:first] = self._gone_over(function, tuple(values[:first]))
        named = dict(zip(names, values[first:], strict=True))
        result = symbols.called(self.rec, function, tuple(values[:first]), named)
        if result is not None:
            return _giving(result[0])
        return self.hooks.call_with_names(self._arguments(function, (*values, names)), self._bare_method(function))

    def call_unpacked(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        if self._passes_on(function):
            return self.hooks.call_unpacked(args, function)
        positional = self.hooks.starred(args[0])
        named = dict(args[1]) if len(args) > 1 else {}
        if type(positional) in (list, tuple):
            result = symbols.called(self.rec, function, tuple(positional), named)
            if result is not None:
                return _giving(result[0])
        values = tuple(map(self.plain, positional))
        parts = [{name: self.plain(x) for name, x in named.items()}] if len(args) > 1 else []
        return self.hooks.call_unpacked((values, *parts), self._bare_method(function))

    def _bare_method(self, function: Any) -> Any:
        """A method of a value that may be another, of the plain value."""
        if type(function) is not BuiltinFunctionType or type(function.__self__) not in SYMBOLIC:
            return function
        return getattr(self.plain(function.__self__), function.__name__)

    def _arguments(self, function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._passes_on(function):
            return args
        seen = len(args) - (symbols.unseen(function, args) if type(function) in C_FUNCTIONS else 0)
        return (*map(self.plain, args[:seen]), *args[seen:])

    def _passes_on(self, function: Any) -> bool:
        """Whether what is called is observed, or puts its arguments away without looking at them."""
        kind, policy = type(function), self.rec.policy
        if kind is MethodType:
            function = function.__func__
        if id(function) in policy.passing_on:
            return True
        if type(function) is FunctionType:
            return id(function) not in policy.answers and policy.native(function) is None
        if is_class(function):
            return self._is_made_observed(function)
        return kind in C_FUNCTIONS and function.__name__ in symbols.MERGES

    def _is_made_observed(self, kind: type) -> bool:
        """Whether objects of a class are made by Python code alone."""
        if not is_python_class(kind) or type(kind) is not type or self.rec.policy.native_class(kind) is not None:
            return False
        new, initial = lookup(kind, "__new__"), lookup(kind, "__init__")
        if new is object.__new__:
            return type(initial) is FunctionType
        new = new.__func__ if type(new) is staticmethod else new
        return type(new) is FunctionType and initial is object.__init__


_PASS_ON: Final = frozenset({"store_global", "store_cell", "convert", "format", "build_string", "returned"})
_GO_OVER: Final = (sum, min, max, sorted, math.fsum, math.prod)
_percent: Final = OPERATORS["%"]


def _items(values: Iterator[Any]) -> Any:
    """All numbers, or all texts, that an iterator gives. At an item of another kind the function may fail, and leave
    those behind it where they are: it is given an iterator."""
    taken: list[Any] = []
    for value in values:
        taken.append(value)
        if type(value) not in _VALUES or (type(value) in _TEXTS) is not (type(taken[0]) in _TEXTS):
            return itertools.chain(taken, values)
    return tuple(taken)


def _giving(value: Any) -> tuple[Any, ...]:
    function, args, kwargs = returning(value)
    return to_call(function, args, kwargs)


def hooks_for(hooks: AbstractHooks, may_vary: bool) -> Any:
    """The hooks that code is bound to."""
    return VaryingHooks(hooks) if may_vary else hooks
