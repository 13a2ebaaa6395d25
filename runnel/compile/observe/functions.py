"""The rules of functions and methods that are carried out here, so that what they call back runs observed."""

from __future__ import annotations

import abc
import copy
import datetime
import functools
import io
import itertools
import logging
import math
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any, Final, NoReturn

from runnel.compile.observe import attributes, numbers, operators
from runnel.compile.observe.containers import content
from runnel.compile.observe.effects import CallingMethod, Printing
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import (
    DICT_VIEWS,
    ITERATORS,
    MISSING,
    PLAIN,
    container_of,
    described,
    is_class,
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
VALUES: Final = (
    datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone, re.Pattern, re.Match,
)  # fmt: skip
REFUSED: Final = {
    "time": ("a clock is read", "read it around the call of the compiled function, or pass the time as an argument"),
    "_thread": ("a lock is taken", "take it around the call of the compiled function, or use a list or deque"),
    "random": ("Python's random numbers are drawn", "use rn.rand or rn.randint, or pass the number as an argument"),
    "_random": ("Python's random numbers are drawn", "use rn.rand or rn.randint, or pass the number as an argument"),
    "numpy.random": ("NumPy's random numbers are drawn", "use rn.rand or rn.randn, or pass the array as an argument"),
    "posix": ("the file system is asked", "read it outside and pass the result as an argument"),
    "_io": ("a file is read or written", "do it outside the compiled function"),
    "_functools": ("a function that keeps results (lru_cache) is called", "call it outside and pass what it returns"),
    "weakref": ("a weak reference is asked", "hold the object itself, or ask outside"),
    "_weakrefset": ("a weak reference is asked", "hold the object itself, or ask outside"),
    "_weakref": ("a weak reference is asked", "hold the object itself, or ask outside"),
    "_contextvars": ("a context variable is read or set", "do it outside the compiled function"),
}


def given_rule(function: Any) -> Rule:
    """Make the rule of a function that depends on its arguments alone."""

    def rule(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        values = [argument_rule(rec, x) for x in args]
        return function(*values, **{name: argument_rule(rec, x) for name, x in kwargs.items()})

    return rule


def argument_rule(rec: Recorder, value: Any) -> Any:
    if type(value) in (FunctionType, MethodType, functools.partial) or type(value) in ITERATORS:
        rec.refuse_value(value, "a C function")  # which may call methods of its items
    return content(rec, value)


def refusing_rule(reason: str, remedy: str) -> Rule:
    def rule(rec: Recorder, *_: Any, **__: Any) -> NoReturn:
        rec.refuse(reason, remedy)

    return rule


# Attributes, classes, identity ----------------------------------------------------------------------------------------


def hasattr_rule(rec: Recorder, value: Any, name: str) -> bool:
    return attributes.read_or(rec, value, name, MISSING) is not MISSING


def type_rule(rec: Recorder, value: Any, *parts: Any) -> Any:
    if parts:
        rec.refuse("a class is made in the function", "define it outside")
    source = rec.source_of(value)
    if type(value) is types.ModuleType and source is not None:  # its class is not checked yet
        rec.log.check(source, "type({v}) is not {0}", f"type of {source}", (types.ModuleType,))
    return rec.policy.kind_of(value)


def vars_rule(rec: Recorder, value: Any) -> Any:
    return attributes.read(rec, value, "__dict__")


def isinstance_rule(rec: Recorder, value: Any, kinds: Any) -> bool:
    kind = type_rule(rec, value)
    if _claims(type(value)) and kind is type(value):
        rec.refuse(f"{described(value)} says by its __class__ what it is", "ask for its type()")
    return issubclass_rule(rec, kind, kinds)


def _claims(kind: type) -> bool:
    return is_python_class(kind) and lookup(kind, "__class__") is not object.__dict__["__class__"]


def issubclass_rule(rec: Recorder, kind: type, kinds: Any) -> bool:
    if type(kinds) is types.UnionType:
        kinds = attributes.read(rec, kinds, "__args__")
    if type(kinds) is tuple:
        return any(issubclass_rule(rec, kind, one) for one in rec.hooks.spread(kinds))
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
        rec.refuse(f"{described(kinds)} decides in custom code what belongs to it", "ask for the class itself")
    result, at, other = issubclass(kind, kinds), rec.source_of(kinds), rec.source_of(kind)
    if at is not None and other is not None:
        rec.log.check(None, f"issubclass({{s1}}, {{s0}}) is not {result}", f"what {at} is", (), (at, other))
    elif at is not None:
        rec.log.check(at, f"issubclass({{0}}, {{v}}) is not {result}", f"what {at} is", (kind,))
    return result


def id_rule(rec: Recorder, value: Any) -> int:
    if rec.source_of(value) is None:
        rec.refuse("id() of a value made in the function differs from run to run", "keep a counter instead")
    rec.pinned(value)
    return id(value)


def hash_rule(rec: Recorder, value: Any) -> int:
    own = rec.class_attribute(type(value), "__hash__") if is_python_class(type(value)) else MISSING
    if is_users_method(type(value), "__hash__", own):
        result = rec.concrete_number(operators.passed(rec, own, value))
        if type(result) is not int:
            rec.refuse(f"__hash__ of {described(value)} returns no int", "return an int")
        fits = -(1 << 63) <= result < 1 << 63  # then it is taken as it is
        return (result if result != -1 else -2) if fits else hash(result)
    return hash(operators.require_hashable(rec, value))


def callable_rule(rec: Recorder, value: Any) -> bool:
    if is_python_class(type(value)):
        rec.class_attribute(type(value), "__call__")
    return callable(value)


# Numbers and texts ----------------------------------------------------------------------------------------------------


def converted_rule(function: Any, *names: str) -> Rule:
    """Make the rule of a conversion, which calls a special method of objects of Python classes."""
    given = given_rule(function)

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


CONVERSIONS: Final = {  # the special methods that they look for, in order
    int: ("__int__", "__index__", "__trunc__"), float: ("__float__", "__index__"), complex: ("__complex__",),
    abs: ("__abs__",), round: ("__round__",),
}  # fmt: skip


def text_rule(convert: Any) -> Rule:
    given = given_rule(convert)

    def rule(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        is_one = len(args) == 1 and not kwargs
        return operators.text(rec, convert, args[0]) if is_one else given(rec, *args, **kwargs)

    return rule


def format_rule(rec: Recorder, value: Any, spec: Any = "") -> Any:
    return operators.formatted(rec, 0, value, spec)


def join_rule(rec: Recorder, text: Any, parts: Any) -> Any:
    parts = list(rec.hooks.iterate(parts))
    if not numbers.is_any(rec, text, *parts) or not all(map(numbers.is_number, parts)):
        return rec.concrete_number(text).join([x if type(x) is str else content(rec, x) for x in parts])
    between: list[Any] = [text] * (2 * len(parts) - 1)
    between[::2] = parts
    return numbers.joined(rec, tuple(between))


def str_format_rule(rec: Recorder, text: Any, *args: Any, **kwargs: Any) -> Any:
    """Format fields as f-strings do. Refuse fields that read attributes or items."""
    out: list[Any] = []
    automatic = iter(range(len(args)))
    fields = list(_PARSE(rec.concrete_number(text)))
    numbered = {name == "" for _, name, _, _ in fields if name is not None and (name == "" or name.isdigit())}
    for literal, name, spec, conversion in fields:
        out.append(literal)
        if name is None:
            continue
        if not (name == "" or name.isalnum() or name.isidentifier()) or "{" in (spec or ""):
            rec.refuse(f"a field '{name}' of str.format() reads a part of its argument", "use an f-string")
        place = next(automatic, len(args)) if name == "" else int(name) if name.isdigit() else name
        if len(numbered) > 1 or (place not in kwargs if type(place) is str else place >= len(args)):
            rec.refuse("the arguments of str.format() do not fit its fields", "use an f-string")
        value = kwargs[place] if type(place) is str else args[place]
        out.append(rec.hooks.format({None: 0, "s": 1, "r": 2, "a": 3}[conversion], value, spec or ""))
    return numbers.joined(rec, tuple(out))


_PARSE: Final[Any] = __import__("string").Formatter().parse


def sum_rule(rec: Recorder, values: Any, start: Any = 0) -> Any:
    is_number = numbers.kind_of(start) in _ADDED
    if not is_number:
        sum((), start)  # raises for texts
    items, rest = _split(rec.hooks.iterate(values), _ADDED if is_number else ())
    if items:  # at once, because 3.12 adds floats exactly
        result = sum(map(numbers.bare, items), numbers.bare(start))
        if numbers.is_any(rec, start, *items):
            places = "".join([f"{{a{i + 1}}}, " for i in range(len(items))])
            result = numbers.computed(rec, f"{{0}}(({places}), {{a0}})", (start, *items), result, (sum,), False)
        start = result
    for x in rest:
        start = rec.hooks.binary("+", start, x)
    return start


_REAL: Final = (int, float, bool)
_ADDED: Final = (*_REAL, complex)


def _split(values: Any, kinds: tuple[type, ...]) -> tuple[list[Any], Iterator[Any]]:
    """Return the numbers that come first and an iterator over the rest, which an error leaves where it is."""
    first: list[Any] = []
    iterator = iter(values)
    for x in iterator:
        if numbers.kind_of(x) not in kinds:
            return first, itertools.chain((x,), iterator)
        first.append(x)
    return first, iterator


def extreme_rule(function: Any, symbol: str) -> Rule:
    """Make the rule of ``min`` and ``max``."""

    def rule(rec: Recorder, *args: Any, key: Any = None, default: Any = MISSING) -> Any:
        if not args or (len(args) > 1 and default is not MISSING):
            return function(*args, default=default)  # raises
        values = args if len(args) > 1 else rec.hooks.iterate(*args)
        items, rest = _split(values, _REAL if key is None else ())
        if 1 < len(items) <= 8:
            known = numbers.called(rec, function, tuple(items), {})
            items = items if known is None else [known[0]]
        best = rank = MISSING
        for item in itertools.chain(items, rest):
            other = rec.passed(key, (item,)) if key is not None else item
            if best is MISSING or rec.hooks.truth(rec.hooks.compare((symbol, False), other, rank)):
                best, rank = item, other
        if best is MISSING:
            return function(()) if default is MISSING else default
        return best

    return rule


# Iteration ------------------------------------------------------------------------------------------------------------


def next_rule(rec: Recorder, iterator: Any, *default: Any) -> Any:
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


def iter_rule(rec: Recorder, value: Any, *sentinel: Any) -> Any:
    if sentinel:
        rec.refuse("iter() is given a function", "write a while loop")
    kind = type(value)
    method = rec.class_attribute(kind, "__iter__") if is_python_class(kind) else MISSING
    if is_users_method(kind, "__iter__", method):
        return operators.passed(rec, method, value)
    return iter(rec.hooks.iterate(value))


def over_rule(function: Any, places: int | None = None) -> Rule:
    """Make the rule of a function that iterates over its first arguments, all of them by default."""

    def rule(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        values = [rec.hooks.iterate(x) if places is None or i < places else content(rec, x) for i, x in enumerate(args)]
        if function in (math.fsum, math.prod):
            values[0] = (content(rec, x) for x in values[0])
        return function(*values, **{name: content(rec, x) for name, x in kwargs.items()})

    return rule


def calling_rule(function: Any) -> Rule:
    """Make the rule of a function whose first argument is called with items of the others."""

    def rule(rec: Recorder, called: Any, *args: Any) -> Any:
        values = [rec.hooks.iterate(x) for x in args]
        if function is filter:
            return (x for x in values[0] if rec.hooks.truth(x if called is None else rec.passed(called, (x,))))
        if function is itertools.starmap:
            return (rec.passed(called, tuple(rec.hooks.spread(x))) for x in values[0])
        return function(lambda *items: rec.passed(called, items), *values)

    return rule


def iterator_rule(kind: Any) -> Rule:
    """Make the rule of a class of ``itertools``."""

    def argument(rec: Recorder, value: Any) -> Any:
        if numbers.is_number(value) or kind is itertools.repeat:
            return rec.concrete_number(value)
        if kind not in _LOOKING:
            return rec.hooks.listed(value) if kind in _LISTING else rec.hooks.iterate(value)
        if callable(value):
            return lambda *items: content(rec, rec.passed(value, items))
        return (content(rec, x) for x in rec.hooks.iterate(value))

    def rule(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        return kind(*[argument(rec, x) for x in args], **{name: argument(rec, x) for name, x in kwargs.items()})

    return rule


ITERATOR_CLASSES: Final = [
    kind for kind in vars(itertools).values() if isinstance(kind, type) and kind is not itertools.starmap
]
_LOOKING: Final = (
    itertools.accumulate, itertools.groupby, itertools.compress, itertools.takewhile, itertools.dropwhile,
    itertools.filterfalse,
)  # fmt: skip
_LISTING: Final = (
    itertools.product, itertools.permutations, itertools.combinations, itertools.combinations_with_replacement,
)  # fmt: skip


def any_rule(rec: Recorder, values: Any) -> bool:
    return any(rec.hooks.truth(x) for x in rec.hooks.iterate(values))


def all_rule(rec: Recorder, values: Any) -> bool:
    return all(rec.hooks.truth(x) for x in rec.hooks.iterate(values))


def reversed_rule(rec: Recorder, value: Any) -> Any:
    kind = type(value)
    own = rec.class_attribute(kind, "__reversed__") if is_python_class(kind) else MISSING
    if is_users_method(kind, "__reversed__", own):
        return operators.passed(rec, own, value)
    if kind in PLAIN:
        return reversed(rec.concrete_number(value))
    if kind in DICT_VIEWS:
        return reversed(list(rec.hooks.iterate(value)))
    if container_of(kind) is dict:
        return reversed(list(rec.hooks.iterate(value)))
    size = rec.concrete_number(rec.hooks.length(value))
    return (rec.hooks.get_item(value, i) for i in range(size - 1, -1, -1))


def reduce_rule(rec: Recorder, function: Any, values: Any, *start: Any) -> Any:
    return functools.reduce(lambda a, b: rec.passed(function, (a, b)), rec.hooks.iterate(values), *start)


def count_rule(rec: Recorder, counts: Any, values: Any) -> None:
    """Count the items of an iterable, as ``Counter.update`` does."""
    for key in rec.hooks.iterate(values):
        known = rec.hooks.get_item(counts, key) if rec.hooks.contains(False, key, counts) else 0
        rec.hooks.set_item(rec.hooks.binary("+", known, 1), counts, key)


def sorted_rule(rec: Recorder, values: Any, *, key: Any = None, reverse: Any = False) -> list[Any]:
    items = list(rec.hooks.listed(values))
    ranks = [content(rec, x if key is None else rec.passed(key, (x,))) for x in items]
    order = sorted(range(len(items)), key=ranks.__getitem__, reverse=rec.concrete_number(reverse))
    return [items[i] for i in order]


# Output and other effects ---------------------------------------------------------------------------------------------


def print_rule(rec: Recorder, *args: Any, file: Any = None, **options: Any) -> None:
    if file is None:
        if (id(vars(sys)), "stdout") in rec.effects.written:
            rec.refuse("the function puts something into sys.stdout", "do it around the call")
        is_own = _writes_by_own_code()
        rec.reach(is_own, rec.log.source(None, "{0}()", "the class of sys.stdout", is_own, (_writes_by_own_code,)))
        if is_own:
            rec.refuse("sys.stdout is an object with a custom write()", "print outside the compiled function")
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
    """Return whether ``sys.stdout`` only looks like a file. Files of notebooks and test runners inherit from ``io``."""
    out = sys.stdout
    return is_python_class(type(out)) and not isinstance(out, io.IOBase)


def written_rule(rec: Recorder, file: Any, text: Any) -> Any:
    """Write a text to a file at each call, as ``print`` does."""
    if rec.source_of(file) is None:
        return file.write(rec.concrete_number(text))
    rec.effects.show(CallingMethod(type(file).write), file, ([text], {}), f"{rec.source_of(file)}.write()")
    return len(text)


def flushed_rule(rec: Recorder, file: Any) -> None:
    if rec.source_of(file) is not None:
        rec.effects.record(CallingMethod(type(file).flush), file, None, ([], {}), f"{rec.source_of(file)}.flush()")


def logging_rule(name: str, is_method: bool) -> Rule:
    """Make the rule of a function that logs: the record is made at each call, after the program."""

    def rule(rec: Recorder, *args: Any, **options: Any) -> None:
        logger, args = (args[0], args[1:]) if is_method else (logging.root, args)
        level, args = (rec.concrete_number(args[0]), args[1:]) if name == "log" else (LEVELS[name], args)
        if options or type(level) is not int or not args:
            rec.refuse("a log record is made with options or without a message", "log it outside the function")
        at = rec.source_of(logger)
        state = rec.log.source(at, "{0}({p}, {1})" if at else "{0}({2}, {1})", "how a logger is set up", MISSING,
                               (_logs, rec.constant(level), logger))  # fmt: skip
        is_enabled = _logs(logger, level)
        rec.reach(is_enabled, state)
        if is_enabled is None:
            rec.refuse("a log record goes to a custom handler or filter", "log it outside the function")
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


LEVELS: Final = {n: getattr(logging, n.upper()) for n in ("debug", "info", "warning", "error", "critical")}


def get_logger_rule(rec: Recorder, name: Any = None) -> Any:
    name = rec.concrete_number(name)
    logger, label = logging.getLogger(name), f"logging.getLogger({name!r})"
    return rec.reach(logger, rec.log.source(None, "{0}({1})", label, logger, (logging.getLogger, rec.constant(name))))


def deepcopy_rule(rec: Recorder, value: Any, memo: Any = None) -> Any:
    if rec.policy.copies_itself(type(value)):
        copy.deepcopy(value)  # raises where it makes Parameters
    return copy.deepcopy(content(rec, value))
