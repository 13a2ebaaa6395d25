"""The policy for code that cannot be observed: pure C functions, state that guards can check, and trusted packages.
Whatever is not known here ends the observation."""

from __future__ import annotations

import bisect
import builtins
import collections
import contextvars
import copy
import datetime
import enum
import fractions
import functools
import heapq
import io
import itertools
import json
import math
import operator
import os
import posixpath
import random
import re
import sys
import threading
import types
import typing
import uuid
import weakref
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

from runnel.compile.observe import (
    answers,
    calls,
    containers,
    contexts,
    followed,
    iteration,
    lifetimes,
    proxies,
    records,
    symbols,
    warned,
)
from runnel.compile.observe.changes import CallingMethod
from runnel.compile.observe.classes import MISSING, instance_dict, is_python_class, lookup, mro
from runnel.compile.observe.methods import called_back
from runnel.compile.observe.plain import returning
from runnel.compile.observe.recorder import AbstractPolicy, Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import (
    BOUND,
    CONTAINERS,
    PLAIN,
    SYMBOLIC,
    VIEWS,
    container_of,
    described,
    is_class,
)

Answer = Callable[..., Any]

# C functions of these modules that depend on what they are given alone.
_WARN: Final = vars(__import__("_warnings"))["warn"]
_PURE_MODULES: Final = (math, operator, itertools)
_PURE: Final = (
    functools.reduce, bisect.bisect, bisect.bisect_left, bisect.bisect_right, sys.intern,
    sys.exc_info, sys.exception, bin, chr, oct, ord, hex, divmod, pow, abs, round, str.maketrans, bytes.maketrans,
    bytearray.maketrans,
)  # fmt: skip
_TEXTS_OF_PATHS: Final = ("_path_normpath", "_path_splitroot_ex")  # in C in some versions of Python
# Classes of C code whose objects hold what they are given.
_PURE_CLASSES: Final = (
    object, range, slice, property, staticmethod, classmethod, memoryview, functools.partial, collections.OrderedDict,
    collections.defaultdict, types.SimpleNamespace, types.MappingProxyType, types.FunctionType, types.MethodType,
    types.CellType, types.GenericAlias, operator.attrgetter, operator.itemgetter, operator.methodcaller,
    datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone, type(None), weakref.ref,
    io.StringIO, io.BytesIO,
)  # fmt: skip
# Methods of C objects that depend on the object and the arguments alone, and attributes that are read again.
_HASHES: Final = (object.__hash__, enum.Enum.__hash__)  # of objects that are equal to themselves alone
_VALUES: Final = frozenset(
    {
        datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone, re.Pattern, re.Match,
        uuid.UUID, fractions.Fraction, types.SimpleNamespace, functools.partial, memoryview, types.UnionType,
    }
)  # fmt: skip
# How many of their first arguments C functions iterate over.
_ITERATED: Final = {math.fsum: 1, math.prod: 1, math.dist: 2, operator.countOf: 1, operator.indexOf: 1} | (
    {math.sumprod: 2} if hasattr(math, "sumprod") else {}
)
# What C functions change: their first argument.
_CHANGE_FIRST: Final = {
    heapq.heappush, heapq.heappop, heapq.heapify, heapq.heappushpop, heapq.heapreplace, bisect.insort,
    bisect.insort_left, bisect.insort_right,
} | {f for n, f in vars(heapq).items() if n.endswith("_max") and type(f) is BuiltinFunctionType}  # fmt: skip
# State that a guard asks for again.
_READ_AGAIN: Final = (
    os.getcwd,
    os.getpid,
    threading.get_ident,
    sys.getrecursionlimit,
    os.cpu_count,
    sys.getdefaultencoding,
)
_NOT_REPEATED: Final = {
    "time": ("a clock is read", "read it around the call of the compiled function, or pass the time as an argument"),
    "lock": (
        "a lock is taken, as queues and events of the library do, too",
        "take it around the call of the compiled function, or use a list or deque",
    ),
    "random": ("Python's random numbers are drawn", "use rn.rand or rn.randint, or pass the number as an argument"),
    "numpy.random": ("NumPy's random numbers are drawn", "use rn.rand or rn.randn, or pass the array as an argument"),
    "posix": ("the file system is asked", "read it outside and pass the result as an argument"),
    "io": ("a file is read or written", "do it outside of the compiled function"),
    "_io": ("a file is read or written", "do it outside of the compiled function"),
}


OUTSIDE: Final = (
    "call it outside and pass the result as an argument, or by rn.pure_callback if it depends on its arguments alone; "
    "rn.uncompiled says that it is meant to run eagerly"
)


class Policy(AbstractPolicy):
    """What a recorder asks about code it cannot observe. Packages with arrays of their own inherit from it."""

    plain = PLAIN

    def __init__(self) -> None:
        self.answers: answers.Answers = answers.table()
        self.answers_by_key: dict[Any, Answer] = {}
        self.answers_by_code: dict[int, Answer] = {id(_REPLACE): _replaced}
        self.pure: set[int] = {id(f) for f in _PURE}
        for module in _PURE_MODULES:
            self.pure |= {id(f) for f in vars(module).values() if type(f) is BuiltinFunctionType}
        self.pure |= {id(f) for f in vars(posixpath).values() if getattr(f, "__name__", "") in _TEXTS_OF_PATHS}
        self._pure_classes = {id(kind) for kind in _PURE_CLASSES}
        for space in (vars(itertools), vars(builtins)):
            for kind in space.values():
                if isinstance(kind, type) and (space is vars(itertools) or issubclass(kind, BaseException)):
                    self._pure_classes.add(id(kind))
        self.answers |= {id(f): _changing_first(f) for f in _CHANGE_FIRST}
        self.answers |= {id(f): _reading_again(f) for f in _READ_AGAIN}
        self.answers |= {id(os.fspath): _fspath, id(copy.deepcopy): _deepcopy}
        self.answers[id(vars(collections)["_count_elements"])] = _count_elements
        self.answers[id(functools.cmp_to_key)] = lambda rec, mycmp: functools.cmp_to_key(rec.judged(mycmp))
        self.answers |= {id(functools.reduce): _reduce, id(_WARN): warned.warn}
        self.answers |= {id(f): _pure_function(f) for f in _pure_python_functions()}
        self.answers |= records.table() | {id(filter): iteration.filtered}
        told = (print, _WARN, isinstance, callable, hasattr, dict)
        self.passing_on = frozenset(map(id, told)) | records.deferred().keys() | set(map(id, _CHANGE_FIRST))

    # Kinds of values ------------------------------------------------------------------------------------------------

    def leaf(self, kind: type) -> Any:
        return check_constant if kind in _COUNTS_BY_IDENTITY else None

    def is_pinned_key(self, rec: Recorder, key: Any) -> bool:
        kind = type(key)
        by_identity = lookup(kind, "__eq__") is object.__eq__ and lookup(kind, "__hash__") in _HASHES
        if rec.source_of(key) is None or not by_identity:
            return False
        rec.pinned(key)
        return True

    def callable(self, kind: type) -> Any:
        """How such an object is called; None: by its ``__call__``."""
        return _CALLABLES.get(kind)

    def is_readable(self, kind: type, name: str) -> bool:
        """Whether a guard may read an attribute of an object of C code again."""
        return (
            kind in _VALUES
            or name in BOUND.get(kind, ())
            or issubclass(kind, BaseException)
            or kind in (property, classmethod, staticmethod, weakref.ref)
        )

    def look_into(self, rec: Recorder, value: Any, source: Source | None) -> None:
        """C code looks into an object that is no container."""
        kind = type(value)
        if kind in (datetime.date, datetime.time, datetime.datetime, datetime.timedelta, re.Pattern, uuid.UUID):
            if source is not None:
                rec.log.check(source, "{v} is not {0} and {v} != {0}", f"value of {source}", (value,))
            return
        if kind in BOUND:  # equal to others by which object it belongs to
            for name in BOUND[kind]:
                rec.pinned(rec.hooks.load_attr(name, value))
            return
        if source is None or kind is object or kind in _OPAQUE_BUT_FIXED:
            return
        if is_python_class(kind) and not _has_hidden_state(kind):
            return
        if kind in VIEWS or kind is memoryview:
            rec.refuse(
                f"'{source}' is {described(value)}, a view of something outside", "read what it shows, or pass a copy"
            )
        if kind in weakref.ProxyTypes:
            rec.refuse(
                f"'{source}' is a weak proxy, whose object may be gone or changed unseen",
                "hold a weakref.ref and call it, or use the object itself",
            )
        if issubclass(kind, BaseException):
            rec.pinned(value)
            containers.content(rec, rec.hooks.load_attr("args", value))
            return
        if issubclass(kind, weakref.ref):
            rec.refuse(
                f"'{source}' is a weak reference, such as WeakSet and WeakKeyDictionary hold: whether its object still "
                "lives is seen only by calling it",
                "use a dict, a set or a WeakValueDictionary, or pass what is needed as an argument",
            )
        if kind in (functools.partial, property, classmethod, staticmethod, types.GenericAlias, types.UnionType):
            rec.pinned(value) if kind not in (types.GenericAlias, types.UnionType) else None
            return
        rec.refuse(f"'{source}' is {described(value)}, whose content cannot be watched", OUTSIDE)

    def is_constant(self, value: Any) -> bool:
        """Whether an object of C code never changes, so that it can be given at each call."""
        return type(value) in _CONSTANTS

    # Code -----------------------------------------------------------------------------------------------------------

    def is_library(self, module: str) -> bool:
        """Whether a module is Python's own library: refusals name the line that called it."""
        return module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"

    def native(self, function: FunctionType) -> Any:
        """How a Python function that runs unobserved is called; None: it is observed."""
        module = function.__module__ or ""
        if function.__code__ is proxies.DISPATCH:
            return proxies.dispatched
        if function.__code__ in proxies.GUARDED_TEXTS:
            return proxies.unguarded
        if module in ("weakref", "_weakrefset"):
            return lifetimes.asking
        if module == "random" or module.startswith("numpy.random"):
            return _not_repeated
        return None

    def refuse_c(self, rec: Recorder, function: Any) -> Any:
        """A function written in C that is not known."""
        module = getattr(function, "__module__", None) or ""
        owner = getattr(function, "__self__", None)
        if getattr(function, "__name__", "") in ("now", "today", "utcnow"):
            module = "time"
        if function is os.urandom:
            rec.refuse("random bytes of the system are drawn (urandom)", "pass them as an argument")
        if type(owner) in _LOCKS:
            module = "lock"
        if type(owner) is random.Random or issubclass(type(owner), random.Random):
            module = "random"
        for name, (reason, remedy) in _NOT_REPEATED.items():
            if module == name or module.startswith(name + "."):
                rec.refuse(f"{reason} ({getattr(function, '__qualname__', function)})", remedy)
        rec.refuse(f"{_called(rec, function, module)} is written in C, and nobody knows what it reads", OUTSIDE)

    def c_function(self, rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function of a module written in C."""
        if id(function) in self.pure:
            iterated = args[: _ITERATED.get(function, 0)]
            values = (*[answers.iterable(rec, x) for x in iterated], *args[len(iterated) :])
            if kwargs.get("key") is not None:
                kwargs = {**kwargs, "key": called_back(rec, kwargs["key"])}
            return returning(rec.calls_c(function, values, kwargs))
        if function.__name__ == "__build_class__":
            return returning(rec.makes_class(function, args, kwargs))
        self.refuse_c(rec, function)

    def c_class(self, rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An object of a class written in C is made."""
        if id(kind) not in self._pure_classes:
            self.refuse_c(rec, kind)
        if kind is functools.partial and args and type(args[0]) is functools.partial:  # the two become one
            calls.reach_parts(rec, args[0], ("func", "args", "keywords"))
        if kind in (functools.partial, types.MethodType, property, staticmethod, classmethod, weakref.ref):
            return kind, args, kwargs
        if kind.__module__ == "itertools":
            return iteration.iterator_call(rec, kind, args, kwargs)
        return returning(rec.calls_c(kind, args, kwargs))

    def method(self, kind: type, name: str) -> Any:
        """How a method of an object of C code is called; None: by the rules of its kind."""
        if name == "__call__" and issubclass(kind, weakref.ref):
            return lambda rec, reference, *_: _called_weakref(rec, reference, (), {})
        if kind in (io.StringIO, io.BytesIO):
            return _METHODS.get((kind, name), _of_own_buffer)
        return contexts.METHODS.get((kind, name)) or _METHODS.get((kind, name))

    def is_pure_method(self, kind: type, name: str) -> bool:
        """Whether a method of an object of C code depends on the object and its arguments alone."""
        return kind in _VALUES or kind.__module__ == "itertools"


def _called(rec: Recorder, function: Any, module: str) -> str:
    """What a refusal says is called: the method and the object it is called on, or the function."""
    owner = getattr(function, "__self__", None)
    if owner is None or is_class(owner) or type(owner) is types.ModuleType:
        name = getattr(function, "__qualname__", type(function).__name__)
        return f"{module}.{name}()" if module else f"{name}()"
    source = rec.source_of(owner)
    return f"{function.__name__}() of {described(owner)}{f' ({source})' if source is not None else ''}"


_LOCKS: Final = frozenset({type(threading.Lock()), type(threading.RLock())})
_CONSTANTS: Final = frozenset(
    {
        datetime.date,
        datetime.time,
        datetime.datetime,
        datetime.timedelta,
        datetime.timezone,
        re.Pattern,
        types.GenericAlias,
    }
)
_WITHOUT_HIDDEN_STATE: Final = (
    *CONTAINERS, int, float, complex, str, bytes, type, property, BaseException, typing.Generic, types.ModuleType,
    types.SimpleNamespace,
)  # fmt: skip


def _has_hidden_state(kind: type) -> bool:
    """Whether objects of a class inherit from code in C that may keep things where nobody looks."""
    return any(
        not (is_python_class(base) or base is object or issubclass(base, _WITHOUT_HIDDEN_STATE)) for base in mro(kind)
    )


# Their content cannot be seen or never changes, and they cannot be referred to weakly.
_COUNTS_BY_IDENTITY: Final = (
    operator.attrgetter, operator.itemgetter, operator.methodcaller, contextvars.ContextVar, types.UnionType,
)  # fmt: skip


def check_constant(rec: Recorder, value: Any, source: Source) -> None:
    """A later call must find this object, which the guard holds."""
    rec.log.check(source, "{v} is not {0}", f"which object {source} is", (value,))


_OPAQUE_BUT_FIXED: Final = frozenset(
    {FunctionType, *BOUND, super, types.CellType, type(MISSING)}
    | {type(getattr(functools, "Placeholder", MISSING))}  # from CPython 3.14 on
)


def _not_repeated(rec: Recorder, function: Any, args: Any, kwargs: Any) -> Any:
    rec.policy.refuse_c(rec, function)


def _changing_first(function: Any) -> Answer:
    def answer(rec: Recorder, target: Any, *args: Any, **kwargs: Any) -> Any:
        again = None if kwargs else followed.changed(rec, target, function, args)
        if again is not None:
            return again[0]
        args = tuple(map(rec.concrete_number, args))
        containers.content(rec, target)
        if rec.source_of(target) is not None:
            rec.effects.will_change(target, container_of(type(target)) or list)
            rec.effects.appended.pop(id(target), None)
        observed = {**kwargs, "key": rec.judged(kwargs["key"])} if "key" in kwargs else kwargs
        try:
            result = rec.calls_c(function, (target, *args), observed)
        except Exception:
            if list(target):  # of an empty one nothing is changed
                rec.refuse(f"{function.__name__}() fails, perhaps after some of its changes")
            raise
        if rec.source_of(target) is not None:
            rec.effects.record(CallingMethod(function), target, None, (list(args), dict(kwargs)), function.__name__)
        return result

    return answer


def _reading_again(function: Any) -> Answer:
    def answer(rec: Recorder) -> Any:
        value = function()
        return rec.reach(value, rec.log.source(None, "{0}()", f"{function.__name__}()", value, (function,)))

    return answer


def _reduce(rec: Recorder, function: Any, values: Any, *start: Any) -> Any:
    return functools.reduce(rec.callback(function), rec.hooks.iterate(values), *start)


def _count_elements(rec: Recorder, counts: Any, values: Any) -> None:
    """What a ``Counter`` does with an iterable."""
    for value in rec.hooks.iterate(values):
        before = rec.passed(rec.hooks.load_attr("get", counts), (rec.concrete_number(value), 0))
        rec.hooks.set_item(rec.actor.binary("+", before, 1), counts, rec.concrete_number(value))


def _fspath(rec: Recorder, path: Any) -> Any:
    path = rec.concrete_number(path)
    method = rec.class_attribute(type(path), "__fspath__")
    return os.fspath(path) if method is MISSING else rec.invoke_special(method, path, ())


def _deepcopy(rec: Recorder, value: Any, memo: Any = None) -> Any:
    """Reads everything that hangs on the value; classes that copy in ways of their own are not followed."""
    if memo is not None:
        rec.refuse("deepcopy() is given a memo")
    waiting, visited = [value], set()
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind is types.MethodType:  # the object that it belongs to is copied
            waiting.append(rec.hooks.load_attr("__self__", item))
        if id(item) in visited or kind in PLAIN or is_class(item) or kind in _OPAQUE_BUT_FIXED:
            continue
        visited.add(id(item))
        rec.keep(item)
        if kind is functools.partial:
            waiting += [rec.hooks.load_attr(name, item) for name in ("func", "args", "keywords")]
            continue
        if issubclass(kind, collections.defaultdict):
            waiting.append(rec.hooks.load_attr("default_factory", item))
        base = container_of(kind)
        if base is not None:
            containers.content(rec, item)
            waiting += [*item.keys(), *item.values()] if base is dict else [] if base is bytearray else list(item)
        if rec.policy.copies_itself(kind):
            continue
        if is_python_class(kind):
            for name in ("__deepcopy__", "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__new__"):
                method = rec.class_attribute(kind, name)
                if type(method) in (FunctionType, staticmethod):
                    rec.refuse(f"{described(item)} is copied in a way of its own")
            space = instance_dict(item)
            if space is not None:
                waiting.append(rec.hooks.load_attr("__dict__", item))
        elif base is None:
            containers.content(rec, item)
    return copy.deepcopy(value)


_ROW: Final[Any] = collections.namedtuple("_ROW", "part")  # what classes of the kind are made of
_REPLACE: Final = _ROW._replace.__code__
_MAKE: Final = vars(_ROW)["_make"].__func__.__code__


def _replaced(rec: Recorder, row: Any, /, **changes: Any) -> Any:
    """``_replace`` of a NamedTuple, which reads the parts that stay."""
    make = lookup(type(row), "_make")
    names = containers.content(rec, rec.hooks.load_attr("_fields", row))
    if type(make) is not classmethod or make.__func__.__code__ is not _MAKE:
        rec.refuse(f"{described(row)} is made in a way of its own")
    if not changes.keys() <= set(names):
        row._replace(**dict.fromkeys(changes))  # raises
    parts = [changes[n] if n in changes else containers.get_item(rec, row, i) for i, n in enumerate(names)]
    return tuple.__new__(type(row), parts)


def _pure_python_functions() -> list[FunctionType]:
    """Functions of the library that depend on their arguments alone, though they keep caches."""
    functions = [
        f for n, f in vars(re).items() if type(f) is FunctionType and n in re.__all__ and n not in ("template", "purge")
    ]
    return [*functions, json.dumps, json.loads]  # type: ignore[list-item]


def _pure_function(function: Any) -> Answer:
    def answer(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        for value in given:
            containers.content(rec, value)
        values = [called_back(rec, x) for x in args]
        named = {name: called_back(rec, x) for name, x in kwargs.items()}
        classes = rec.classes_in(given)
        if not classes and not any(map(callable, given)):
            return function(*values, **named)
        with rec.exposed(classes, answer.__code__):
            return function(*values, **named)

    return answer


def _of_own_buffer(rec: Recorder, buffer: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """A method of a text that the run gathers for itself."""
    if rec.source_of(buffer) is not None or type(buffer) not in (io.StringIO, io.BytesIO):
        rec.policy.refuse_c(rec, function)
    for value in (*args, *kwargs.values()):
        containers.content(rec, value)
    return function, tuple(map(rec.concrete_number, args)), kwargs


def _written(rec: Recorder, file: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """``file.write(text)`` happens at each call, as ``print`` does."""
    if rec.source_of(file) is None:
        return _of_own_buffer(rec, file, function, args, kwargs)
    if len(args) != 1 or kwargs or type(args[0]) not in (str, *SYMBOLIC):
        rec.policy.refuse_c(rec, function)
    text = args[0]
    source = rec.source_of(file)
    rec.effects.show(CallingMethod(type(file).write), file, ([text], {}), f"{source}.write()")
    return returning(symbols.computed(rec, "len({a0})", (text,), len(text)) if type(text) in SYMBOLIC else len(text))


def _flushed(rec: Recorder, file: Any, function: Any, args: Any, kwargs: Any) -> Any:
    if rec.source_of(file) is None:
        return _of_own_buffer(rec, file, function, args, kwargs)
    rec.effects.record(CallingMethod(type(file).flush), file, None, ([], {}), f"{rec.source_of(file)}.flush()")
    return returning(None)


def _key_called(rec: Recorder, key: Any, args: Any, kwargs: Any) -> Any:
    """A key of ``functools.cmp_to_key``, whose function is observed where the run made it."""
    if rec.source_of(key) is not None:
        rec.refuse("a key made by functools.cmp_to_key outside is called", "call cmp_to_key inside of the function")
    return key, args, kwargs


def _called_weakref(rec: Recorder, reference: Any, args: Any, kwargs: Any) -> Any:
    ask = weakref.ref.__call__
    value = ask(reference)
    at = rec.source_of(reference)
    if at is not None:
        lifetimes.require_known(rec)
        rec.reach(value, rec.log.source(at, "{0}({p})", f"{at}()", value, (ask,)))
    return returning(value)


def _cache_info(rec: Recorder, cache: Any, function: Any, args: Any, kwargs: Any) -> Any:
    rec.refuse(
        f"cache_info() of {cache.__qualname__} is read, which counts the calls of traces and checks, too",
        "read it outside, or count in a variable of your own",
    )


_METHODS: Final[dict[tuple[type, str], Any]] = {
    (type(functools.lru_cache(print)), "cache_info"): _cache_info,
    (io.StringIO, "write"): _written,
    (io.StringIO, "flush"): _flushed,
    (io.TextIOWrapper, "write"): _written,
    (io.TextIOWrapper, "flush"): _flushed,
}
_CALLABLES: Final[dict[Any, Any]] = {
    weakref.ref: _called_weakref,
    weakref.KeyedRef: _called_weakref,
    type(functools.cmp_to_key(lambda a, b: 0)): _key_called,
}
