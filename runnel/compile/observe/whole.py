"""Symbolic integers: counters that may change at each call. They are of a class of their own, which only the recorder
sees: hooks that compute, store or pass numbers on know it, and to all others a plain number is given, which is checked.

Such numbers are made only where an earlier trace ended because a number had changed.
"""

from __future__ import annotations

import itertools
from types import FunctionType, MethodType
from typing import Any, Final

from runnel.compile.observe import containers, symbols
from runnel.compile.observe.classes import is_python_class, lookup
from runnel.compile.observe.plain import COMPARISONS, OPERATORS, UNARY
from runnel.compile.observe.recorder import AbstractHooks
from runnel.compile.observe.symbols import Whole
from runnel.compile.observe.values import C_FUNCTIONS, SINGLETONS, is_class

_EXACT: Final = 1 << 53  # whole numbers below are floats without rounding
_NUMBERS: Final = frozenset({int, float, bool, Whole})


class WholeHooks:
    """The hooks of a recorder, behind a look at whole numbers that may be others."""

    def __init__(self, hooks: AbstractHooks) -> None:
        self.hooks = hooks
        self.rec = hooks.rec

    def __getattr__(self, kind: str) -> Any:
        method = getattr(self.hooks, kind)
        if kind in _PASS_ON:
            return method
        return lambda *args: method(*map(self.plain, args))

    def plain(self, value: Any) -> Any:
        """A plain number in place of one that is looked at."""
        return self.rec.settled_number(value) if type(value) is Whole else value

    # What computes ----------------------------------------------------------------------------------------------------

    def binary(self, symbol: str, a: Any, b: Any) -> Any:
        if self._are_numbers(a, b):
            result = self._computed(OPERATORS[symbol], a, b)
            return symbols.binary(self.rec, symbol, a, b, result)
        return self.hooks.binary(symbol, self._beside(symbol, a, b), self._beside(symbol, b, a))

    def unary(self, symbol: str, value: Any) -> Any:
        if type(value) is Whole:
            return symbols.unary(self.rec, symbol, value, UNARY[symbol](int(value)))
        return self.hooks.unary(symbol, value)

    def compare(self, what: tuple[str, bool], a: Any, b: Any) -> Any:
        if self._are_numbers(a, b):
            return symbols.compared(self.rec, what[0], a, b, self._computed(COMPARISONS[what[0]], a, b))
        return self.hooks.compare(what, self.plain(a), self.plain(b))

    def contains(self, inverted: bool, value: Any, container: Any) -> bool:
        members = self._members(container) if type(value) is Whole else None
        if members is None:
            return self.hooks.contains(inverted, self.plain(value), container)
        result = symbols.computed(self.rec, "({a0} in {0})", (value,), int(value) in members, (members,))
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
        return symbols.truth(self.rec, value) if type(value) is Whole else self.hooks.truth(value)

    def identity(self, inverted: bool, a: Any, b: Any) -> bool:
        if type(a) in SINGLETONS or type(b) in SINGLETONS:
            return (a is not b) if inverted else (a is b)
        return self.hooks.identity(inverted, self.plain(a), self.plain(b))

    def _beside(self, symbol: str, value: Any, other: Any) -> Any:
        """An operand: a whole number that may change, beside what takes it like the float of its value, is that."""
        if type(value) is not Whole or not self.rec.policy.takes_floats(symbol, other) or abs(int(value)) >= _EXACT:
            return self.plain(value)
        self.rec.log.check(self.rec.symbols[id(value)], f"not -{_EXACT} < {{v}} < {_EXACT}", "size of a counter")
        return symbols.computed(self.rec, "float({a0})", (value,), float(int(value)))

    def _are_numbers(self, a: Any, b: Any) -> bool:
        kinds = (type(a), type(b))
        return Whole in kinds and _NUMBERS.issuperset(kinds)

    def _computed(self, function: Any, a: Any, b: Any) -> Any:
        values = [int(x) if type(x) is Whole else x for x in (a, b)]
        try:
            return function(*values)
        except ArithmeticError:
            self.plain(a), self.plain(b)
            raise

    # What stores and passes on ----------------------------------------------------------------------------------------

    def store_attr(self, name: str, value: Any, target: Any) -> None:
        self.hooks.store_attr(name, value, self.plain(target))

    def set_item(self, value: Any, target: Any, key: Any) -> None:
        self.hooks.set_item(value, target, self.plain(key))

    def map_add(self, key: Any, value: Any, table: dict[Any, Any]) -> None:
        self.hooks.map_add(self.plain(key), value, table)

    def build_map(self, parts: tuple[Any, ...]) -> dict[Any, Any]:
        keys = [self.plain(key) for key in parts[::2]]
        return self.hooks.build_map(tuple(itertools.chain(*zip(keys, parts[1::2], strict=True))))

    def build_set(self, members: tuple[Any, ...]) -> set[Any]:
        return self.hooks.build_set(tuple(map(self.plain, members)))

    def call(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        is_arithmetic = symbols.takes_numbers(function, args)
        return self.hooks.call(args if is_arithmetic else self._arguments(function, args), function)

    def call_with_names(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        return self.hooks.call_with_names(self._arguments(function, args), function)

    def call_unpacked(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        if self._passes_on(function):
            return self.hooks.call_unpacked(args, function)
        values = tuple(map(self.plain, self.hooks.unpack(args[0])))
        named = [{name: self.plain(x) for name, x in dict(part).items()} for part in args[1:]]
        return self.hooks.call_unpacked((values, *named), function)

    def _arguments(self, function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return args if self._passes_on(function) else tuple(map(self.plain, args))

    def _passes_on(self, function: Any) -> bool:
        """Whether what is called is observed, or puts its arguments away without looking at them."""
        kind = type(function)
        if kind is MethodType:
            function = function.__func__
        if type(function) is FunctionType:
            policy = self.rec.policy
            return id(function) not in policy.answers and policy.native(function) is None
        if is_class(function):
            return self._is_made_observed(function)
        return kind in C_FUNCTIONS and function.__name__ in symbols.STORES | symbols.MERGES

    def _is_made_observed(self, kind: type) -> bool:
        """Whether objects of a class are made by Python code alone."""
        if not is_python_class(kind) or type(kind) is not type or self.rec.policy.native_class(kind) is not None:
            return False
        new, initial = lookup(kind, "__new__"), lookup(kind, "__init__")
        if new is object.__new__:
            return type(initial) is FunctionType
        new = new.__func__ if type(new) is staticmethod else new
        return type(new) is FunctionType and initial is object.__init__


_PASS_ON: Final = frozenset({"store_global", "store_cell"})


def hooks_for(hooks: AbstractHooks, may_vary: bool) -> Any:
    """The hooks that code is bound to."""
    return WholeHooks(hooks) if may_vary else hooks
