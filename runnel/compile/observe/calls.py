"""Dispatch of calls: the twin of a Python function, the rule of a C function, or a refusal."""

from __future__ import annotations

import functools
import inspect
import operator
import types
import weakref
from types import FunctionType, MethodType
from typing import Any, Final

from runnel.compile.observe import attributes, numbers
from runnel.compile.observe.attributes import reach_parts
from runnel.compile.observe.containers import content
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.rewriting import ASYNCHRONOUS
from runnel.compile.observe.values import (
    C_FUNCTIONS,
    MISSING,
    container_of,
    described,
    is_class,
    is_python_class,
    is_users_method,
    lookup,
)

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]  # a function and its arguments
_PACKAGE: Final = __name__.rpartition(".")[0]


def returning(value: Any) -> Call:
    """Return a call that gives ``value``."""
    return (value,).__getitem__, (0,), {}


def prepared(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Return what to call in place of ``function(*args, **kwargs)``."""
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
        return _class(rec, function, args, kwargs)
    if kind in C_FUNCTIONS:
        return _c_function(rec, function, args, kwargs)
    if kind is functools.partial:
        reach_parts(rec, function, ("func", "args", "keywords"))
        if any(value is _PLACEHOLDER for value in function.args):
            rec.refuse("a partial with placeholders is called")
        return prepared(rec, function.func, (*function.args, *args), {**function.keywords, **kwargs})
    if kind in (operator.attrgetter, operator.itemgetter):
        return returning(_got(rec, function, *args))
    answer = rec.policy.callable(kind)
    if answer is not None:
        return answer(rec, function, args, kwargs)
    method = rec.class_attribute(kind, "__call__")
    if method is MISSING:
        return function, args, kwargs  # raises
    if type(method) is FunctionType:
        return prepared(rec, method, (function, *args), kwargs)
    if is_python_class(kind) and is_users_method(kind, "__call__", method):
        return prepared(rec, method.__get__(function, kind), args, kwargs)
    return rec.policy.refuse_c(rec, function)


_PLACEHOLDER: Final = getattr(functools, "Placeholder", object())  # from CPython 3.14 on


def _python(rec: Recorder, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    rule = rec.policy.rules.get(id(function))
    if rule is not None:
        return returning(rule(rec, *args, **kwargs))
    if function.__code__.co_flags & ASYNCHRONOUS:
        rec.refuse(f"{function.__qualname__} is asynchronous", "call it outside the compiled function")
    if not rec.is_own(function) and not str(function.__module__).startswith(_PACKAGE):
        native = rec.policy.native(function)
        if native is not None:
            return native(rec, function, args, kwargs)
        function = rec.twin(function)
    if not function.__code__.co_flags & inspect.CO_GENERATOR:
        return function, args, kwargs
    generator = function(*args, **kwargs)
    rec.generators.append(weakref.ref(generator))
    return returning(generator)


def _got(rec: Recorder, function: Any, value: Any) -> Any:
    """Return what ``attrgetter`` and ``itemgetter`` give."""
    parts = function.__reduce__()[1]
    if type(function) is operator.itemgetter:
        results = [rec.hooks.get_item(value, key) for key in parts]
    else:
        results = [functools.reduce(lambda v, n: attributes.read(rec, v, n), name.split("."), value) for name in parts]
    return results[0] if len(results) == 1 else tuple(results)


# Classes --------------------------------------------------------------------------------------------------------------


def _class(rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Return what to call in place of ``kind(*args, **kwargs)``."""
    number = numbers.called(rec, kind, args, kwargs)
    if number is not None:
        return returning(number[0])
    rule = rec.policy.rules.get(id(kind))
    if rule is not None:
        return returning(rule(rec, *args, **kwargs))
    if kind is super:
        return kind, args, kwargs
    if not is_python_class(kind):
        return rec.policy.c_class(rec, kind, args, kwargs)
    native = rec.policy.native_class(kind)
    if native is not None:
        return native(rec, kind, args, kwargs)
    if issubclass(kind, type):
        rec.refuse("a class is made in the function", "define it outside")
    own = MISSING if type(kind) is type else rec.class_attribute(type(kind), "__call__")
    if is_users_method(type(kind), "__call__", own):
        if rec.policy.is_library(type(kind).__module__) and type(own) is FunctionType:  # such as EnumType
            return prepared(rec, own, (kind, *args), kwargs)
        rec.refuse(f"{described(kind)} has a metaclass with a custom __call__", "make the object outside")
    return returning(made(rec, kind, args, kwargs))


def made(rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return an object of a Python class. Its ``__new__`` and ``__init__`` run observed."""
    if lookup(kind, "__del__") is not MISSING:
        rec.refuse(f"{described(kind)} has a __del__, which runs at an unknown time", "make the object outside")
    instance = rec.make(_new_instance(rec, kind, args, kwargs))
    if issubclass(type(instance), kind):
        method = rec.class_attribute(type(instance), "__init__")
        if is_users_method(type(instance), "__init__", method):
            if rec.passed(method, (instance, *args), kwargs) is not None:
                raise TypeError("__init__() should return None")
        elif container_of(kind) in (list, dict, set):
            method(instance, *[_poured(rec, kind, value) for value in args], **kwargs)
        elif method is not object.__init__ or lookup(kind, "__new__") is object.__new__:
            method(instance, *args, **kwargs)
    return instance


def _poured(rec: Recorder, kind: type, value: Any) -> Any:
    """Return what a container of a Python class is filled with."""
    base = container_of(kind)
    if base is dict and container_of(type(value)) is dict:
        return rec.hooks.unpack_mapping(value)
    return list(rec.hooks.iterate(value)) if base in (list, tuple) else content(rec, value)


def _new_instance(rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    new = rec.class_attribute(kind, "__new__")
    if type(new) is staticmethod:
        reach_parts(rec, new, ("__func__",))
        new = new.__func__
    if type(new) is FunctionType:
        return rec.passed(new, (kind, *args), kwargs)
    if new is object.__new__:
        return new(kind) if is_users_method(kind, "__init__", lookup(kind, "__init__")) else new(kind, *args, **kwargs)
    base = container_of(kind)
    if base in (list, dict, set):
        return new(kind)
    if base is tuple:
        return new(kind, *[_poured(rec, kind, value) for value in args])
    if issubclass(kind, BaseException):
        return new(kind, *args)
    return new(kind, *[content(rec, value) for value in args], **{n: content(rec, x) for n, x in kwargs.items()})


# C functions ----------------------------------------------------------------------------------------------------------


def _c_function(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    number = numbers.called(rec, function, args, kwargs)
    if number is not None:
        return returning(number[0])
    rule = rec.policy.rules.get(id(function))
    if rule is not None:
        return returning(rule(rec, *args, **kwargs))
    owner = getattr(function, "__self__", MISSING)  # of a bound one
    if owner is MISSING:
        if not args or not issubclass(type(args[0]), function.__objclass__):
            return function, args, kwargs  # raises
        owner, args = args[0], args[1:]
        function = function.__get__(owner, type(owner))
    elif owner is None or type(owner) is types.ModuleType:
        return rec.policy.c_function(rec, function, args, kwargs)
    else:
        at = rec.source_of(function)
        if at is not None:
            rec.reach(owner, rec.log.source(at, "{p}.__self__", f"{at}.__self__", owner))
            rec.log.check(at, "{v}.__name__ != {0}", f"name of {at}", (function.__name__,))
    return rec.policy.method(rec, owner, function, args, kwargs)
