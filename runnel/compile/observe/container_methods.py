"""The rules of built-in containers: their classes, and their methods."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any, Final

from runnel.compile.observe import attributes, containers
from runnel.compile.observe.containers import content
from runnel.compile.observe.functions import Rule, argument_rule, sorted_rule
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import (
    CONTAINERS,
    MISSING,
    PLAIN,
    SETS,
    container_of,
    described,
    is_plain,
    is_python_class,
    lookup,
)


def sequence_rule(kind: Any) -> Rule:
    def rule(rec: Recorder, *values: Any, **kwargs: Any) -> Any:
        kwargs = {name: content(rec, x) for name, x in kwargs.items()}
        rest = [content(rec, x) for x in values[1:]]
        read = rec.hooks.listed if kind is not deque else rec.hooks.spread
        return kind(*[read(x) for x in values[:1]], *rest, **kwargs)

    return rule


def set_rule(kind: Any) -> Rule:
    def rule(rec: Recorder, values: Any = ()) -> Any:
        result = rec.hooks.build_set(tuple(rec.hooks.iterate(values)))
        return result if kind is set else kind(result)

    return rule


def dict_rule(kind: Any) -> Rule:
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
        read = rec.hooks.listed if name == "extend" else rec.hooks.iterate
        taken.extend(read(items))  # keeps what came before an error
    finally:
        if taken:
            containers.grow(rec, value, name, taken)


def _sort(rec: Recorder, value: Any, **kwargs: Any) -> None:
    containers.sort(rec, value, sorted_rule(rec, value, **kwargs))


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
    """Do ``super().__init__(...)`` of a container."""
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


def _copied(rec: Recorder, value: Any) -> Any:
    if issubclass(type(value), defaultdict):
        attributes.reach_parts(rec, value, ("default_factory",))
    return type(value).copy(containers.laid_out(rec, value))


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
        else _copied(rec, value)
    ),
    **{name: lambda rec, value, name=name: containers.view(rec, value, name) for name in ("keys", "values", "items")},
    "__getitem__": containers.get_item, "__setitem__": _set_item, "__delitem__": _delete_item,
    "__contains__": containers.is_member, "__len__": containers.length, "__init__": _poured,
    "__iter__": lambda rec, value: iter(containers.iterated(rec, value)),
}  # fmt: skip


def container_method_rule(rec: Recorder, value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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
    return method(content(rec, value), *[argument_rule(rec, x) for x in args], **kwargs)


def _fail(rec: Recorder, value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise the error of the method itself, called on a copy, because its rule has failed."""
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
