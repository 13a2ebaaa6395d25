"""The table of rules: what a call of C code reads and changes. A missing row is a refusal.

A row without separate code is ``given_rule``: the function depends on its arguments alone, which are plain values,
tensors and exact containers of these. So C code never calls Python code that nobody observes. Functions that call back
(``map``, ``sorted``, ``min``, ...) are carried out here, and what they call runs observed.
"""

from __future__ import annotations

import builtins
import collections
import copy
import dataclasses
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
import reprlib
import sys
import types
from collections import OrderedDict, defaultdict, deque
from contextvars import ContextVar
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NoReturn

from runnel.compile.observe import attributes, functions, operators
from runnel.compile.observe.calls import Call, returning
from runnel.compile.observe.container_methods import container_method_rule, dict_rule, sequence_rule, set_rule
from runnel.compile.observe.containers import content
from runnel.compile.observe.functions import Rule, given_rule, refusing_rule
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import (
    DICT_VIEWS,
    ITERATORS,
    PLAIN,
    SYMBOLIC,
    container_of,
    described,
    is_class,
    is_found_by_identity,
    is_python_class,
)

_OF_TEXTS: Final = [f for n, f in vars(re).items() if type(f) is FunctionType and n in re.__all__ and n != "purge"]
_FRAME: Final = "write the names out, or do it outside the function"
_WARN: Final = vars(__import__("_warnings"))["warn"]
ROWS: Final[tuple[tuple[Rule, tuple[Any, ...]], ...]] = (
    (attributes.read_or, (getattr,)),
    (functions.hasattr_rule, (hasattr,)),
    (attributes.write, (setattr,)),
    (attributes.delete, (delattr, object.__delattr__)),
    (attributes.write_plain, (object.__setattr__,)),
    (lambda rec, value, name: attributes.generic(rec, value, name, use_hook=False), (object.__getattribute__,)),
    (functions.isinstance_rule, (isinstance,)),
    (functions.issubclass_rule, (issubclass,)),
    (functions.type_rule, (type,)),
    (functions.vars_rule, (vars,)),
    (functions.id_rule, (id,)),
    (functions.hash_rule, (hash,)),
    (functions.callable_rule, (callable,)),
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
    *[(functions.text_rule(f), (f,)) for f in (str, repr, ascii)],
    (functions.format_rule, (format,)),
    *[(functions.converted_rule(f, *names), (f,)) for f, names in functions.CONVERSIONS.items()],
    (functions.sum_rule, (sum,)),
    *[(functions.extreme_rule(f, symbol), (f,)) for f, symbol in ((min, "<"), (max, ">"))],
    (functions.next_rule, (next,)),
    (functions.iter_rule, (iter,)),
    *[(functions.over_rule(f), (f,)) for f in (zip, math.fsum, math.prod)],
    (functions.over_rule(enumerate, 1), (enumerate,)),
    *[(functions.calling_rule(f), (f,)) for f in (map, filter, itertools.starmap)],
    *[(functions.iterator_rule(f), (f,)) for f in functions.ITERATOR_CLASSES],
    (functions.any_rule, (any,)),
    (functions.all_rule, (all,)),
    (functions.reversed_rule, (reversed,)),
    (functions.count_rule, (collections._count_elements,)),  # type: ignore[attr-defined]
    (functions.reduce_rule, (functools.reduce,)),
    (functions.sorted_rule, (sorted,)),
    *[(sequence_rule(f), (f,)) for f in (list, tuple, deque)],
    *[(set_rule(f), (f,)) for f in (set, frozenset)],
    *[(dict_rule(f), (f,)) for f in (dict, OrderedDict, defaultdict)],
    (functions.print_rule, (print,)),
    *[(functions.logging_rule(name, True), (getattr(logging.Logger, name),)) for name in (*functions.LEVELS, "log")],
    *[(functions.logging_rule(name, False), (getattr(logging, name),)) for name in (*functions.LEVELS, "log")],
    (functions.get_logger_rule, (logging.getLogger,)),
    (functions.deepcopy_rule, (copy.deepcopy,)),
    (lambda rec, *args: rec.make(object.__new__(args[0])), (object.__new__,)),
    (lambda rec, *args: None, (object.__init__, object.__init_subclass__)),
    *[(given_rule(f), (f,)) for f in (json.dumps, json.loads, os.fspath, *_OF_TEXTS)],
    *[(refusing_rule(f"{f.__name__}() looks at the frame or runs a text", _FRAME), (f,))
      for f in (locals, globals, eval, exec, dir, compile, __import__, breakpoint)],
    (refusing_rule("a class is made in the function", "define it outside"), (builtins.__build_class__,)),
    (refusing_rule("a file is read or written", "do it outside the compiled function"), (open, input)),
    (refusing_rule("a warning is given", "warn outside the compiled function"), (_WARN,)),
)  # fmt: skip
_RECURSIVE: Final = (reprlib.recursive_repr(), getattr(dataclasses, "_recursive_repr", reprlib.recursive_repr()))
_REPR_CODES: Final = tuple(wrap(repr).__code__ for wrap in _RECURSIVE)
_CHANGING: Final = (operator.iconcat, operator.call)
_PURE: Final = (
    *[f for m in (math, operator) for f in vars(m).values() if type(f) is BuiltinFunctionType and f not in _CHANGING],
    sys.intern, sys.exc_info, sys.exception, bin, chr, oct, ord, hex, divmod, pow, str.maketrans, os.getpid,
)  # fmt: skip
_PURE_CLASSES: Final = (range, slice, bytes, bytearray, datetime.date, datetime.datetime, datetime.timedelta)
_STORING: Final = (
    functools.partial, MethodType, types.SimpleNamespace, property, staticmethod, classmethod, object,
    operator.itemgetter, operator.attrgetter,
)  # fmt: skip


CONSTANTS: Final = (
    operator.attrgetter, operator.itemgetter, operator.methodcaller, ContextVar, types.UnionType, types.GenericAlias,
)  # fmt: skip


def check_constant(rec: Recorder, value: Any, source: Source) -> None:
    """Require the same object at later calls. The guard holds it, because it cannot tell of its death."""
    rec.log.check(source, "{v} is not {0}", f"which object {source} is", (value,))


class Policy:
    """The rules for Python's own objects and functions, to which a subclass adds those for arrays (``rules.Rules``)."""

    def __init__(self) -> None:
        self.rules: dict[int, Rule] = {id(f): rule for rule, known in ROWS for f in known}
        for function in _PURE:
            self.rules.setdefault(id(function), given_rule(function))

    # Values -----------------------------------------------------------------------------------------------------------

    def pinned_key(self, rec: Recorder, key: Any) -> bool:
        """Return whether containers find ``key`` by identity. Later calls must then find the same object."""
        if is_found_by_identity(key):
            if is_python_class(type(key)):  # which may be given other ones later
                rec.class_attribute(type(key), "__eq__"), rec.class_attribute(type(key), "__hash__")
            rec.pinned(key)
            return True
        return False

    def shown(self, rec: Recorder, value: Any) -> Any:
        """Return a value whose text is made by C code."""
        if issubclass(type(value), BaseException):
            content(rec, rec.hooks.load_attr("args", value))
            return value
        return content(rec, value)

    def is_readable(self, kind: type) -> bool:
        """Return whether a guard may read attributes of an object of C code again."""
        return (
            kind in functions.VALUES or kind in _STORING or issubclass(kind, BaseException) or kind is types.UnionType
        )

    def look_into(self, rec: Recorder, value: Any, source: Source | None) -> None:
        """C code is given a value that is neither plain nor a container. Most are refused."""
        kind = type(value)
        if kind in functions.VALUES or kind in (types.GenericAlias, types.UnionType):
            if source is not None:
                rec.log.check(source, "{v} is not {0} and {v} != {0}", f"value of {source}", (value,))
        elif issubclass(kind, enum.Enum):
            rec.pinned(value)
        elif issubclass(kind, BaseException) and not is_python_class(kind):
            content(rec, rec.hooks.load_attr("args", value))
        elif kind is not object and type(value) is not io.StringIO:
            rec.refuse_value(value, "C code")

    # Code -------------------------------------------------------------------------------------------------------------

    def native(self, function: FunctionType) -> Any:
        """Return how a Python function that runs unobserved is called; None: it is observed."""
        if function.__code__ in _REPR_CODES:  # of a dataclass: its wrapper asks for the number of the thread
            return lambda rec, function, args, kwargs: rec.prepared(
                attributes.read(rec, function, "__wrapped__"), args, kwargs
            )
        module = function.__module__ or ""
        if module in ("random", "weakref", "_weakrefset") or module.startswith("numpy.random"):
            return lambda rec, function, args, kwargs: self.refuse_c(rec, function)
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
        for known, (reason, remedy) in functions.REFUSED.items():
            if module == known or module.startswith(known + "."):
                rec.refuse(f"{reason} ({name})", remedy)
        if owner is not None and type(owner) is not ModuleType and not is_class(owner):
            source = rec.source_of(owner)
            name = f"{function.__name__}() of {described(owner)}{f' ({source})' if source is not None else ''}"
        else:
            name = f"{module}.{name}()" if module and module != "builtins" else f"{name}()"
        rec.refuse(f"{name} is written in C, and what it reads is not known", functions.OUTSIDE)

    def c_class(self, rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Return what to call in place of a C class that has no row."""
        if kind is functools.partial and args and type(args[0]) is kind:  # they become one
            attributes.reach_parts(rec, args[0], ("func", "args", "keywords"))
        if kind in _STORING or issubclass(kind, BaseException):
            return kind, args, kwargs
        if kind in _PURE_CLASSES:
            return returning(given_rule(kind)(rec, *args, **kwargs))
        self.refuse_c(rec, kind)

    def method(self, rec: Recorder, value: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Return what to call in place of a method written in C."""
        kind, name = type(value), function.__name__
        if is_class(value):
            return self._class_method(rec, value, function, args, kwargs)
        if kind in PLAIN or kind in SYMBOLIC:
            if issubclass(kind, str) and name in ("join", "format"):
                rule = functions.join_rule if name == "join" else functions.str_format_rule
                return returning(rule(rec, value, *args, **kwargs))
            plain = rec.concrete_number(value)
            return returning(given_rule(getattr(plain, name))(rec, *args, **kwargs))
        special = _OF_OBJECTS.get(name)
        is_attribute = name in ("__setattr__", "__delattr__", "__getattribute__")
        is_number = issubclass(kind, (int, float, complex, str, bytes))  # of a class that inherits from a plain one
        has_own = is_number or container_of(kind) is not None or issubclass(kind, BaseException)
        if special is not None and (is_attribute or not has_own):
            return returning(special(rec, value, *args))
        if container_of(kind) is not None:
            return returning(container_method_rule(rec, value, name, args, kwargs))
        if issubclass(kind, enum.Enum):
            rec.pinned(value)
        if is_number and (rec.source_of(value) is None or issubclass(kind, enum.Enum)):
            return function, tuple([content(rec, x) for x in args]), kwargs
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
            return returning((functions.written_rule if name == "write" else functions.flushed_rule)(rec, value, *args))
        if kind in functions.VALUES or (kind is io.StringIO and rec.source_of(value) is None):
            content(rec, value)
            return returning(given_rule(function)(rec, *args, **kwargs))
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
                args, kwargs = args[:1], {}
            elif issubclass(args[0], tuple):
                args, kwargs = (args[0], tuple(rec.hooks.spread(args[1]))), {}
            elif not issubclass(args[0], BaseException):
                args = (args[0], *[content(rec, x) for x in args[1:]])
            return returning(rec.make(function(*args, **kwargs)))
        if name in ("__init_subclass__", "mro", "__or__", "__ror__", "__class_getitem__", "__getitem__"):
            return function, args, kwargs
        if name == "__setattr__":
            attributes.write_plain(rec, kind, *args)
            return returning(None)
        if name in ("__instancecheck__", "__subclasscheck__"):
            check = functions.isinstance_rule if name == "__instancecheck__" else functions.issubclass_rule
            return returning(check(rec, args[0], kind))
        if name == "fromkeys":
            value = args[1] if len(args) > 1 else None
            parts = [x for key in rec.hooks.iterate(args[0]) for x in (key, value)]
            return returning(kind(rec.hooks.build_map(tuple(parts))))
        if name == "from_iterable":
            return returning(function(map(rec.hooks.iterate, rec.hooks.iterate(args[0]))))
        if name in ("fromhex", "from_bytes", "maketrans", "fromisoformat", "strptime"):
            return returning(given_rule(function)(rec, *args, **kwargs))
        self.refuse_c(rec, function)


_OF_OBJECTS: Final[dict[str, Rule]] = {
    "__setattr__": attributes.write_plain,
    "__delattr__": attributes.delete,
    "__getattribute__": lambda rec, value, name: attributes.generic(rec, value, name, use_hook=False),
    "__init__": lambda rec, value, *args: None,
    "__init_subclass__": lambda rec, value, *args: None,
    "__eq__": lambda rec, a, b: rec.hooks.identity(False, a, b) or NotImplemented,
    "__ne__": lambda rec, a, b: rec.hooks.compare(("!=", True), a, b),
    "__hash__": functions.hash_rule,
    "__str__": lambda rec, value: operators.text(rec, repr, value),
    "__repr__": refusing_rule("the text of an object shows its address", "give its class a __repr__"),
    "__format__": lambda rec, value, spec: operators.formatted(rec, 0, operators.text(rec, str, value), spec),
}
