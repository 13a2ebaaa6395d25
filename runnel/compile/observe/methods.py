"""Methods written in C: what they read of their object and what they change."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import collections
import string
import types
from types import FunctionType
from typing import Any, Final

from runnel.compile.observe import additions, attributes, changes, followed, proxies
from runnel.compile.observe.classes import MISSING, instance_dict, is_python_class, lookup
from runnel.compile.observe.containers import (
    content,
    get_item,
    has_key,
    has_room,
    is_member,
    is_simple,
    items,
    laid_out,
    length,
    longest,
    own_method,
    pairs,
    view,
)
from runnel.compile.observe.plain import returning
from runnel.compile.observe.protocols import check_absent
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import (
    CONTAINERS,
    ITERATORS,
    PLAIN,
    SETS,
    VIEWS,
    container_of,
    described,
    is_class,
    is_plain,
)

_OF_SEQUENCES: Final = frozenset(
    {
        *("append", "extend", "insert", "pop", "remove", "clear", "reverse"),
        *("__iadd__", "__imul__", "__setitem__", "__delitem__"),
    }
)
CHANGES: Final[dict[type, frozenset[str]]] = {
    list: _OF_SEQUENCES | {"sort"},
    dict: frozenset(
        ["update", "pop", "popitem", "setdefault", "clear", "move_to_end", "__ior__", "__setitem__", "__delitem__"]
    ),
    set: frozenset(
        {
            *("add", "update", "discard", "remove", "pop", "clear"),
            *("difference_update", "intersection_update", "symmetric_difference_update"),
            *("__ior__", "__iand__", "__isub__", "__ixor__"),
        }
    ),
    collections.deque: _OF_SEQUENCES | {"appendleft", "extendleft", "popleft", "rotate"},
    bytearray: _OF_SEQUENCES,
}
GROWS: Final = frozenset({"append", "extend"})  # of a list: what it held stays where it is
# What sequences hold is moved by these, and not looked at.
_BY_POSITION: Final = GROWS | {"appendleft", "extendleft", "insert", "pop", "popleft", "reverse", "rotate"}
_TAKES_INDEX: Final = ("insert", "pop", "rotate")
TAKES_ITEMS: Final = frozenset(
    {"extend", "extendleft", "update", "__iadd__", "__ior__", "__iand__", "__isub__", "__ixor__"}
)


def call(
    rec: Recorder,
    value: Any,
    name: str,
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    owner: Any = None,
) -> Any:
    """``value.name(*args)`` of a method written in C."""
    kind = type(value)
    special = _SPECIAL.get(name)
    if special is not None:
        reply = special(rec, value, owner, args, kwargs)
        if reply is not None:
            return reply
    answer = rec.policy.method(kind, name)
    if answer is not None:
        return answer(rec, value, function, args, kwargs)
    base = container_of(kind)
    if base is not None:
        return _of_container(rec, value, base, name, function, args, kwargs)
    if is_python_class(kind) and not is_class(value) and issubclass(kind, (int, str, float, bytes, complex)):
        values = tuple([rec.hooks.unpack(x) if name in _ITERATES else x for x in args])
        return returning(rec.calls_c(getattr(_owner(rec, value, name), name), (value, *values), kwargs))
    if is_class(value):
        return _of_class(rec, value, name, function, args, kwargs)
    if kind is str and name in ("format", "format_map") and not all(map(is_plain, (*args, *kwargs.values()))):
        return returning(_formatted(rec, value, *(((), args[0]) if name == "format_map" else (args, kwargs))))
    if kind in PLAIN or kind is slice or kind in VIEWS:
        if kind is types.MappingProxyType:
            call_of_view = proxies.method_of_view(rec, value, name, args, kwargs)
            if call_of_view is not None:
                return call_of_view
        values = tuple([rec.hooks.unpack(x) if is_python_class(type(x)) and name in _ITERATES else x for x in args])
        return returning(rec.calls_c(_unbound(kind, name, function), (value, *values), kwargs))
    if kind in ITERATORS:
        content(rec, value)
        return _passed(rec, function, value, args, kwargs, owner)
    if kind is FunctionType and name in ("__get__", "__call__"):
        return rec.prepared(value, args, kwargs) if name == "__call__" else returning(function(*args))
    if kind in (property, classmethod, staticmethod, super, types.MemberDescriptorType, types.GetSetDescriptorType):
        return _passed(rec, function, value, args, kwargs, owner)
    if is_python_class(kind) and owner in (object, None) and name in _OF_OBJECT:
        return _passed(rec, function, value, args, kwargs, owner)
    if issubclass(kind, BaseException):
        for x in args:
            content(rec, x)
        return _passed(rec, function, value, args, kwargs, owner)
    if rec.policy.is_pure_method(kind, name):
        for x in (value, *args, *kwargs.values()):
            content(rec, x)
        args = tuple([called_back(rec, x) for x in args])
        kwargs = {name: called_back(rec, x) for name, x in kwargs.items()}
        return _passed(rec, function, value, args, kwargs, owner)
    rec.policy.refuse_c(rec, function)


def called_back(rec: Recorder, value: Any) -> Any:
    """An argument of code that calls the functions it is given, and looks at what they give."""
    return rec.judged(value) if callable(value) and not is_class(value) else value


_ITERATES: Final = frozenset({"join", "fromkeys"})
_OF_OBJECT: Final = frozenset(
    {
        "__init__",
        "__init_subclass__",
        "__format__",
        "__str__",
        "__sizeof__",
        "__reduce_ex__",
        "__reduce__",
        "__getstate__",
    }
)


def _unbound(kind: type, name: str, function: Any) -> Any:
    method = getattr(kind, name)
    return (
        method
        if type(method) is not types.BuiltinFunctionType
        else lambda _, *args, **kwargs: function(*args, **kwargs)
    )


def _passed(rec: Recorder, function: Any, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any], owner: Any) -> Any:
    return function, args if owner is None else (value, *args), kwargs


# Special methods ------------------------------------------------------------------------------------------------------


def _set_attribute(rec: Recorder, value: Any, owner: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    if is_class(value):
        return None
    attributes.write_plain(rec, value, *args)
    return returning(None)


def _delete_attribute(rec: Recorder, value: Any, owner: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    if is_class(value) or (
        type(lookup(type(value), "__delattr__")) is FunctionType and rec.source_of(value) is not None
    ):
        rec.refuse(f"an attribute of {described(value)} is deleted")
    attributes.delete(rec, value, *args)
    return returning(None)


def _get_attribute(rec: Recorder, value: Any, owner: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    if is_class(value) and owner is not object:
        return returning(attributes.of_class(rec, value, *args))
    return returning(attributes.generic(rec, value, args[0], use_hook=False))


def _reduced(rec: Recorder, value: Any, owner: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """What ``copy`` and ``pickle`` take of an object: all its attributes."""
    if rec.source_of(value) is None or not is_python_class(type(value)):
        return None
    space = attributes.read(rec, value, "__dict__") if instance_dict(value) is not None else None
    if space is None or container_of(type(value)) is not None:
        rec.refuse(f"{described(value)} is copied")
    content(rec, space)
    return None


def _class_of(rec: Recorder, value: Any, owner: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    if is_class(value) and owner is None:
        return rec.constructed(value, args, kwargs)
    if owner is type:
        return rec.constructed(value, args, kwargs)
    return None


def _is_objects_own(value: Any, name: str, owner: Any) -> bool:
    """Whether a special method is the one that all objects have."""
    return owner is object or (owner is None and lookup(type(value), name) is getattr(object, name))


def _same(rec: Recorder, value: Any, owner: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    if not args or not _is_objects_own(value, "__eq__", owner):
        return None
    return returning(rec.hooks.identity(False, value, args[0]) or NotImplemented)


def _hashed(rec: Recorder, value: Any, owner: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    if not _is_objects_own(value, "__hash__", owner):
        return None
    rec.pinned(value)
    if rec.source_of(value) is None:
        rec.refuse("the hash of an object made in the function differs from run to run")
    return returning(object.__hash__(value))


def _repr(rec: Recorder, value: Any, owner: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    if _is_objects_own(value, "__repr__", owner):
        rec.refuse("the text of an object shows its address", "give its class a __repr__")
    return None


_SPECIAL: Final = {
    "__setattr__": _set_attribute, "__delattr__": _delete_attribute, "__getattribute__": _get_attribute,
    "__reduce_ex__": _reduced, "__reduce__": _reduced, "__getstate__": _reduced, "__call__": _class_of,
    "__eq__": _same, "__hash__": _hashed, "__repr__": _repr,
}  # fmt: skip


_NOT_WATCHED: Final = frozenset({"__subclasses__", "__dir__"})  # what a class tells of others than itself
_OF_ARGUMENTS_UNREAD: Final = frozenset(
    {"__init__", "__prepare__", "__init_subclass__", "__or__", "__ror__", "__class_getitem__", "__getitem__"}
)
_OF_ARGUMENTS: Final = frozenset(
    {"fromkeys", "fromhex", "from_bytes", "maketrans", "from_iterable", "fromisoformat", "combine", "strptime"}
)


def _of_class(rec: Recorder, kind: Any, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a class written in C: of ``type``, or a class method of a C class."""
    if name == "__new__":
        metaclass_of = args[0] if args else object
        for value in args[1:]:
            if type(value) is not tuple or rec.source_of(value) is not None or container_of(metaclass_of) is not tuple:
                content(rec, value)
        if issubclass(metaclass_of, type):  # a class is made
            return returning(rec.makes_class(function, args, kwargs))
        return function, args, kwargs
    if name == "mro" or (name in ("__instancecheck__", "__subclasscheck__") and args):
        return function, args, kwargs
    if name in _NOT_WATCHED:
        rec.refuse(f"{described(kind)} is asked for {name}")
    if name in _OF_ARGUMENTS_UNREAD:
        return function, args, kwargs
    if name in _OF_ARGUMENTS:
        for value in kwargs.values():
            content(rec, value)
        values = tuple([_looked_into(rec, x) for x in args])
        if name == "from_iterable":
            values = tuple([map(rec.hooks.unpack, x) for x in values])
        return function, values, kwargs
    answer = rec.policy.class_method(kind, name)
    if answer is not None:
        return answer(rec, function, args, kwargs)
    rec.policy.refuse_c(rec, function)


def _looked_into(rec: Recorder, value: Any) -> Any:
    """An argument of C code that takes bytes or iterates."""
    kind = type(value)
    return rec.hooks.unpack(value) if container_of(kind) or is_python_class(kind) else content(rec, value)


def _formatted(rec: Recorder, text: str, args: tuple[Any, ...], named: Any) -> str:
    """``str.format`` and ``str.format_map``, whose fields read attributes and items."""
    formatter = string.Formatter()

    def field(name: str) -> Any:
        first, rest = _split(name)
        value = args[first] if type(first) is int else rec.hooks.get_item(named, first)
        for is_attribute, part in rest:
            value = attributes.read(rec, value, part) if is_attribute else rec.hooks.get_item(value, part)
        return value

    out: list[str] = []
    automatic = 0
    for literal, name, spec, conversion in formatter.parse(text):
        out.append(literal)
        if name is None:
            continue
        if name == "" or name[0] in ".[":
            name, automatic = f"{automatic}{name}", automatic + 1
        how = {None: 0, "s": 1, "r": 2, "a": 3}[conversion]
        inner = _formatted(rec, spec, args, named) if spec and "{" in spec else spec
        out.append(rec.hooks.format(how, field(name), inner or ""))
    whole: str = rec.actor.build_string(tuple(out))
    return whole


def _split(name: str) -> tuple[Any, Any]:
    return _string.formatter_field_name_split(name)


# Containers -----------------------------------------------------------------------------------------------------------


def _of_container(
    rec: Recorder, value: Any, base: Any, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if name == "__init__" or name == "__new__":
        if rec.source_of(value) is not None and name == "__init__":
            rec.refuse("a container outside is initialised again")
        values = tuple([rec.hooks.unpack(x) if type(x) not in PLAIN else x for x in args])
        return function, values if function.__self__ is value else (value, *values), kwargs
    if type(value) is not collections.OrderedDict and isinstance(value, collections.OrderedDict):
        _require_own_items(rec, type(value), name)
    if name in CHANGES.get(base, ()):
        return returning(change(rec, value, base, name, args, kwargs))
    reader, counts = _READS.get((base, name)) or _READS.get((None, name)) or (None, ())
    if reader is not None and not kwargs and len(args) in counts:
        return returning(reader(rec, value, *args))
    content(rec, value)
    untouched = SETS if base in SETS else ()
    values = tuple(
        [
            rec.hooks.unpack(x)
            if is_python_class(type(x)) and not _is_element(base, name) and container_of(type(x)) not in untouched
            else x
            for x in args
        ]
    )
    return returning(rec.calls_c(_method(rec, value, base, name), (value, *values), kwargs))


def _require_own_items(rec: Recorder, kind: type, name: str) -> None:
    """An OrderedDict reads and writes its items by the methods of its class."""
    check_absent(rec, kind)
    if name in _BY_ITS_ITEMS and any(own_method(kind, method) is not None for method in _OF_ITEMS):
        rec.refuse(f"{name}() of a {kind.__name__}, an OrderedDict with methods of its own, is called")


_BY_ITS_ITEMS: Final = ("setdefault", "pop", "popitem", "update", "copy", "__ior__", "__or__", "__ror__")
_OF_ITEMS: Final = ("__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__", "keys")


def _is_element(base: Any, name: str) -> bool:
    return name in ("index", "count", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


def _owner(rec: Recorder, value: Any, name: str) -> Any:
    """The class below those of the user's that has a method."""
    for base in type(value).__mro__:
        if (not is_python_class(base) or rec.policy.is_transparent(base)) and name in base.__dict__:
            return base
    return type(value)


def _get(rec: Recorder, value: Any, key: Any, default: Any = None) -> Any:
    return get_item(rec, value, key) if has_key(rec, value, key, rec.source_of(value)) else default


def _missing_aware(rec: Recorder, value: Any, key: Any) -> Any:
    kind = type(value)
    if container_of(kind) is dict and is_python_class(kind) and not has_key(rec, value, key, rec.source_of(value)):
        missing = rec.class_attribute(kind, "__missing__")
        if type(missing) is FunctionType:
            return rec.invoke(missing, (value, key))
    return get_item(rec, value, key)


def _copy_of_dict(rec: Recorder, value: Any) -> Any:
    return dict(pairs(rec, value)) if type(value) is dict else rec.calls_c(_method(rec, value, dict, "copy"), (value,))


def _copy_of_list(rec: Recorder, value: Any) -> Any:
    return list(items(rec, value)) if type(value) is list else rec.calls_c(_method(rec, value, list, "copy"), (value,))


def _view(name: str) -> Any:
    def read(rec: Recorder, value: Any) -> Any:
        if type(value) is dict:
            return view(rec, value, name)
        content(rec, value)
        return rec.calls_c(_method(rec, value, dict, name), (value,))

    return read


_READS: Final[dict[Any, tuple[Any, tuple[int, ...]]]] = {  # and how many arguments they take; others raise
    (dict, "get"): (_get, (1, 2)),
    (dict, "copy"): (_copy_of_dict, (0,)),
    (list, "copy"): (_copy_of_list, (0,)),
    **{(dict, name): (_view(name), (0,)) for name in ("keys", "values", "items")},
    (None, "__getitem__"): (_missing_aware, (1,)),
    (None, "__contains__"): (is_member, (1,)),
    (None, "__len__"): (length, (0,)),
}


def change(rec: Recorder, value: Any, base: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method that changes its container."""
    if name == "__setitem__" and len(args) == 2 and type(args[0]) is slice and base is not dict:
        args = args[0], list(iter(rec.hooks.unpack(args[1])))
    if name in TAKES_ITEMS:
        args = additions.items_of(rec, args, base, name, lambda *parts: change(rec, value, base, name, parts, {}))
    again = followed.changed_by(rec, value, name, args, kwargs)
    if again is not None:
        return again[0]
    source = rec.source_of(value)
    if source is None:
        for x in args[: 1 if base is dict else None]:  # the key, or what is merged
            rec.hashed(x) if base in (dict, set) else None
        return _apply(rec, value, base, name, args, kwargs)
    effects = rec.effects
    if base is bytearray:  # which keeps no objects
        args = tuple([content(rec, x) for x in args])
    if base is collections.deque:
        longest(rec, value, source)
    if base is dict:
        handled = _change_dict(rec, value, name, args, kwargs)
        if handled is not MISSING:
            return handled
    if (
        not (base is list and name in GROWS)
        and not (base is collections.deque and name in ("append", "appendleft", "extend"))
        and not (base is set and name in ("add", "discard", "update") and all(map(is_plain, args)))
        and name != "clear"
    ):
        laid_out(rec, value) if name in _BY_POSITION else content(rec, value)
    for x in (*args, *kwargs.values()):
        content(rec, x) if base in (set, dict) else None
    if name == "sort":  # what is in it decides on the order, which is done again without the key
        effects.will_change(value, base)
        effects.appended.pop(id(value), None)
        result = _apply(rec, value, base, name, args, kwargs)
        items = list(list.__iter__(value))
        effects.record(changes.Setting(list.__setitem__), value, slice(None), items, f"{source}.sort()")
        return result
    was_changed = effects.is_changed(value)
    effects.will_change(value, base)
    added = len(args[0]) if name == "extend" else 1
    if (
        name in GROWS
        and (not was_changed or id(value) in effects.appended)
        and (base is list or has_room(rec, value, source, added))
    ):
        effects.appended[id(value)] = effects.appended.get(id(value), 0) + added
    else:
        effects.appended.pop(id(value), None)
        if name == "clear" or base is dict:  # of a dict whose content was read: what is left in it is known
            effects.replaced.add(id(value))
    try:
        result = _apply(rec, value, base, name, args, kwargs)
    except Exception:
        if base is set and name in TAKES_ITEMS:
            rec.refuse(f"{name}() of '{source}' fails, perhaps after some of its changes")
        content(rec, value)  # and so it will at later calls
        raise
    if base is dict:
        effects.mirror(value)
    if base is set and name == "pop":  # which member it takes hangs on what the set has been through
        name, args = "discard", (result,)
    method = _method(rec, value, base, name)
    label = f"{source}.{name}(...)"
    effects.record(changes.CallingMethod(method), value, None, (list(args), dict(kwargs)), label)
    return result


def _method(rec: Recorder, value: Any, base: Any, name: str) -> Any:
    return getattr(base if type(value) in CONTAINERS else _owner(rec, value, name), name)


def _apply(rec: Recorder, value: Any, base: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    method = _method(rec, value, base, name)
    if name == "sort" and kwargs.get("key") is not None:
        kwargs = {**kwargs, "key": rec.judged(kwargs["key"])}
    if not rec.classes_in(args[: name in _TAKES_INDEX] if name in _BY_POSITION else (value, *args)):
        return method(value, *args, **kwargs)
    return rec.calls_c(method, (value, *args), kwargs)


def _change_dict(rec: Recorder, value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The changes of a dict that concern single keys; MISSING for others."""
    if name in ("update", "__ior__"):
        try:
            merged: dict[Any, Any] = dict(*args, **kwargs)
        except (TypeError, ValueError):
            rec.refuse(f"{name}() of '{rec.source_of(value)}' fails, perhaps after some of its changes")
        for key, item in merged.items():
            set_key(rec, value, key, item)
        return value if name == "__ior__" else None
    if not args or len(args) > 2 or kwargs:
        return MISSING
    key = args[0]
    if name == "setdefault":
        if has_key(rec, value, key, rec.source_of(value)):
            return get_item(rec, value, key)
        set_key(rec, value, key, args[1] if len(args) > 1 else None)
        return args[1] if len(args) > 1 else None
    if name == "pop":
        if not has_key(rec, value, key, rec.source_of(value)):
            if len(args) > 1:
                return args[1]
            raise KeyError(key)
        item = get_item(rec, value, key)
        delete_key(rec, value, key)
        return item
    if name == "__setitem__":
        return set_key(rec, value, *args)
    if name == "__delitem__":
        has_key(rec, value, key, rec.source_of(value))
        return delete_key(rec, value, key)
    return MISSING


def set_key(rec: Recorder, value: Any, key: Any, item: Any) -> None:
    """``value[key] = item`` of a dict from outside."""
    if not is_simple(key) and not rec.policy.is_pinned_key(rec, key):
        content(rec, value)
        content(rec, key)
        rec.pinned(key)
    rec.effects.will_change(value, dict)
    store = _method(rec, value, dict, "__setitem__")
    store(value, key, item)
    rec.effects.written.add((id(value), key if is_simple(key) else id(key)))
    rec.keep(key)
    rec.effects.mirror(value, key)
    rec.effects.record(changes.Setting(store), value, key, item, f"{rec.source_of(value)}[...] = ...")


def delete_key(rec: Recorder, value: Any, key: Any) -> None:
    """``del value[key]`` of a dict from outside."""
    if not is_simple(key):
        content(rec, value)
    rec.effects.will_change(value, dict)
    drop = _method(rec, value, dict, "__delitem__")
    drop(value, key)
    rec.effects.written.add((id(value), key if is_simple(key) else id(key)))
    rec.effects.mirror(value)
    rec.effects.record(changes.Deleting(drop), value, key, None, f"del {rec.source_of(value)}[...]")
