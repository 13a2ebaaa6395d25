"""The table of rules: what a call of C code reads and changes. A missing row is a refusal.

A row that has no code of its own is ``_given``: the function depends on its arguments alone, which are plain values,
tensors and exact containers of these. So C code never calls Python code that nobody observes. Functions that call back
(``map``, ``sorted``, ``min``, ...) are carried out here, and what they call runs observed.
"""

from __future__ import annotations

import abc
import builtins
import copy
import datetime
import enum
import functools
import io
import itertools
import json
import logging
import math
import operator
import os
import re
import sys
import types
import typing
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextvars import ContextVar
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NoReturn

from runnel.compile.observe import attributes, containers, numbers, operators
from runnel.compile.observe.calls import Call, returning
from runnel.compile.observe.containers import content
from runnel.compile.observe.effects import CallingMethod, Printing
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import (
    CONTAINERS,
    DICT_VIEWS,
    ITERATORS,
    MISSING,
    PLAIN,
    SETS,
    SYMBOLIC,
    container_of,
    described,
    is_class,
    is_found_by_identity,
    is_plain,
    is_python_class,
    is_users_method,
    lookup,
    own_method,
)

Rule = Callable[..., Any]  # rule(rec, *args, **kwargs) gives what the call gives
OUTSIDE: Final = (
    "call it outside and pass the result as an argument, or by rn.pure_callback if it depends on its arguments alone; "
    "rn.uncompiled says that it is meant to run eagerly"
)
_VALUES: Final = (
    datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone, re.Pattern, re.Match,
)  # fmt: skip
_REFUSED: Final = {
    "time": ("a clock is read", "read it around the call of the compiled function, or pass the time as an argument"),
    "_thread": ("a lock is taken", "take it around the call of the compiled function, or use a list or deque"),
    "random": ("Python's random numbers are drawn", "use rn.rand or rn.randint, or pass the number as an argument"),
    "_random": ("Python's random numbers are drawn", "use rn.rand or rn.randint, or pass the number as an argument"),
    "numpy.random": ("NumPy's random numbers are drawn", "use rn.rand or rn.randn, or pass the array as an argument"),
    "posix": ("the file system is asked", "read it outside and pass the result as an argument"),
    "_io": ("a file is read or written", "do it outside of the compiled function"),
    "_functools": ("a function that keeps results (lru_cache) is called", "call it outside and pass what it returns"),
    "weakref": ("a weak reference is asked", "hold the object itself, or ask outside"),
    "_weakrefset": ("a weak reference is asked", "hold the object itself, or ask outside"),
    "_weakref": ("a weak reference is asked", "hold the object itself, or ask outside"),
    "_contextvars": ("a context variable is read or set", "do it outside of the compiled function"),
}


def _given(function: Any) -> Rule:
    """Make the rule of a function that depends on its arguments alone."""

    def rule(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        values = [_argument(rec, x) for x in args]
        return function(*values, **{name: _argument(rec, x) for name, x in kwargs.items()})

    return rule


def _argument(rec: Recorder, value: Any) -> Any:
    if type(value) in (FunctionType, MethodType, functools.partial):
        rec.refuse_value(value, "a C function")
    return content(rec, value)


def _refusing(reason: str, remedy: str) -> Rule:
    def rule(rec: Recorder, *_: Any, **__: Any) -> NoReturn:
        rec.refuse(reason, remedy)

    return rule


# Attributes, classes, identity ----------------------------------------------------------------------------------------


def _hasattr(rec: Recorder, value: Any, name: str) -> bool:
    return attributes.read_or(rec, value, name, MISSING) is not MISSING


def _type(rec: Recorder, value: Any, *parts: Any) -> Any:
    if parts:
        rec.refuse("a class is made in the function", "define it outside")
    return rec.policy.kind_of(value)


def _vars(rec: Recorder, value: Any) -> Any:
    return attributes.read(rec, value, "__dict__")


def _isinstance(rec: Recorder, value: Any, kinds: Any) -> bool:
    kind = rec.policy.kind_of(value)
    if _claims(type(value)) and kind is type(value):
        rec.refuse(f"{described(value)} says by its __class__ what it is", "ask for its type()")
    return _issubclass(rec, kind, kinds)


def _claims(kind: type) -> bool:
    return is_python_class(kind) and lookup(kind, "__class__") is not object.__dict__["__class__"]


def _issubclass(rec: Recorder, kind: type, kinds: Any) -> bool:
    if type(kinds) is types.UnionType:
        kinds = attributes.read(rec, kinds, "__args__")
    if type(kinds) is tuple:
        return any(_issubclass(rec, kind, one) for one in rec.hooks.spread(kinds))
    if not is_class(kinds) or not is_class(kind):
        if is_python_class(type(kinds)):
            rec.refuse_value(kinds, "isinstance()")
        return isinstance(None, kinds) if is_class(kind) else issubclass(kind, kinds)  # raises
    own = rec.class_attribute(type(kinds), "__instancecheck__")
    if own is type.__instancecheck__:
        return issubclass(kind, kinds)
    hook = lookup(kinds, "__subclasshook__")
    is_protocol = vars(kinds).get("_is_protocol", False)
    is_hooked = type(hook) is classmethod and not rec.policy.is_library(str(kinds.__module__))
    is_abstract = own is abc.ABCMeta.__instancecheck__ or (type(kinds) is type(typing.Protocol) and not is_protocol)
    if not is_abstract or is_hooked:
        rec.refuse(f"{described(kinds)} decides in code of its own what belongs to it", "ask for the class itself")
    result, at, other = issubclass(kind, kinds), rec.source_of(kinds), rec.source_of(kind)
    if at is not None and other is not None:
        rec.log.check(None, f"issubclass({{s1}}, {{s0}}) is not {result}", f"what {at} is", (), (at, other))
    elif at is not None:
        rec.log.check(at, f"issubclass({{0}}, {{v}}) is not {result}", f"what {at} is", (kind,))
    return result


def _id(rec: Recorder, value: Any) -> int:
    if rec.source_of(value) is None:
        rec.refuse("id() of a value made in the function differs from run to run", "keep a number of your own")
    rec.pinned(value)
    return id(value)


def _hash(rec: Recorder, value: Any) -> int:
    own = rec.class_attribute(type(value), "__hash__") if is_python_class(type(value)) else MISSING
    if is_users_method(type(value), "__hash__", own):
        return hash(rec.concrete_number(operators.passed(rec, own, value)))
    return hash(operators.require_hashable(rec, value))


def _callable(rec: Recorder, value: Any) -> bool:
    if is_python_class(type(value)):
        rec.class_attribute(type(value), "__call__")
    return callable(value)


# Numbers and texts ----------------------------------------------------------------------------------------------------


def _converted(function: Any, *names: str) -> Rule:
    """Make the rule of a conversion, which calls a special method of objects of Python classes."""
    given = _given(function)

    def rule(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        if args and is_python_class(type(args[0])):
            answer = rec.policy.operator(type(args[0]), type(args[0]))
            for name in names if answer is None else ():
                method = rec.class_attribute(type(args[0]), name)
                if is_users_method(type(args[0]), name, method):
                    result = rec.concrete_number(operators.passed(rec, method, args[0], *args[1:]))
                    return function(content(rec, result)) if function in (int, float, complex) else result
                if method is not MISSING:  # C code asks no further
                    break
        return given(rec, *args, **kwargs)

    return rule


def _text(convert: Any) -> Rule:
    given = _given(convert)

    def rule(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        is_one = len(args) == 1 and not kwargs
        return operators.text(rec, convert, args[0]) if is_one else given(rec, *args, **kwargs)

    return rule


def _format(rec: Recorder, value: Any, spec: Any = "") -> Any:
    return operators.formatted(rec, 0, value, spec)


def _join(rec: Recorder, text: Any, parts: Any) -> Any:
    parts = list(rec.hooks.iterate(parts))
    if not numbers.is_any(rec, text, *parts) or not all(map(numbers.is_number, parts)):
        return rec.concrete_number(text).join([x if type(x) is str else content(rec, x) for x in parts])
    between: list[Any] = [text] * (2 * len(parts) - 1)
    between[::2] = parts
    return numbers.joined(rec, tuple(between))


def _str_format(rec: Recorder, text: Any, *args: Any, **kwargs: Any) -> Any:
    """``text.format(...)``: fields are formatted as in f-strings. Fields that read attributes or items are refused."""
    out: list[Any] = []
    automatic = iter(range(len(args)))
    for literal, name, spec, conversion in _PARSE(rec.concrete_number(text)):
        out.append(literal)
        if name is None:
            continue
        if not (name == "" or name.isalnum() or name.isidentifier()) or "{" in (spec or ""):
            rec.refuse(f"a field '{name}' of str.format() reads a part of its argument", "use an f-string")
        place = next(automatic) if name == "" else int(name) if name.isdigit() else name
        value = kwargs[place] if type(place) is str else args[place]
        out.append(rec.hooks.format({None: 0, "s": 1, "r": 2, "a": 3}[conversion], value, spec or ""))
    return numbers.joined(rec, tuple(out))


_PARSE: Final[Any] = __import__("string").Formatter().parse


def _sum(rec: Recorder, values: Any, start: Any = 0) -> Any:
    items = list(rec.hooks.iterate(values))
    if all(map(numbers.is_number, items)) and numbers.is_number(start):  # 3.12 adds floats exactly
        result = sum(map(numbers.bare, items), numbers.bare(start))
        if not numbers.is_any(rec, start, *items):
            return result
        places = "".join([f"{{a{i + 1}}}, " for i in range(len(items))])
        return numbers.computed(rec, f"{{0}}(({places}), {{a0}})", (start, *items), result, (sum,), False)
    for x in items:
        start = rec.hooks.binary("+", start, x)
    return start


def _extreme(function: Any, symbol: str) -> Rule:
    """Make the rule of ``min`` and ``max``."""

    def rule(rec: Recorder, *args: Any, key: Any = None, default: Any = MISSING) -> Any:
        items = list(args) if len(args) > 1 else list(rec.hooks.iterate(*args))
        if not items:
            return function(()) if default is MISSING else default
        if key is None and len(items) <= 8 and all(map(numbers.is_number, items)):
            known = numbers.called(rec, function, tuple(items), {})
            if known is not None:
                return known[0]
        best, rank = items[0], rec.passed(key, (items[0],)) if key is not None else items[0]
        for item in items[1:]:
            other = rec.passed(key, (item,)) if key is not None else item
            if rec.hooks.truth(rec.hooks.compare((symbol, False), other, rank)):
                best, rank = item, other
        return best

    return rule


# Iteration ------------------------------------------------------------------------------------------------------------


def _next(rec: Recorder, iterator: Any, *default: Any) -> Any:
    kind = type(iterator)
    step = rec.class_attribute(kind, "__next__") if is_python_class(kind) else MISSING
    try:
        if is_users_method(kind, "__next__", step):
            return operators.passed(rec, step, iterator)
        if lookup(kind, "__next__") is not MISSING:
            content(rec, iterator)
        return next(iterator)
    except StopIteration:
        if default:
            return default[0]
        raise


def _iter(rec: Recorder, value: Any, *sentinel: Any) -> Any:
    if sentinel:
        rec.refuse("iter() is given a function", "write a while loop")
    kind = type(value)
    method = rec.class_attribute(kind, "__iter__") if is_python_class(kind) else MISSING
    if is_users_method(kind, "__iter__", method):
        return operators.passed(rec, method, value)
    return iter(rec.hooks.iterate(value))


def _over(function: Any, places: int | None = None) -> Rule:
    """Make the rule of a function that iterates over its first arguments, all of them by default."""

    def rule(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        values = [rec.hooks.iterate(x) if places is None or i < places else content(rec, x) for i, x in enumerate(args)]
        return function(*values, **{name: content(rec, x) for name, x in kwargs.items()})

    return rule


def _calling(function: Any) -> Rule:
    """Make the rule of a function whose first argument is called with items of the others."""

    def rule(rec: Recorder, called: Any, *args: Any) -> Any:
        values = [rec.hooks.iterate(x) for x in args]
        if function is filter:
            return (x for x in values[0] if rec.hooks.truth(x if called is None else rec.passed(called, (x,))))
        if function is itertools.starmap:
            return (rec.passed(called, tuple(rec.hooks.spread(x))) for x in values[0])
        return function(lambda *items: rec.passed(called, items), *values)

    return rule


def _iterator(kind: Any) -> Rule:
    """Make the rule of a class of ``itertools``."""

    def argument(rec: Recorder, value: Any) -> Any:
        if numbers.is_number(value) or kind is itertools.repeat:
            return rec.concrete_number(value)
        if callable(value):
            return lambda *items: content(rec, rec.passed(value, items))
        items = rec.hooks.iterate(value)
        return (content(rec, x) for x in items) if kind in _LOOKING else items

    def rule(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        return kind(*[argument(rec, x) for x in args], **{name: argument(rec, x) for name, x in kwargs.items()})

    return rule


_LOOKING: Final = (
    itertools.accumulate, itertools.groupby, itertools.compress, itertools.takewhile, itertools.dropwhile,
    itertools.filterfalse,
)  # fmt: skip


def _any(rec: Recorder, values: Any) -> bool:
    return any(rec.hooks.truth(x) for x in rec.hooks.iterate(values))


def _all(rec: Recorder, values: Any) -> bool:
    return all(rec.hooks.truth(x) for x in rec.hooks.iterate(values))


def _reversed(rec: Recorder, value: Any) -> Any:
    kind = type(value)
    own = rec.class_attribute(kind, "__reversed__") if is_python_class(kind) else MISSING
    if is_users_method(kind, "__reversed__", own):
        return operators.passed(rec, own, value)
    if kind in PLAIN:
        return reversed(rec.concrete_number(value))
    if container_of(kind) is dict:
        return reversed(list(rec.hooks.iterate(value)))
    size = rec.concrete_number(rec.hooks.length(value))
    return (rec.hooks.get_item(value, i) for i in range(size - 1, -1, -1))


def _reduce(rec: Recorder, function: Any, values: Any, *start: Any) -> Any:
    return functools.reduce(lambda a, b: rec.passed(function, (a, b)), rec.hooks.iterate(values), *start)


def _sorted(rec: Recorder, values: Any, *, key: Any = None, reverse: Any = False) -> list[Any]:
    items = list(rec.hooks.iterate(values))
    ranks = [content(rec, x if key is None else rec.passed(key, (x,))) for x in items]
    order = sorted(range(len(items)), key=ranks.__getitem__, reverse=rec.hooks.truth(reverse))
    return [items[i] for i in order]


# Containers -----------------------------------------------------------------------------------------------------------


def _sequence(kind: Any) -> Rule:
    def rule(rec: Recorder, *values: Any, **kwargs: Any) -> Any:
        kwargs = {name: content(rec, x) for name, x in kwargs.items()}
        rest = [content(rec, x) for x in values[1:]]
        return kind(*[rec.hooks.spread(x) for x in values[:1]], *rest, **kwargs)

    return rule


def _set(kind: Any) -> Rule:
    def rule(rec: Recorder, values: Any = ()) -> Any:
        result = rec.hooks.build_set(tuple(rec.hooks.iterate(values)))
        return result if kind is set else kind(result)

    return rule


def _dict(kind: Any) -> Rule:
    """Make the rule of ``dict``, ``OrderedDict`` and ``defaultdict``, whose first argument is the factory."""

    def rule(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        result = kind(*args[:1]) if kind is defaultdict else kind()
        _update(rec, result, *(args[1:] if kind is defaultdict else args), **kwargs)
        return result

    return rule


def _update(rec: Recorder, target: Any, values: Any = (), /, **named: Any) -> None:
    kind = type(values)
    if container_of(kind) is dict or (kind not in CONTAINERS and lookup(kind, "keys") is not MISSING):
        for key, value in list(rec.hooks.unpack_mapping(values).items()):
            containers.set_key(rec, target, key, value)
    else:
        for pair in rec.hooks.iterate(values):
            key, value = rec.hooks.spread(pair)
            containers.set_key(rec, target, key, value)
    for name, value in named.items():
        containers.set_key(rec, target, name, value)


def _extend(rec: Recorder, value: Any, name: str, items: Any) -> None:
    taken: list[Any] = []
    try:
        taken.extend(rec.hooks.iterate(items))  # keeps what came before an error
    finally:
        if taken:
            containers.grow(rec, value, name, taken)


def _sort(rec: Recorder, value: Any, **kwargs: Any) -> None:
    containers.sort(rec, value, _sorted(rec, value, **kwargs))


def _get(rec: Recorder, value: Any, key: Any, default: Any = None) -> Any:
    return containers.get_item(rec, value, key) if containers.has_key(rec, value, key) else default


def _setdefault(rec: Recorder, value: Any, key: Any, default: Any = None) -> Any:
    if not containers.has_key(rec, value, key):
        containers.set_key(rec, value, key, default)
        return default
    return containers.get_item(rec, value, key)


def _pop(rec: Recorder, value: Any, *args: Any) -> Any:
    if container_of(type(value)) is not dict:
        return containers.take(rec, value, "pop", *args)
    if not containers.has_key(rec, value, args[0]):
        if len(args) > 1:
            return args[1]
        raise KeyError(rec.concrete_number(args[0]))
    item = containers.get_item(rec, value, args[0])
    containers.delete_key(rec, value, args[0])
    return item


def _index(rec: Recorder, value: Any, item: Any) -> int:
    for i, x in enumerate(rec.hooks.iterate(value)):
        if rec.hooks.truth(rec.hooks.compare(("==", False), x, item)):
            return i
    raise ValueError("the item is not in the list")


def _remove(rec: Recorder, value: Any, item: Any) -> None:
    if container_of(type(value)) in SETS:
        containers.change(rec, value, "remove", (item,))
    else:
        containers.change_item(rec, value, _index(rec, value, item), None, deletes=True)


def _set_operation(name: str) -> Rule:
    """Make the rule of a method of sets that takes iterables."""

    def rule(rec: Recorder, value: Any, *others: Any) -> Any:
        values = tuple([rec.hooks.build_set(tuple(rec.hooks.iterate(x))) for x in others])
        if name.endswith("update"):
            return containers.change(rec, value, name, values)
        return getattr(type(value), name)(containers.laid_out(rec, value), *values)

    return rule


def _poured(rec: Recorder, value: Any, *args: Any, **kwargs: Any) -> None:
    """``super().__init__(...)`` of a container."""
    if rec.source_of(value) is not None:
        rec.refuse("a container outside is initialized again")
    if container_of(type(value)) is dict:
        _update(rec, value, *args, **kwargs)
    else:
        containers.c_method(rec, value, list, "__init__")(value, *[list(rec.hooks.iterate(x)) for x in args])


def _set_item(rec: Recorder, value: Any, key: Any, item: Any) -> None:
    change = containers.set_key if container_of(type(value)) is dict else containers.change_item
    change(rec, value, key, item)


def _delete_item(rec: Recorder, value: Any, key: Any) -> None:
    if container_of(type(value)) is dict:
        containers.delete_key(rec, value, key)
    else:
        containers.change_item(rec, value, key, None, deletes=True)


_OF_SETS: Final = (
    "update", "difference_update", "intersection_update", "symmetric_difference_update", "union", "difference",
    "intersection", "symmetric_difference", "issubset", "issuperset", "isdisjoint",
)  # fmt: skip


def _changing(name: str) -> Rule:
    def rule(rec: Recorder, value: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "pop" and any(type(x) not in PLAIN for x in value):
            rec.refuse("an object is popped from a set, which one depends on addresses", "use a list or a dict")
        named = {key: content(rec, x) for key, x in kwargs.items()}
        return containers.change(rec, value, name, tuple([content(rec, x) for x in args]), named)

    return rule


def _growing(name: str) -> Rule:
    return lambda rec, value, item: containers.grow(rec, value, name, [item])


_OF_CONTAINERS: Final[dict[str, Rule]] = {
    "append": _growing("append"), "appendleft": _growing("appendleft"),
    "extend": lambda rec, value, items: _extend(rec, value, "extend", items),
    "extendleft": lambda rec, value, items: _extend(rec, value, "extendleft", items),
    "insert": lambda rec, value, i, x: containers.change(rec, value, "insert", (content(rec, i), x)),
    "pop": lambda rec, value, *args: (
        _changing("pop")(rec, value, *args) if container_of(type(value)) is set else _pop(rec, value, *args)
    ),
    "popleft": lambda rec, value: containers.take(rec, value, "popleft"),
    "remove": _remove, "sort": _sort, "index": _index, "get": _get, "setdefault": _setdefault,
    **{name: _changing(name) for name in ("clear", "reverse", "rotate", "popitem", "move_to_end", "add", "discard")},
    **{name: _set_operation(name) for name in _OF_SETS},
    "copy": lambda rec, value: (
        type(value)(containers.pairs(rec, value)) if type(value) in (dict, OrderedDict)
        else type(value)(containers.items(rec, value)) if type(value) is list
        else type(value).copy(containers.laid_out(rec, value))
    ),
    **{name: lambda rec, value, name=name: containers.view(rec, value, name) for name in ("keys", "values", "items")},
    "__getitem__": containers.get_item, "__setitem__": _set_item, "__delitem__": _delete_item,
    "__contains__": containers.is_member, "__len__": containers.length, "__init__": _poured,
    "__iter__": lambda rec, value: iter(containers.iterated(rec, value)),
}  # fmt: skip


def _container_method(rec: Recorder, value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    base = container_of(type(value))
    if name == "update" and base is dict:
        return _update(rec, value, *args, **kwargs)
    rule = _OF_CONTAINERS.get(name)
    if kwargs and name not in ("sort", "popitem", "move_to_end", "__init__"):
        _fail(rec, value, name, args, kwargs)
    if rule is not None:
        try:
            return rule(rec, value, *args, **kwargs)
        except (TypeError, ValueError, IndexError):
            _fail(rec, value, name, args, kwargs)
            raise
    method = containers.c_method(rec, value, base, name)
    if name not in _READING or is_python_class(type(value)):
        rec.policy.refuse_c(rec, method.__get__(value))
    return method(content(rec, value), *[_argument(rec, x) for x in args], **kwargs)


def _fail(rec: Recorder, value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A rule has failed. Raise the error of the method itself, called on a copy."""
    if not all(map(is_plain, (*args, *kwargs.values()))):
        if name in ("extend", "extendleft", "update", "sort", "__init__"):
            return  # an error of what the function gave it
        rec.refuse(f"{name}() of {described(value)} fails", "call it outside")
    copied = deque(value, value.maxlen) if type(value) is deque else container_of(type(value))(value)
    getattr(copied, name)(*args, **kwargs)
    rec.refuse(f"{name}() of {described(value)} is called in a way that is not known", "call it outside")


_READING: Final = frozenset(
    {
        "count", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__add__", "__mul__", "__rmul__", "__or__",
        "__ror__", "__and__", "__sub__", "__xor__", "__reversed__", "__hash__", "__str__", "__repr__", "__format__",
    }
)  # fmt: skip


# Output and other effects ---------------------------------------------------------------------------------------------


def _print(rec: Recorder, *args: Any, file: Any = None, **options: Any) -> None:
    if file is None:
        if (id(vars(sys)), "stdout") in rec.effects.written:
            rec.refuse("the function puts something into sys.stdout", "do it around the call")
        is_own = _writes_by_own_code()
        rec.reach(is_own, rec.log.source(None, "{0}()", "the class of sys.stdout", is_own, (_writes_by_own_code,)))
        if is_own:
            rec.refuse("sys.stdout is an object with a write() of its own", "print outside of the compiled function")
    texts = tuple([operators.text(rec, str, x) for x in args])
    if file is not None and rec.source_of(file) is None:
        if type(file) is not io.StringIO:
            rec.refuse("print() writes to a file that the function made", "make the file outside, or join the texts")
        print(*map(rec.concrete_number, texts), file=file, **{k: rec.concrete_number(v) for k, v in options.items()})
        return
    if file is not None and (not isinstance(file, io.IOBase) or own_method(type(file), "write")):
        rec.refuse_value(file, "print()")
    rec.effects.show(Printing(), file, (texts, options), "print()")


def _writes_by_own_code() -> bool:
    """Return whether ``sys.stdout`` only looks like a file. Those of notebooks and test runners inherit from ``io``."""
    out = sys.stdout
    return is_python_class(type(out)) and not isinstance(out, io.IOBase)


def _written(rec: Recorder, file: Any, text: Any) -> Any:
    """``file.write(text)`` happens at each call, as ``print`` does."""
    if rec.source_of(file) is None:
        return file.write(rec.concrete_number(text))
    rec.effects.show(CallingMethod(type(file).write), file, ([text], {}), f"{rec.source_of(file)}.write()")
    return len(text)


def _flushed(rec: Recorder, file: Any) -> None:
    if rec.source_of(file) is not None:
        rec.effects.record(CallingMethod(type(file).flush), file, None, ([], {}), f"{rec.source_of(file)}.flush()")


def _logging(name: str, is_method: bool) -> Rule:
    """Make the rule of a function that logs: the record is made at each call, after the program."""

    def rule(rec: Recorder, *args: Any, **options: Any) -> None:
        logger, args = (args[0], args[1:]) if is_method else (logging.root, args)
        level, args = (rec.concrete_number(args[0]), args[1:]) if name == "log" else (_LEVELS[name], args)
        if options or type(level) is not int or not args:
            rec.refuse("a log record is made with options or without a message", "log it outside of the function")
        at = rec.source_of(logger)
        state = rec.log.source(at, "{0}({p}, {1})" if at else "{0}({2}, {1})", "how a logger is set up", MISSING,
                               (_logs, rec.constant(level), logger))  # fmt: skip
        is_enabled = _logs(logger, level)
        rec.reach(is_enabled, state)
        if is_enabled is None:
            rec.refuse("a log record goes to a handler or filter of your own", "log it outside of the function")
        if is_enabled:
            texts = [x if numbers.is_number(x) else operators.text(rec, str, x) for x in args]
            frame = rec.frame()
            place = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame else ("", 0, "")
            target = None if at is None else logger
            rec.effects.show(lambda to, _, what: _tell(to, level, place, *what), target, texts, "logging")

    return rule


def _logs(logger: Any, level: int) -> bool | None:
    """Return whether a logger takes a level, or None if code of the user's sees the record."""
    if not logger.isEnabledFor(level):
        return False
    while logger is not None:
        for handler in (*logger.handlers, *logger.filters):
            parts = (handler, getattr(handler, "formatter", None), *getattr(handler, "filters", ()))
            names = [type(x).__module__.partition(".")[0] for x in parts if x is not None]
            if any(name not in sys.stdlib_module_names and name != "_pytest" for name in names) or "__main__" in names:
                return None
        logger = logger.parent if logger.propagate else None
    return True


def _tell(logger: Any, level: int, place: tuple[str, int, str], message: Any, *args: Any) -> None:
    """Make a log record that names the observed line."""
    if logger is None and not logging.root.handlers:
        logging.basicConfig()
    logger = logging.root if logger is None else logger
    file, line, function = place
    logger.handle(logger.makeRecord(logger.name, level, file, line, message, args, None, function))


def _context(rec: Recorder, variable: ContextVar[Any], *default: Any) -> Any:
    """``variable.get()``: the guard asks again."""
    at, value = rec.source_of(variable), variable.get(MISSING)
    if at is not None:
        rec.reach(value, rec.log.source(at, "{p}.get(MISSING)", f"{at}.get()", value))
    return variable.get(*default) if value is MISSING else value


_LEVELS: Final = {n: getattr(logging, n.upper()) for n in ("debug", "info", "warning", "error", "critical")}


def _get_logger(rec: Recorder, name: Any = None) -> Any:
    name = rec.concrete_number(name)
    logger, label = logging.getLogger(name), f"logging.getLogger({name!r})"
    return rec.reach(logger, rec.log.source(None, "{0}({1})", label, logger, (logging.getLogger, rec.constant(name))))


def _deepcopy(rec: Recorder, value: Any, memo: Any = None) -> Any:
    if rec.policy.copies_itself(type(value)):
        copy.deepcopy(value)  # raises where it makes Parameters
    return copy.deepcopy(content(rec, value))


_FRAME: Final = "write the names out, or do it outside of the function"
_WARN: Final = vars(__import__("_warnings"))["warn"]
ROWS: Final[tuple[tuple[Rule, tuple[Any, ...]], ...]] = (
    (attributes.read_or, (getattr,)),
    (_hasattr, (hasattr,)),
    (attributes.write, (setattr,)),
    (attributes.delete, (delattr,)),
    (attributes.write_plain, (object.__setattr__,)),
    (attributes.delete_plain, (object.__delattr__,)),
    (lambda rec, value, name: attributes.generic(rec, value, name, use_hook=False), (object.__getattribute__,)),
    (_isinstance, (isinstance,)),
    (_issubclass, (issubclass,)),
    (_type, (type,)),
    (_vars, (vars,)),
    (_id, (id,)),
    (_hash, (hash,)),
    (_callable, (callable,)),
    (lambda rec, value: rec.hooks.length(value), (len,)),
    (lambda rec, *value: rec.hooks.truth(value[0]) if value else False, (bool, operator.truth)),
    (lambda rec, value: not rec.hooks.truth(value), (operator.not_,)),
    (lambda rec, a, b: rec.hooks.identity(False, a, b), (operator.is_,)),
    (lambda rec, a, b: rec.hooks.identity(True, a, b), (operator.is_not,)),
    (lambda rec, value, key: rec.hooks.get_item(value, key), (operator.getitem,)),
    (lambda rec, target, key, value: rec.hooks.set_item(value, target, key), (operator.setitem,)),
    (lambda rec, target, key: rec.hooks.delete_item(target, key), (operator.delitem,)),
    (lambda rec, value, key: rec.hooks.contains(False, key, value), (operator.contains,)),
    *[((lambda rec, a, b, s=s: rec.hooks.binary(s, a, b)), (f,)) for s, f in operators.OPERATORS.items()],
    *[((lambda rec, a, b, s=s: operators.compare(rec, s, a, b)), (f,)) for s, f in operators.COMPARISONS.items()],
    *[((lambda rec, a, s=s: rec.hooks.unary(s, a)), (f,)) for s, f in operators.UNARY.items()],
    *[(_text(f), (f,)) for f in (str, repr, ascii)],
    (_format, (format,)),
    (_converted(int, "__int__", "__index__", "__trunc__"), (int,)),
    (_converted(float, "__float__", "__index__"), (float,)),
    (_converted(complex, "__complex__"), (complex,)),
    (_converted(abs, "__abs__"), (abs,)),
    (_converted(round, "__round__"), (round,)),
    (_sum, (sum,)),
    (_extreme(min, "<"), (min,)),
    (_extreme(max, ">"), (max,)),
    (_next, (next,)),
    (_iter, (iter,)),
    *[(_over(f), (f,)) for f in (zip, math.fsum, math.prod)],
    (_over(enumerate, 1), (enumerate,)),
    *[(_calling(f), (f,)) for f in (map, filter, itertools.starmap)],
    *[(_iterator(f), (f,)) for f in vars(itertools).values() if isinstance(f, type) and f is not itertools.starmap],
    (_any, (any,)),
    (_all, (all,)),
    (_reversed, (reversed,)),
    (_reduce, (functools.reduce,)),
    (_sorted, (sorted,)),
    *[(_sequence(f), (f,)) for f in (list, tuple, deque)],
    *[(_set(f), (f,)) for f in (set, frozenset)],
    *[(_dict(f), (f,)) for f in (dict, OrderedDict, defaultdict)],
    (_print, (print,)),
    *[(_logging(name, True), (getattr(logging.Logger, name),)) for name in (*_LEVELS, "log")],
    *[(_logging(name, False), (getattr(logging, name),)) for name in (*_LEVELS, "log")],
    (_get_logger, (logging.getLogger,)),
    (_deepcopy, (copy.deepcopy,)),
    (lambda rec, *args: object.__new__(args[0]), (object.__new__,)),
    (lambda rec, *args: None, (object.__init__, object.__init_subclass__)),
    *[(_given(f), (f,)) for f in (json.dumps, json.loads, os.fspath, *[getattr(re, n) for n in re.__all__ if n.islower()
      and type(getattr(re, n)) is FunctionType and n not in ("template", "purge")])],
    *[(_refusing(f"{f.__name__}() looks at the frame or runs a text", _FRAME), (f,))
      for f in (locals, globals, eval, exec, dir, compile, __import__, breakpoint)],
    (_refusing("a class is made in the function", "define it outside"), (builtins.__build_class__,)),
    (_refusing("a file is read or written", "do it outside of the compiled function"), (open, input)),
    (_refusing("a warning is given", "warn outside of the compiled function"), (_WARN,)),
)  # fmt: skip
_PURE: Final = (
    *[f for m in (math, operator) for f in vars(m).values() if type(f) is BuiltinFunctionType],
    sys.intern, sys.exc_info, sys.exception, bin, chr, oct, ord, hex, divmod, pow, str.maketrans, os.getpid,
)  # fmt: skip
_PURE_CLASSES: Final = (range, slice, bytes, bytearray, datetime.date, datetime.datetime, datetime.timedelta)
_STORING: Final = (functools.partial, MethodType, types.SimpleNamespace, property, staticmethod, classmethod, object)


_CONSTANTS: Final = (
    operator.attrgetter, operator.itemgetter, operator.methodcaller, ContextVar, types.UnionType, types.GenericAlias,
)  # fmt: skip


def _check_constant(rec: Recorder, value: Any, source: Source) -> None:
    """Require the same object at later calls. The guard holds it, because it cannot tell of its death."""
    rec.log.check(source, "{v} is not {0}", f"which object {source} is", (value,))


class Policy:
    """The rules of a run. Packages with arrays of their own inherit from it."""

    def __init__(self) -> None:
        self.rules: dict[int, Rule] = {id(f): rule for rule, functions in ROWS for f in functions}
        for function in _PURE:
            self.rules.setdefault(id(function), _given(function))

    # Values -----------------------------------------------------------------------------------------------------------

    def leaf(self, kind: type) -> Any:
        """Return how a value of this kind is checked where it is first found; None: by its type."""
        return _check_constant if kind in _CONSTANTS else None

    def is_symbolic(self, rec: Recorder, kind: type, source: Source) -> bool:
        """Return whether a number that is read here may differ at later calls."""
        return False

    def is_fixed_class(self, kind: type) -> bool:
        """Return whether a Python class counts as one that never changes."""
        return False

    def takes_floats(self, symbol: str, value: Any) -> bool:
        """Return whether an operator treats an int beside ``value`` like the float of that int."""
        return False

    def integer_beside(self, rec: Recorder, symbol: str, value: Any, other: Any) -> Any:
        """Return the operand in place of an int that may differ at later calls, beside ``other``; None for the int."""
        return None

    def is_transparent(self, kind: type) -> bool:
        """Return whether objects of this class behave like those of its base."""
        return False

    def on_fixed_attribute(self, rec: Recorder, kind: type, name: str) -> Source | None:
        """Return where later calls find an attribute that somebody else gave to a fixed class."""
        return None

    def on_absent_attribute(self, rec: Recorder, kind: type, name: str) -> None:
        """No class in the order of ``kind`` holds an attribute."""

    def advances_version(self, kind: type) -> bool:
        """Return whether setting an attribute of such an object advances the state version."""
        return False

    def changes_by_version(self, value: Any) -> bool:
        """Return whether what is checked of a value changes only with the state version."""
        return False

    def pinned_key(self, rec: Recorder, key: Any) -> bool:
        """Return whether containers find ``key`` by identity. Later calls must then find the same object."""
        if is_found_by_identity(key):
            rec.pinned(key)
            return True
        return False

    def counts_by_identity(self, function: FunctionType) -> bool:
        """Return whether a function runs unobserved, so that another one of the same code is another function."""
        return False

    def kind_of(self, value: Any) -> Any:
        """Return what ``type(value)`` gives."""
        return SYMBOLIC.get(type(value), type(value))

    def operator(self, kind: type, other: type) -> Any:
        """Return how operators on such values are applied; None: by the rules for Python's objects."""
        return None

    def item(self, kind: type) -> Any:
        """Return how items of such values are read and written; None: by the rules for Python's objects."""
        return None

    def attribute(self, kind: type, name: str) -> Any:
        """Return how an attribute of such values is read; None: by the rules for Python's objects."""
        return None

    def shows_unknown(self, text: str) -> bool:
        """Return whether a text shows a tensor that has no value yet."""
        return False

    def shown(self, rec: Recorder, value: Any) -> Any:
        """Return a value whose text is made by C code."""
        if issubclass(type(value), BaseException):
            content(rec, rec.hooks.load_attr("args", value))
            return value
        return content(rec, value)

    def context_manager(self, kind: type) -> bool:
        """Return whether a ``with`` block of such an object of C code can be repeated."""
        return False

    def result(self, kind: type) -> Any:
        """Return how such a value that leaves the run is made at later calls; None: by the rules for Python's."""
        return None

    def copies_itself(self, kind: type) -> bool:
        """Return whether a Python class copies its objects unobserved."""
        return False

    def is_readable(self, kind: type) -> bool:
        """Return whether a guard may read attributes of an object of C code again."""
        return kind in _VALUES or kind in _STORING or issubclass(kind, BaseException) or kind is types.UnionType

    def look_into(self, rec: Recorder, value: Any, source: Source | None) -> None:
        """C code is given a value that is neither plain nor a container. Most are refused."""
        kind = type(value)
        if kind in _VALUES or kind in (types.GenericAlias, types.UnionType):
            if source is not None:
                rec.log.check(source, "{v} is not {0} and {v} != {0}", f"value of {source}", (value,))
        elif issubclass(kind, enum.Enum):
            rec.pinned(value)
        elif issubclass(kind, BaseException) and not is_python_class(kind):
            content(rec, rec.hooks.load_attr("args", value))
        elif kind is not object and type(value) is not io.StringIO:
            rec.refuse_value(value, "C code")

    def is_constant(self, value: Any) -> bool:
        """Return whether an object of C code never changes, so that it can leave the run as it is."""
        return type(value) in _VALUES

    # Code -------------------------------------------------------------------------------------------------------------

    def is_library(self, module: str) -> bool:
        """Return whether a module is Python's own library: refusals name the line that called it."""
        return str(module).partition(".")[0] in sys.stdlib_module_names and module != "__main__"

    def native(self, function: FunctionType) -> Any:
        """Return how a Python function that runs unobserved is called; None: it is observed."""
        module = function.__module__ or ""
        if module in ("random", "weakref", "_weakrefset") or module.startswith("numpy.random"):
            return lambda rec, function, args, kwargs: self.refuse_c(rec, function)
        return None

    def native_class(self, kind: type) -> Any:
        """Return how a Python class whose objects are made unobserved is called; None: observed."""
        return None

    def callable(self, kind: type) -> Any:
        """Return how such an object is called; None: by its ``__call__``."""
        return None

    def refuse_c(self, rec: Recorder, function: Any) -> NoReturn:
        """Refuse a function written in C that has no row."""
        owner = getattr(function, "__self__", None)
        module = getattr(function, "__module__", None) or type(owner or function).__module__ or ""
        name = getattr(function, "__qualname__", type(function).__name__)
        if function is os.urandom:
            rec.refuse("random bytes of the system are drawn (urandom)", "pass them as an argument")
        if getattr(function, "__name__", "") in ("now", "today", "utcnow"):
            module = "time"
        if type(owner).__name__ == "Random" or type(owner).__module__.startswith("numpy.random"):
            module = "random" if type(owner).__name__ == "Random" else "numpy.random"
        for known, (reason, remedy) in _REFUSED.items():
            if module == known or module.startswith(known + "."):
                rec.refuse(f"{reason} ({name})", remedy)
        if owner is not None and type(owner) is not ModuleType and not is_class(owner):
            source = rec.source_of(owner)
            name = f"{function.__name__}() of {described(owner)}{f' ({source})' if source is not None else ''}"
        else:
            name = f"{module}.{name}()" if module and module != "builtins" else f"{name}()"
        rec.refuse(f"{name} is written in C, and what it reads is not known", OUTSIDE)

    def c_function(self, rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Return what to call in place of a function of a C module that has no row."""
        self.refuse_c(rec, function)

    def c_class(self, rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Return what to call in place of a C class that has no row."""
        if kind in _STORING or issubclass(kind, BaseException):
            return kind, args, kwargs
        if kind in _PURE_CLASSES:
            return returning(_given(kind)(rec, *args, **kwargs))
        self.refuse_c(rec, kind)

    def method(self, rec: Recorder, value: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Return what to call in place of a method written in C."""
        kind, name = type(value), function.__name__
        if is_class(value):
            return self._class_method(rec, value, function, args, kwargs)
        if kind in PLAIN or kind in SYMBOLIC:
            if issubclass(kind, str) and name in ("join", "format"):
                return returning({"join": _join, "format": _str_format}[name](rec, value, *args, **kwargs))
            plain = rec.concrete_number(value)
            return returning(_given(getattr(plain, name))(rec, *args, **kwargs))
        special = _OF_OBJECTS.get(name)
        is_attribute = name in ("__setattr__", "__delattr__", "__getattribute__")
        has_own = container_of(kind) is not None or issubclass(kind, BaseException)
        if special is not None and (is_attribute or not has_own):
            return returning(special(rec, value, *args))
        if container_of(kind) is not None:
            return returning(_container_method(rec, value, name, args, kwargs))
        if kind in ITERATORS or kind in DICT_VIEWS or issubclass(kind, BaseException):
            if rec.source_of(value) is None and name not in ("__reduce__", "__setstate__"):
                return function, tuple(map(rec.concrete_number, args)), kwargs
            content(rec, value)
        if kind is FunctionType and name in ("__get__", "__call__"):
            return rec.prepared(value, args, kwargs) if name == "__call__" else returning(value.__get__(*args))
        if kind is property and name in ("__get__", "__set__"):
            accessor = value.fget if name == "__get__" else value.fset
            return rec.prepared(accessor, args[:1] if name == "__get__" else args, {})
        if kind in (io.StringIO, io.TextIOWrapper) and name in ("write", "flush"):
            return returning((_written if name == "write" else _flushed)(rec, value, *args))
        if kind is ContextVar and name == "get":
            return returning(_context(rec, value, *args))
        if kind in _VALUES or (kind is io.StringIO and rec.source_of(value) is None):
            content(rec, value)
            return returning(_given(function)(rec, *args, **kwargs))
        self.refuse_c(rec, function)

    def _class_method(
        self, rec: Recorder, kind: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Call:
        """Return what to call in place of a method of a class written in C."""
        name = function.__name__
        if name == "__call__":
            return rec.prepared(kind, args, kwargs)
        if name == "__new__" and args and not issubclass(args[0], type):
            if args[0] is object or container_of(args[0]) in (list, dict, set) or not args[1:]:
                return function, args[:1], {}
            if issubclass(args[0], tuple):
                return function, (args[0], tuple(rec.hooks.spread(args[1]))), {}
            if issubclass(args[0], BaseException):
                return function, args, kwargs
            return function, (args[0], *[content(rec, x) for x in args[1:]]), kwargs
        if name in ("__init_subclass__", "mro", "__or__", "__ror__", "__class_getitem__", "__getitem__"):
            return function, args, kwargs
        if name == "__setattr__":
            return returning(attributes.write_plain(rec, kind, *args))
        if name in ("__instancecheck__", "__subclasscheck__"):
            check = _isinstance if name == "__instancecheck__" else _issubclass
            return returning(check(rec, args[0], kind))
        if name == "fromkeys":
            value = args[1] if len(args) > 1 else None
            parts = [x for key in rec.hooks.iterate(args[0]) for x in (key, value)]
            return returning(kind(rec.hooks.build_map(tuple(parts))))
        if name == "from_iterable":
            return returning(function(map(rec.hooks.iterate, rec.hooks.iterate(args[0]))))
        if name in ("fromhex", "from_bytes", "maketrans", "fromisoformat", "strptime"):
            return returning(_given(function)(rec, *args, **kwargs))
        self.refuse_c(rec, function)


_OF_OBJECTS: Final[dict[str, Rule]] = {
    "__setattr__": attributes.write_plain,
    "__delattr__": attributes.delete_plain,
    "__getattribute__": lambda rec, value, name: attributes.generic(rec, value, name, use_hook=False),
    "__init__": lambda rec, value, *args: None,
    "__init_subclass__": lambda rec, value, *args: None,
    "__eq__": lambda rec, a, b: rec.hooks.identity(False, a, b) or NotImplemented,
    "__ne__": lambda rec, a, b: rec.hooks.compare(("!=", True), a, b),
    "__hash__": _hash,
    "__str__": lambda rec, value: operators.text(rec, repr, value),
    "__repr__": _refusing("the text of an object shows its address", "give its class a __repr__"),
    "__format__": lambda rec, value, spec: operators.formatted(rec, 0, operators.text(rec, str, value), spec),
}
