"""Built-in functions and protocols that the recorder carries out itself, so that they read no more than they need."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import collections
import contextlib
import itertools
import operator
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

from runnel.compile.observe import (
    attributes,
    changes,
    containers,
    counters,
    followed,
    instances,
    methods,
    operators,
    printing,
    proxies,
    texts,
)
from runnel.compile.observe.classes import MISSING, is_python_class, lookup
from runnel.compile.observe.lengths import ASK_LENGTH
from runnel.compile.observe.plain import COMPARISONS, OPERATORS, UNARY
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import (
    C_FUNCTIONS,
    CONTAINERS,
    DICT_VIEWS,
    ITERATORS,
    PLAIN,
    SETS,
    VIEWS,
    container_of,
    described,
    is_class,
    is_plain,
    is_users_method,
    of_c,
)  # fmt: skip

Answers = dict[int, Callable[..., Any]]


# Protocols ------------------------------------------------------------------------------------------------------------


def get_item(rec: Recorder, value: Any, key: Any) -> Any:
    """``value[key]``."""
    value = proxies.shown(rec, value)
    kind = type(value)
    rec.concrete_number(key)
    texts.look_at(rec, value, key)
    if kind in PLAIN:
        return value[key] if is_plain(key) else rec.calls_c(operator.getitem, (value, key))
    if is_class(value):
        return _class_item(rec, value, key)
    answer = rec.policy.item(kind)
    if answer is not None:
        return answer(rec, operator.getitem, value, key)
    if is_python_class(kind):
        own = rec.class_attribute(kind, "__getitem__")
        if type(own) is FunctionType:
            return rec.passed(own, (value, key))
        if is_users_method(kind, "__getitem__", own):
            return rec.invoke_special(own, value, (key,))
        if own is None:
            return rec.calls_c(operator.getitem, (value, key))  # raises
    base = container_of(kind)
    if base is dict and kind is not dict:
        return _inherited_item(rec, value, key)
    if base is not None:
        return containers.get_item(rec, value, key)
    return rec.calls_c(operator.getitem, (value, key))


def _class_item(rec: Recorder, value: Any, key: Any) -> Any:
    own = rec.class_attribute(type(value), "__getitem__")
    if type(own) is FunctionType:
        return rec.invoke(own, (value, key))
    if is_python_class(value):
        try:
            return rec.invoke(attributes.of_class(rec, value, "__class_getitem__"), (key,))
        except AttributeError:
            pass
    return value[key]


def _inherited_item(rec: Recorder, value: Any, key: Any) -> Any:
    """An item of an inherited dict, which may make what is missing."""
    if containers.has_key(rec, value, key, rec.source_of(value)):
        return containers.get_item(rec, value, key)
    method = rec.class_attribute(type(value), "__missing__")
    if method is MISSING:
        raise KeyError(key)
    if type(method) is FunctionType:
        return rec.invoke(method, (value, key))
    at = rec.source_of(value)
    factory = value.default_factory
    if at is not None:
        rec.reach(factory, rec.log.source(at, "{p}.default_factory", f"{at}.default_factory", factory))
    if factory is None:
        raise KeyError(key)
    item = rec.invoke(factory, ())
    set_item(rec, value, key, item)
    return item


def set_item(rec: Recorder, target: Any, key: Any, value: Any) -> None:
    """``target[key] = value``."""
    texts.look_at(rec, key)
    kind = type(target)
    answer = rec.policy.item(kind)
    if answer is not None:
        answer(rec, operator.setitem, target, key, value)
        return
    if is_python_class(kind):
        own = rec.class_attribute(kind, "__setitem__")
        if is_users_method(kind, "__setitem__", own):
            rec.invoke_special(own, target, (key, value))
            return
    if followed.changed(rec, target, operator.setitem, (key, value)) is not None:
        return
    base = container_of(kind)
    if type(key) is slice and base is not None and type(value) not in PLAIN:
        value = list(iter(iterable(rec, value)))
    if rec.source_of(target) is None or base is None:
        if rec.source_of(target) is not None:
            rec.refuse(f"an item of {described(target)} from outside is set")
        rec.hashed(key)
        if rec.classes_in((key,)):
            rec.calls_c(operator.setitem, (target, key, value))
        else:
            target[key] = value
        return
    if base is dict:
        methods.set_key(rec, target, key, value)
        return
    _change_sequence(rec, target, base, operator.setitem, key, value)


_ASSIGNED: Final = (list, collections.deque, bytearray)  # whose items can be set


def _change_sequence(rec: Recorder, target: Any, base: Any, apply: Any, key: Any, value: Any) -> None:
    if base not in _ASSIGNED:
        apply(target, *((key, value) if apply is operator.setitem else (key,)))  # raises
        return
    source = rec.source_of(target)
    size = base.__len__(target)
    if base is bytearray:  # which keeps no objects, so that nothing is known of a number that is read there again
        containers.content(rec, target)
        value = containers.content(rec, value)
    stays = not rec.effects.is_changed(target) or id(target) in rec.effects.items_set  # but for single items
    if type(key) is int and stays:
        rec.log.check(source, f"len({{v}}) != {size}", f"len({source})")
    else:
        containers.laid_out(rec, target)
    containers.content(rec, key)
    if type(key) is int and apply is operator.setitem and -size <= key < size:
        rec.effects.will_set_item(target, base, key % size)
    else:
        rec.effects.will_change(target, base)
    rec.effects.appended.pop(id(target), None)
    change = changes.SET_ITEM if apply is operator.setitem else changes.DELETE_ITEM
    change(target, key, value)
    rec.effects.record(change, target, key, value, f"{source}[...] = ...")


def delete_item(rec: Recorder, target: Any, key: Any) -> None:
    """``del target[key]``."""
    kind = type(target)
    if is_python_class(kind):
        own = rec.class_attribute(kind, "__delitem__")
        if is_users_method(kind, "__delitem__", own):
            rec.invoke_special(own, target, (key,))
            return
    if followed.changed(rec, target, operator.delitem, (key,)) is not None:
        return
    base = container_of(kind)
    if rec.source_of(target) is None:
        del target[key]
    elif base is None:
        rec.refuse(f"an item of {described(target)} from outside is deleted")
    elif base is dict:
        containers.has_key(rec, target, key, rec.source_of(target))
        methods.delete_key(rec, target, key)
    else:
        _change_sequence(rec, target, base, operator.delitem, key, None)


def contains(rec: Recorder, container: Any, value: Any) -> bool:
    """``value in container``."""
    container = proxies.shown(rec, container)
    kind = type(container)
    rec.concrete_number(value)
    texts.look_at(rec, container, value)
    if kind in PLAIN:
        return value in container
    looked_at = type(container) if is_class(container) else kind
    answer = rec.policy.item(kind)
    if answer is not None:
        return answer(rec, operator.contains, container, value)
    if is_python_class(looked_at):
        own = rec.class_attribute(looked_at, "__contains__")
        if is_users_method(looked_at, "__contains__", own):
            return operators.truth(rec, rec.invoke_special(own, container, (value,)))
        if own is None:
            return bool(rec.calls_c(operator.contains, (container, value)))  # raises
        if own is MISSING and container_of(kind) is None:
            return any(_is_equal(rec, x, value) for x in iterable(rec, container))
    if container_of(kind) is not None:
        return containers.is_member(rec, container, value)
    return bool(rec.calls_c(operator.contains, (container, value)))


def _is_equal(rec: Recorder, one: Any, other: Any) -> bool:
    """``one is other or one == other``."""
    are_plain = type(one) in PLAIN and type(other) in PLAIN and one == one
    if not are_plain and operators.identity(rec, one, other, False):
        return True
    return operators.truth(rec, operators.compare(rec, "==", one, other))


def length(rec: Recorder, value: Any) -> int:
    """``len(value)``."""
    value = proxies.shown(rec, value)
    kind = type(value)
    texts.look_at(rec, value)
    if kind in PLAIN:
        return len(value)
    answer = rec.policy.item(kind)
    if answer is not None:
        return answer(rec, len, value)
    looked_at = type(value) if is_class(value) else kind
    if is_python_class(looked_at):
        own = rec.class_attribute(looked_at, "__len__")
        if is_users_method(looked_at, "__len__", own):
            return len(operators.giving("__len__", rec.invoke_special(own, value, ())))
        if own is None:
            return rec.calls_c(len, (value,))  # raises
    if container_of(kind) is not None:
        return containers.length(rec, value)
    return rec.calls_c(len, (value,))


def iterable(rec: Recorder, value: Any) -> Any:
    """Something that C code can iterate over: the value itself, looked into, or an iterator that calls its methods."""
    value = proxies.shown(rec, value)
    kind = type(value)
    texts.look_at(rec, value)
    if kind in PLAIN:
        return value
    answer = rec.policy.item(kind)
    if answer is not None:
        return answer(rec, iter, value)
    looked_at = type(value) if is_class(value) else kind
    if is_python_class(looked_at):
        method = rec.class_attribute(looked_at, "__iter__")
        if is_users_method(looked_at, "__iter__", method):
            iterator = rec.invoke_special(method, value, ())
            return _iterated(rec, iterator) if is_python_class(type(iterator)) else containers.content(rec, iterator)
        if method is MISSING and container_of(kind) is None:
            if rec.class_attribute(looked_at, "__getitem__") is not MISSING:
                return _by_index(rec, value)
            return value
        if type(method) in C_FUNCTIONS and container_of(kind) is None and rec.source_of(value) is not None:
            rec.refuse(f"{described(value)} is iterated over by C code")
    return containers.content(rec, value)


def with_length(rec: Recorder, value: Any) -> Any:
    """The same for C code that asks how many items there will be once it has an iterator, as ``list`` does."""
    items = iterable(rec, value)
    kind = type(value)
    if not is_python_class(kind):
        return items
    if is_users_method(kind, "__len__", rec.class_attribute(kind, "__len__")):
        if items is value and container_of(kind) is not None and lookup(kind, "__iter__") is not None:
            # C code would ask again
            items = of_c(kind, "__iter__")(value)
        with contextlib.suppress(TypeError):
            length(rec, value)
            return items
    hint = rec.class_attribute(kind, "__length_hint__")
    if hint is not MISSING:
        with contextlib.suppress(TypeError):
            rec.invoke_special(hint, value, ())
    return items


def _iterated(rec: Recorder, iterator: Any) -> Iterator[Any]:
    """The items that an iterator written in Python gives."""
    step = rec.class_attribute(type(iterator), "__next__")
    if step is MISSING:
        raise TypeError(f"iter() returned non-iterator of type '{type(iterator).__name__}'")
    while True:
        try:
            item = operators.passed(rec, step, iterator)
        except StopIteration:
            return
        yield item


def _by_index(rec: Recorder, value: Any) -> Iterator[Any]:
    i = 0
    while True:
        try:
            item = get_item(rec, value, i)
        except (IndexError, StopIteration):
            return
        yield item
        i += 1


# Built-in functions ---------------------------------------------------------------------------------------------------


def _hasattr(rec: Recorder, value: Any, name: str) -> bool:
    if type(value) in PLAIN:
        return hasattr(value, name)
    return attributes.read_or(rec, value, name, MISSING) is not MISSING


def _len(rec: Recorder, value: Any) -> int:
    value = proxies.shown(rec, value)
    return containers.counted(rec, value) if type(value) in CONTAINERS else length(rec, value)


def _setattr(rec: Recorder, value: Any, name: str, new: Any) -> None:
    attributes.write(rec, value, name, new)


def _type(rec: Recorder, value: Any) -> Any:
    source = rec.source_of(value)
    if type(value) is ModuleType and source is not None:
        rec.log.check(source, "type({v}) is not {0}", f"type of {source}", (ModuleType,))
    return rec.policy.kind_of(value)


def _vars(rec: Recorder, *value: Any) -> Any:
    if not value:
        rec.refuse("vars() without an argument looks at the frame")
    return attributes.read(rec, value[0], "__dict__")


def _id(rec: Recorder, value: Any) -> int:
    if rec.source_of(value) is None:
        rec.refuse("id() of a value made in the function differs from run to run")
    rec.pinned(value)
    return id(value)


def _hash(rec: Recorder, value: Any) -> int:
    kind = type(value)
    if is_python_class(kind):
        own = rec.class_attribute(kind, "__hash__")
        if is_users_method(kind, "__hash__", own):
            return hash(operators.giving("__hash__", rec.invoke_special(own, value, ())))
    if container_of(kind) is None and kind not in PLAIN:
        rec.pinned(value)
        if rec.source_of(value) is None:
            rec.refuse("the hash of an object made in the function differs from run to run")
    return rec.calls_c(hash, (value,))


def _next(rec: Recorder, iterator: Any, *default: Any) -> Any:
    kind = type(iterator)
    if is_python_class(kind):
        step = rec.class_attribute(kind, "__next__")
        if is_users_method(kind, "__next__", step):
            try:
                if type(step) is FunctionType:
                    return rec.passed(step, (iterator,))
                return rec.invoke_special(step, iterator, ())
            except StopIteration:
                if default:
                    return default[0]
                raise
    if kind is itertools.count:
        number = counters.next_of_count(rec, iterator)
        if number is not MISSING:
            return number
    if rec.source_of(iterator) is not None and lookup(kind, "__next__") is not MISSING:
        containers.content(rec, iterator)
        rec.refuse(f"next() advances {described(iterator)} made outside", "call it outside and pass what it gives")
    return next(iterator, *default)


def _iter(rec: Recorder, value: Any, *sentinel: Any) -> Any:
    if sentinel:
        return iter(rec.judged(value), *sentinel)
    kind = type(value)
    if is_python_class(kind):
        method = rec.class_attribute(kind, "__iter__")
        if is_users_method(kind, "__iter__", method):
            return rec.invoke_special(method, value, ())
    return iter(iterable(rec, value))


def _text(convert: Any) -> Any:
    def answer(rec: Recorder, *args: Any, **kwargs: Any) -> str:
        if len(args) == 1 and not kwargs:
            return operators.text(rec, convert, args[0])
        for value in (*args, *kwargs.values()):
            containers.content(rec, value)
        return convert(*args, **kwargs)

    return answer


def _format(rec: Recorder, value: Any, spec: str = "") -> str:
    return operators.formatted(rec, 0, value, spec)


def _converted(function: Any, names: tuple[str, ...]) -> Any:
    """A conversion that calls a special method of objects of the user's classes."""

    def answer(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        if len(args) >= 1 and is_python_class(type(args[0])):
            for name in names:
                method = rec.class_attribute(type(args[0]), name)
                if is_users_method(type(args[0]), name, method):
                    return function(operators.giving(name, rec.invoke_special(method, args[0], args[1:])), *args[1:])
                if method is not MISSING:  # C code asks no further
                    break
        return rec.calls_c(function, args, kwargs)

    return answer


def _over(function: Any, key: bool = False) -> Any:
    """A function over iterables."""

    def answer(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        if key and len(args) > 1:
            first: tuple[Any, ...] = ()  # they are compared, and not iterated over
        else:
            first = args[:1] if function is sum else args
        taken = with_length if function in ASK_LENGTH else iterable
        known = SETS if function in SETS else ()  # C code takes what sets hold past their methods
        values = [taken(rec, x) if _is_iterable(x, known) else containers.content(rec, x) for x in first]
        values += args[len(first) :]
        for value in values:
            if type(value) in (list, tuple):
                texts.look_at(rec, *value)
        if key and kwargs.get("key") is not None:
            kwargs["key"] = rec.judged(kwargs["key"])
        return rec.calls_c(function, tuple(values), kwargs)

    return answer


def _listed(kind: Any) -> Any:
    """``list(values)`` and ``tuple(values)``, whose items are where they were found."""
    otherwise = _over(kind)

    def answer(rec: Recorder, *values: Any) -> Any:
        if len(values) == 1 and type(values[0]) in (list, tuple, dict, *DICT_VIEWS, *ITERATORS):
            return kind(rec.hooks.spread(values[0]))
        return otherwise(rec, *values)

    return answer


def _is_iterable(value: Any, known: tuple[type, ...]) -> bool:
    kind = type(value)
    is_c_class = is_class(value) and not is_python_class(type(value))
    if kind in PLAIN or is_c_class or kind in (FunctionType, MethodType) or container_of(kind) in known:
        return False
    return (
        kind in CONTAINERS
        or kind in ITERATORS
        or kind in VIEWS
        or lookup(kind, "__iter__") is not MISSING
        or (is_python_class(kind) and lookup(kind, "__getitem__") is not MISSING)
    )


def _calling(function: Any) -> Any:
    """A function whose first argument is called with items of the others."""

    def answer(rec: Recorder, called: Any, *args: Any, **kwargs: Any) -> Any:
        values = [rec.hooks.iterate(x) for x in args]
        observed = called if called is None else lambda *items: rec.passed(called, items)
        return function(observed, *values, **kwargs)

    return answer


def _starmap(rec: Recorder, called: Any, rows: Any) -> Any:
    return itertools.starmap(rec.callback(called), map(rec.hooks.unpack, iterable(rec, rows)))


def _truth_of_all(function: Any, stops_at: bool) -> Any:
    def answer(rec: Recorder, values: Any) -> bool:
        for value in rec.hooks.iterate(values):
            if operators.truth(rec, value) is stops_at:
                return stops_at
        return not stops_at

    return answer


def _callable(rec: Recorder, value: Any) -> bool:
    if is_python_class(type(value)):
        rec.class_attribute(type(value), "__call__")
    return callable(value)


def _dict(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
    if args and (container_of(type(args[0])) is dict or lookup(type(args[0]), "keys") is not MISSING):
        return dict(rec.hooks.unpack_mapping(args[0]), **kwargs)
    return rec.calls_c(dict, tuple([[tuple(iterable(rec, p)) for p in iterable(rec, x)] for x in args]), kwargs)


def _reversed(rec: Recorder, value: Any) -> Any:
    kind = type(value)
    if is_python_class(kind):
        own = rec.class_attribute(kind, "__reversed__")
        if is_users_method(kind, "__reversed__", own):
            return rec.invoke_special(own, value, ())
        if own is MISSING and lookup(kind, "__getitem__") is not MISSING:
            places = range(length(rec, value) - 1, -1, -1)
            return (get_item(rec, value, i) for i in places)
    return reversed(containers.content(rec, value))


def _looks_at_frame(name: str) -> Any:
    def answer(rec: Recorder, *_: Any, **__: Any) -> Any:
        rec.refuse(
            f"{name}() looks at the frame or runs a text",
            "write the names out; what calls it, such as a class made by dataclass or namedtuple, belongs outside",
        )

    return answer


def _reads_file(rec: Recorder, *_: Any, **__: Any) -> Any:
    rec.refuse("a file is read or written", "read it outside and pass what it holds as an argument")


def _globals(rec: Recorder) -> Any:
    rec.refuse("globals() gives all names of the module", "read or set the name itself, or keep a dict of your own")


def table() -> Answers:
    """The answers, by the identity of what is called."""
    rows: list[tuple[Any, Callable[..., Any]]] = [
        (getattr, attributes.read_or), (hasattr, _hasattr), (setattr, _setattr), (delattr, attributes.delete),
        (isinstance, instances.is_instance), (issubclass, instances.is_subclass), (type, _type), (vars, _vars),
        (len, _len), (id, _id), (hash, _hash),
        (next, _next), (iter, _iter), (str, _text(str)), (repr, _text(repr)), (ascii, _text(ascii)), (format, _format),
        (bool, lambda rec, *value: operators.truth(rec, value[0]) if value else False),
        (callable, _callable), (reversed, _reversed), (dict, _dict), (print, printing.printed),
        (operator.getitem, get_item), (operator.setitem, lambda rec, t, k, v: set_item(rec, t, k, v)),
        (operator.delitem, delete_item), (operator.contains, contains), (operator.truth, operators.truth),
        (operator.not_, lambda rec, value: not operators.truth(rec, value)),
        (operator.is_, lambda rec, a, b: operators.identity(rec, a, b, False)),
        (operator.is_not, lambda rec, a, b: operators.identity(rec, a, b, True)),
        (any, _truth_of_all(any, True)), (all, _truth_of_all(all, False)),
        (map, _calling(map)), (itertools.starmap, _starmap), (globals, _globals),
        (int, _converted(int, ("__int__", "__index__", "__trunc__"))),
        (float, _converted(float, ("__float__", "__index__"))),
        (complex, _converted(complex, ("__complex__",))), (abs, _converted(abs, ("__abs__",))),
        (round, _converted(round, ("__round__",))), (bytes, _converted(bytes, ("__bytes__",))),
        (operator.index, _converted(operator.index, ("__index__",))),
        (object.__setattr__, attributes.write_plain),
        (_abc._abc_instancecheck, lambda rec, kind, value: instances.by_registry(rec, rec.policy.kind_of(value), kind)),
        (_abc._abc_subclasscheck, lambda rec, kind, other: instances.by_registry(rec, other, kind)),
    ]  # fmt: skip
    rows += [(f, _over(f)) for f in (set, frozenset, sum, zip, enumerate, collections.deque, bytearray)]
    rows += [(list, _listed(list)), (tuple, _listed(tuple))]
    rows += [(f, _over(f, True)) for f in (min, max, sorted)]
    rows += [(f, _looks_at_frame(f.__name__)) for f in (locals, eval, exec, dir, compile, __import__, breakpoint)]
    rows += [(f, _reads_file) for f in (open, input)]
    rows += [(f, _operator(symbol)) for symbol, f in OPERATORS.items() if symbol != "[]"]
    rows += [(f, _comparison(symbol)) for symbol, f in COMPARISONS.items()]
    rows += [(f, _unary(symbol)) for symbol, f in UNARY.items()]
    return {id(function): answer for function, answer in rows}


def _operator(symbol: str) -> Any:
    return lambda rec, a, b: operators.binary(rec, symbol, a, b)


def _comparison(symbol: str) -> Any:
    return lambda rec, a, b: operators.compare(rec, symbol, a, b)


def _unary(symbol: str) -> Any:
    return lambda rec, value: operators.unary(rec, symbol, value)
