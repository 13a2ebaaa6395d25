"""Dispatch of calls: the twin of a Python function, the recorder's own answer, or a known C function."""

from __future__ import annotations

import functools
import operator
import types
from types import FunctionType, MethodType
from typing import Any, Final

from runnel.compile.observe import attributes, methods, symbols, texts
from runnel.compile.observe.classes import MISSING, is_python_class, lookup
from runnel.compile.observe.containers import content, is_simple
from runnel.compile.observe.plain import Call, returning
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import C_FUNCTIONS, container_of, described, is_class, is_users_method

_PACKAGE: Final = __name__.rpartition(".")[0]
_LRU: Final = type(functools.lru_cache(lambda: None))
_GETTERS: Final = (operator.attrgetter, operator.itemgetter, operator.methodcaller)


def prepared(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """What to call in place of ``function(*args, **kwargs)``."""
    kind = type(function)
    if kind is FunctionType:
        return _python(rec, function, args, kwargs)
    if kind is MethodType:
        at = rec.source_of(function)
        if at is not None:
            rec.reach(function.__self__, rec.log.source(at, "{p}.__self__", f"{at}.__self__", function.__self__))
            rec.reach(function.__func__, rec.log.source(at, "{p}.__func__", f"{at}.__func__", function.__func__))
        return prepared(rec, function.__func__, (function.__self__, *args), kwargs)
    if is_class(function):
        return constructed(rec, function, args, kwargs)
    if kind in C_FUNCTIONS:
        return _c_function(rec, function, kind, args, kwargs)
    if kind is functools.partial:
        reach_parts(rec, function, ("func", "args", "keywords"))
        return prepared(rec, function.func, _filled(function.args, args), {**function.keywords, **kwargs})
    if kind is _LRU:
        return _cached(rec, function, args, kwargs)
    if kind in _GETTERS:
        return returning(_got(rec, function, *args))
    answer = rec.policy.callable(kind)
    if answer is not None:
        return answer(rec, function, args, kwargs)
    if kind in (staticmethod, types.GenericAlias):
        part = "__wrapped__" if kind is staticmethod else "__origin__"
        at = rec.source_of(function)
        inner = getattr(function, part)
        if at is not None:
            rec.reach(inner, rec.log.source(at, f"{{p}}.{part}", f"{at}", inner))
        return prepared(rec, inner, args, kwargs)
    method = rec.class_attribute(kind, "__call__")
    if method is MISSING:
        return function, args, kwargs  # raises
    if type(method) is FunctionType:
        return prepared(rec, method, (function, *args), kwargs)
    if is_python_class(kind) and is_users_method(kind, "__call__", method):
        return prepared(rec, rec.bind(method, function, kind), args, kwargs)
    rec.refuse(f"{described(function)} is called, and nobody knows what that reads")


def reach_parts(rec: Recorder, value: Any, names: tuple[str, ...]) -> None:
    """What an object of C code is made of, which attributes of it give."""
    at = rec.source_of(value)
    if at is None:
        return
    for name in names:
        part = getattr(value, name)
        rec.reach(part, rec.log.source(at, f"{{p}}.{name}", f"{at}.{name}", part))
        if container_of(type(part)) is not None:
            content(rec, part)


def _python(rec: Recorder, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    answer = rec.policy.answers.get(id(function))
    if answer is not None:
        if id(function) not in rec.policy.passing_on:
            _look_at_numbers(rec, args, kwargs)
            texts.look_at(rec, *args, *kwargs.values())
        return returning(answer(rec, *args, **kwargs))
    answer = rec.policy.answers_by_code.get(id(function.__code__))
    if answer is not None:
        return returning(answer(rec, *args, **kwargs))
    if rec.is_own(function) or str(function.__module__).startswith(_PACKAGE):
        return function, args, kwargs
    native = rec.policy.native(function)
    if native is not None:
        texts.look_at(rec, *args, *kwargs.values())
        return native(rec, function, args, kwargs)
    return rec.twin(function), args, kwargs


def _cached(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """``lru_cache``: a guard calls it again, which gives what is in the cache; where nothing is, it computes what the
    call itself would have computed now."""
    at = rec.source_of(function)
    if at is None:
        return function, args, kwargs
    if not all(map(is_simple, (*args, *kwargs.values()))):
        rec.refuse(f"{function.__qualname__} keeps results for objects", "call it outside and pass what it gives")
    if rec.effects.done:
        rec.refuse(
            f"{function.__qualname__}, which keeps results, is called after something was changed", "call it before"
        )
    _look_at_numbers(rec, args, kwargs)
    with rec.session.apart(rec):
        result = function(*args, **kwargs)
    rec.session.found(rec, result)
    constants = (rec.constant(args), rec.memo.setdefault(("named", id(function), args), kwargs))
    source = rec.log.source(at, "{p}(*{0}, **{1})", f"{function.__qualname__}()", result, constants)
    return returning(rec.reach(result, source))


def _got(rec: Recorder, function: Any, value: Any) -> Any:
    """What ``attrgetter``, ``itemgetter`` and ``methodcaller`` give."""
    _, parts = function.__reduce__()[:2]
    if type(function) is operator.itemgetter:
        results = [rec.hooks.get_item(value, key) for key in parts]
    elif type(function) is operator.attrgetter:
        results = [functools.reduce(lambda v, n: attributes.read(rec, v, n), name.split("."), value) for name in parts]
    else:
        reduced = function.__reduce__()
        if reduced[0] is operator.methodcaller:
            return rec.invoke(attributes.read(rec, value, parts[0]), tuple(parts[1:]))
        name = reduced[0].args[0]  # with keywords it is a partial
        return rec.invoke(attributes.read(rec, value, name), tuple(parts), reduced[0].keywords)
    return results[0] if len(results) == 1 else tuple(results)


# Classes --------------------------------------------------------------------------------------------------------------


_PLACEHOLDER: Final = getattr(functools, "Placeholder", object())  # there is one from CPython 3.14 on


def _filled(held: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The positional arguments of a partial's function."""
    places = sum(value is _PLACEHOLDER for value in held)
    if len(args) < places:
        raise TypeError(f"missing positional arguments in 'partial' call; expected at least {places}, got {len(args)}")
    given = iter(args)
    return (*[next(given) if value is _PLACEHOLDER else value for value in held], *given)


def constructed(
    rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any], by_metaclass: bool = True
) -> Call:
    """``kind(*args, **kwargs)``, as ``type.__call__`` does it."""
    if rec.symbols and not is_python_class(kind):
        number = symbols.called(rec, kind, args, kwargs)
        if number is not None:
            return returning(number[0])
        if kind is not type and id(kind) not in rec.policy.passing_on:
            _look_at_numbers(rec, args, kwargs)
    if kind is type and len(args) == 3:
        return returning(rec.makes_class(type, args, kwargs))
    if id(kind) in texts.LETTERS:
        texts.look_at(rec, *args)
    answer = rec.policy.answers.get(id(kind))
    if answer is not None:
        return returning(answer(rec, *args, **kwargs))
    if kind is super:
        return kind, args, kwargs
    if not is_python_class(kind):
        if not issubclass(kind, BaseException):
            texts.look_at(rec, *args)
        return rec.policy.c_class(rec, kind, args, kwargs)
    native = rec.policy.native_class(kind)
    if native is not None:
        return native(rec, kind, args, kwargs)
    if by_metaclass and type(kind) is not type:
        own = rec.class_attribute(type(kind), "__call__")
        if type(own) is FunctionType:
            return prepared(rec, own, (kind, *args), kwargs)
        if is_users_method(type(kind), "__call__", own):
            return prepared(rec, rec.bind(own, kind, type(kind)), args, kwargs)
    return returning(made(rec, kind, args, kwargs))


def made(rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An object of a class that was made in Python: its ``__new__`` and ``__init__`` run observed."""
    if lookup(kind, "__del__") is not MISSING:
        rec.refuse(f"{described(kind)} has a __del__, which runs when nobody knows")
    instance = _new_instance(rec, kind, args, kwargs)
    if issubclass(type(instance), kind):
        method = rec.class_attribute(type(instance), "__init__")
        if not is_users_method(type(instance), "__init__", method):
            if method is not object.__init__ or lookup(kind, "__new__") is object.__new__:
                values = [_iterable(rec, value) for value in args] if container_of(kind) else args
                method(instance, *values, **kwargs)
        elif rec.invoke_special(method, instance, args, kwargs) is not None:
            raise TypeError("__init__() should return None")
    return instance


def _iterable(rec: Recorder, value: Any) -> Any:
    return rec.hooks.unpack(value) if container_of(type(value)) or is_python_class(type(value)) else content(rec, value)


def _new_instance(rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    new = rec.class_attribute(kind, "__new__")
    if type(new) is staticmethod:
        inner = new.__func__
        at = rec.source_of(new)
        if at is not None:
            rec.reach(inner, rec.log.source(at, "{p}.__func__", f"{at}", inner))
        return rec.invoke(inner, (kind, *args), kwargs)
    if type(new) is FunctionType:
        return rec.invoke(new, (kind, *args), kwargs)
    if new is not object.__new__:
        if container_of(kind) in (tuple, frozenset):
            args = tuple([_iterable(rec, value) for value in args])
        for value in (*args, *kwargs.values()):
            content(rec, value)
        if container_of(kind) in (list, dict, set):
            args, kwargs = (), {}
    return new(kind, *args, **kwargs)


# C functions ----------------------------------------------------------------------------------------------------------


def _c_function(rec: Recorder, function: Any, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    texts.given(rec, function, args, kwargs)
    if rec.symbols:
        number = symbols.called(rec, function, args, kwargs)
        if number is not None:
            return returning(number[0])
        if id(function) not in rec.policy.passing_on:
            seen = len(args) - symbols.unseen(function, args)
            args = (*map(rec.concrete_number, args[:seen]), *args[seen:])
            if function.__name__ not in symbols.MERGES:
                kwargs = {name: rec.concrete_number(value) for name, value in kwargs.items()}
    answer = rec.policy.answers.get(id(function)) or rec.policy.answers_by_key.get(_key(function))
    if answer is not None:
        return returning(answer(rec, *args, **kwargs))
    owner = getattr(function, "__self__", MISSING)  # of a bound one
    if owner is not MISSING:
        if owner is None or type(owner) is types.ModuleType:
            return rec.policy.c_function(rec, function, args, kwargs)
        at = rec.source_of(function)
        if at is not None:
            rec.reach(owner, rec.log.source(at, "{p}.__self__", f"{at}.__self__", owner))
        return methods.call(rec, owner, function.__name__, function, args, kwargs)
    if not args or not issubclass(type(args[0]), function.__objclass__):
        return function, args, kwargs  # raises
    return methods.call(rec, args[0], function.__name__, function, args[1:], kwargs, function.__objclass__)


def _look_at_numbers(rec: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """C code and answers look at the numbers they are given."""
    for value in (*args, *kwargs.values()):
        rec.concrete_number(value)


def _key(function: Any) -> Any:
    """Names a C function that is made anew at each access: a built-in class method or ``__new__``."""
    owner = getattr(function, "__self__", None)
    return (id(owner), function.__name__) if is_class(owner) else None


# Running from hooks ---------------------------------------------------------------------------------------------------


def invoke(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function, observed."""
    function, args, kwargs = prepared(rec, function, args, kwargs)
    return function(*args, **kwargs)
