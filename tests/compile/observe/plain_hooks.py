"""Hooks that do exactly what the replaced instruction did, for tests of rewritten code alone."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any, Final

from runnel.compile.observe.hooks import bound_code, to_call
from runnel.compile.observe.operators import COMPARISONS, CONVERSIONS, OPERATORS, UNARY
from runnel.compile.observe.rewriting import Hook
from runnel.compile.observe.values import MISSING, lookup
from runnel.compile.observe.versions import EMPTY_SELF_ABOVE

SELF_MATCHING: Final = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
WITH_NAMESPACE: Final = frozenset({"load_global", "store_global", "delete_global", "import_name", "import_from"})

Name = tuple[dict[str, Any], str]  # a namespace and a name in it


def builtins_of(names: dict[str, Any]) -> dict[str, Any]:
    namespace_or_module = names.get("__builtins__", builtins)
    return namespace_or_module if type(namespace_or_module) is dict else vars(namespace_or_module)


def special(value: Any, name: str) -> Any:
    method = lookup(type(value), name)
    return method if method is MISSING else method.__get__(value, type(value))


def with_hooks(function: FunctionType, actor: Any) -> CodeType:
    return bound_code(function, actor)


def hooks(actor: Any, names: dict[str, Any]) -> Callable[[Hook], Any]:
    def hook(what: Hook) -> Any:
        method = getattr(actor, what.kind)
        if what.kind in WITH_NAMESPACE:
            return functools.partial(method, (names, what.detail))
        return method if what.detail is None else functools.partial(method, what.detail)

    return hook


class Plain:
    """The hooks, a method for each kind; the detail of a hook, where it has one, comes first."""

    # Names ----------------------------------------------------------------------------------------------------------

    def load_global(self, at: Name, _: None) -> Any:
        names, name = at
        value = names.get(name, MISSING)
        if value is MISSING:
            value = builtins_of(names).get(name, MISSING)
            if value is MISSING:
                raise NameError(f"name '{name}' is not defined", name=name)
        return value

    def store_global(self, at: Name, value: Any) -> None:
        at[0][at[1]] = value

    def delete_global(self, at: Name, _: None) -> None:
        if at[1] not in at[0]:
            raise NameError(f"name '{at[1]}' is not defined", name=at[1])
        del at[0][at[1]]

    def load_cell(self, name: str, cell: CellType) -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            raise unbound(name) from None

    def store_cell(self, name: str, value: Any, cell: CellType) -> None:
        cell.cell_contents = value

    def delete_cell(self, name: str, cell: CellType) -> None:
        self.load_cell(name, cell)
        del cell.cell_contents

    def import_name(self, at: Name, level: int, from_names: Any) -> Any:
        names, name = at
        importer = builtins_of(names).get("__import__")
        if importer is None:
            raise ImportError("__import__ not found")
        return importer(name, names, None, from_names, level)

    def import_from(self, at: Name, module: Any) -> Any:
        return _IMPORT_FROM(module, at[1])

    # Attributes and items -------------------------------------------------------------------------------------------

    def load_attr(self, name: str, value: Any) -> Any:
        return getattr(value, name)

    def load_super(self, what: tuple[str, bool], function: Any, kind: Any, value: Any) -> Any:
        name, has_arguments = what
        is_super = (
            has_arguments or function is super
        )  # else another function of that name, which finds its own arguments
        return getattr(function(kind, value) if is_super else function(), name)

    def store_attr(self, name: str, value: Any, target: Any) -> None:
        setattr(target, name, value)

    def delete_attr(self, name: str, target: Any) -> None:
        delattr(target, name)

    def get_item(self, value: Any, key: Any) -> Any:
        return value[key]

    def set_item(self, value: Any, target: Any, key: Any) -> None:
        target[key] = value

    def delete_item(self, target: Any, key: Any) -> None:
        del target[key]

    # Operators ------------------------------------------------------------------------------------------------------

    def binary(self, symbol: str, a: Any, b: Any) -> Any:
        return OPERATORS[symbol](a, b)

    def unary(self, symbol: str, value: Any) -> Any:
        return UNARY[symbol](value)

    def compare(self, what: tuple[str, bool], a: Any, b: Any) -> Any:
        result = COMPARISONS[what[0]](a, b)
        return bool(result) if what[1] else result

    def identity(self, inverted: bool, a: Any, b: Any) -> bool:
        return (a is not b) if inverted else (a is b)

    def contains(self, inverted: bool, value: Any, container: Any) -> bool:
        return (value not in container) if inverted else (value in container)

    def truth(self, value: Any) -> bool:
        return bool(value)

    def length(self, value: Any) -> int:
        return len(value)

    def convert(self, how: int, value: Any) -> Any:
        return CONVERSIONS[how](value)

    def format(self, how: int, value: Any, spec: Any = "") -> str:
        return format(CONVERSIONS[how](value), spec)

    def build_string(self, parts: tuple[str, ...]) -> str:
        return "".join(parts)

    # Sets, dicts and exceptions -------------------------------------------------------------------------------------

    def build_set(self, members: tuple[Any, ...]) -> set[Any]:
        return set(members)

    def build_map(self, parts: tuple[Any, ...]) -> dict[Any, Any]:
        return dict(zip(parts[::2], parts[1::2], strict=True))

    def set_add(self, value: Any, members: set[Any]) -> None:
        members.add(value)

    def map_add(self, key: Any, value: Any, table: dict[Any, Any]) -> None:
        table[key] = value

    def raised(self, problem: Any) -> Any:
        return problem

    # Iteration and patterns -----------------------------------------------------------------------------------------

    def iterate(self, value: Any) -> Any:
        return value

    delegate = unpack = spread = spread_in_two = listed = unpack_mapping = iterate

    def matched(self, value: Any) -> None:
        """The pattern asks whether the value is a sequence or a mapping."""

    def caught(self, problem: BaseException, kinds: Any) -> None:
        pass

    def match_keys(self, subject: Any, keys: tuple[Any, ...]) -> tuple[Any, ...] | None:
        return match_keys(self, subject, keys)

    def match_class(self, count: int, subject: Any, kind: Any, names: tuple[str, ...]) -> tuple[Any, ...] | None:
        return match_class(self, isinstance, getattr, count, subject, kind, names)

    # Calls ----------------------------------------------------------------------------------------------------------

    def enter(self, manager: Any) -> tuple[Any, Any]:
        """The value and the exit of a ``with`` block."""
        enter, leave = special(manager, "__enter__"), special(manager, "__exit__")
        if enter is MISSING or leave is MISSING:
            raise no_context_manager(manager)
        return enter(), leave

    def call(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        return to_call(function, args, {})

    def call_with_names(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        *values, names = args
        first = len(values) - len(names)
        return to_call(function, tuple(values[:first]), dict(zip(names, values[first:], strict=True)))

    def call_unpacked(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        return to_call(function, tuple(args[0]), dict(args[1]) if len(args) > 1 else {})


def unbound(name: str) -> NameError:
    """The error for a free variable without a value."""
    return NameError(
        f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope", name=name
    )


def no_context_manager(value: Any) -> TypeError:
    """The error of a ``with`` block, whose text depends on the version of Python: it is asked."""
    try:
        with value:
            return TypeError(f"'{type(value).__name__}' object does not support the context manager protocol")
    except TypeError as problem:
        return TypeError(*problem.args)


def match_keys(actor: Any, subject: Any, keys: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The values of a mapping pattern's keys; None where one is missing."""
    if len(set(keys)) != len(keys):
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise ValueError(f"mapping pattern checks duplicate key ({twice!r})")
    get = actor.load_attr("get", subject) if keys else None
    values: list[Any] = []
    for key in keys:
        value = _called(actor, get, (key, MISSING))
        if value is MISSING:
            return None
        values.append(value)
    return tuple(values)


def match_class(
    actor: Any, is_instance: Any, read: Any, count: int, subject: Any, kind: Any, names: tuple[str, ...]
) -> tuple[Any, ...] | None:
    """The values of a class pattern; None where it does not match."""
    if not isinstance(kind, type):
        raise TypeError("called match pattern must be a class")
    if not is_instance(subject, kind):
        return None
    values: list[Any] = []
    matched = _positional(kind, read, count)
    if matched is None:
        values.append(subject)
        matched = ()
    used: set[str] = set()
    for name in (*matched[:count], *names):
        if name in used:
            raise TypeError(f"{kind.__name__}() got multiple sub-patterns for attribute {name!r}")
        used.add(name)
        try:
            values.append(read(subject, name))
        except AttributeError:
            return None
    return tuple(values)


def _positional(kind: type, read: Any, count: int) -> tuple[str, ...] | None:
    """The attributes that positional patterns mean; None: the subject itself."""
    if count == 0:
        return ()
    matched: Any = ()
    with_args = True
    try:
        matched = read(kind, "__match_args__")
    except AttributeError:
        with_args = False
    if with_args and type(matched) is not tuple:
        raise TypeError(f"{kind.__name__}.__match_args__ must be a tuple (got {type(matched).__name__})")
    matches_self = not with_args and issubclass(kind, SELF_MATCHING)
    allowed = 1 if matches_self else len(matched)
    if allowed < count:
        plural = "" if allowed == 1 else "s"
        raise TypeError(f"{kind.__name__}() accepts {allowed} positional sub-pattern{plural} ({count} given)")
    if matches_self:
        return None
    for name in matched[:count]:
        if type(name) is not str:
            raise TypeError(f"__match_args__ elements must be strings (got {type(name).__name__})")
    return matched


def _called(actor: Any, function: Any, args: tuple[Any, ...]) -> Any:
    parts = actor.call(args, function)
    ((kwargs, args), function) = parts if EMPTY_SELF_ABOVE else ((parts[0], parts[1]), parts[2])
    return function(*args, **kwargs)


def _import_from() -> Callable[[Any, str], Any]:
    """``from module import name``, as the interpreter does it: with its search in ``sys.modules`` and its errors."""

    def importing(module: Any, name: str) -> Any:
        code = _STATEMENT.get(name)
        if code is None:
            code = _STATEMENT[name] = compile(f"from _ import {name} as value", "<import>", "exec")
        space: dict[str, Any] = {"__builtins__": {"__import__": lambda *_: module}}
        exec(code, space)
        return space["value"]

    return importing


_STATEMENT: dict[str, CodeType] = {}
_IMPORT_FROM: Final = _import_from()
