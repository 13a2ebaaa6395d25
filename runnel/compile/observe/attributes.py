"""Attribute access as in ``object.__getattribute__``: data descriptor, instance, class, then ``__getattr__``.

Each place that was looked at is a read, empty ones included. Python code on the way (properties, descriptors,
``__getattr__``, ``__setattr__``) runs observed.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import types
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MethodType
from typing import Any, Final

from runnel.compile.observe.effects import SET_ATTRIBUTE
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source, item_of
from runnel.compile.observe.values import (
    C_FUNCTIONS,
    CONTAINERS,
    MISSING,
    PLAIN,
    SYMBOLIC,
    container_of,
    described,
    instance_dict,
    is_class,
    is_data_descriptor,
    is_python_class,
    is_slot,
    is_users_method,
    lookup,
    mro,
    namespace,
)

_GENERIC: Final = frozenset(
    kind.__getattribute__ for kind in (object, int, str, float, bytes, complex, BaseException, property, *CONTAINERS)
)
_FUNCTION_PARTS: Final = frozenset(
    {"__defaults__", "__kwdefaults__", "__name__", "__qualname__", "__doc__", "__module__", "__annotations__"}
)
_TYPE_PARTS: Final = frozenset({"__name__", "__qualname__", "__module__", "__doc__"})
_BOUND: Final[dict[type, tuple[str, ...]]] = {
    MethodType: ("__self__", "__func__"),
    BuiltinFunctionType: ("__self__", "__name__"),
    types.MethodWrapperType: ("__self__", "__name__"),
}


def read(rec: Recorder, value: Any, name: str) -> Any:
    """Return ``value.name``."""
    kind = type(value)
    if kind in PLAIN or kind in SYMBOLIC or kind is slice:
        plain = SYMBOLIC.get(kind, kind)
        if not hasattr(plain, name):  # whatever the value is
            raise AttributeError(f"'{plain.__name__}' object has no attribute '{name}'", name=name, obj=value)
        return getattr(rec.concrete_number(value), name)
    if kind is types.ModuleType:
        return _of_module(rec, value, name)
    if is_class(value):
        return of_class(rec, value, name)
    if kind is FunctionType:
        return _of_function(rec, value, name)
    if kind is MethodType:
        return _of_method(rec, value, name)
    if kind is super:
        return _of_super(rec, value, name)
    answer = rec.policy.attribute(kind, name)
    return of_object(rec, value, name) if answer is None else answer(rec, value, name)


def read_or(rec: Recorder, value: Any, name: str, *default: Any) -> Any:
    """Return ``getattr(value, name, default)``."""
    name = rec.concrete_number(name)
    if issubclass(type(name), str) and issubclass(type(name), enum.Enum):
        rec.pinned(name)
        name = str.__str__(name)
    if type(name) is not str:
        rec.refuse(f"the name of an attribute is {described(name)}", "pass a str")
    try:
        return read(rec, value, name)
    except AttributeError:
        if default:
            return default[0]
        raise


def of_object(rec: Recorder, value: Any, name: str) -> Any:
    """Return ``value.name`` by the rules for instances."""
    kind = type(value)
    if not is_python_class(kind):
        return _of_c_object(rec, value, name)
    rec.require_origin(value)
    getter = rec.class_attribute(kind, "__getattribute__")
    if getter not in _GENERIC:
        if issubclass(kind, types.ModuleType) and type(getter) is not FunctionType:
            return _of_module(rec, value, name)
        if type(getter) is FunctionType or rec.source_of(value) is not None:
            rec.refuse(
                f"{described(value)} looks up its attributes in a custom way (__getattribute__)",
                "read what is needed outside the compiled function",
            )
        return getattr(value, name)
    return generic(rec, value, name)


def generic(rec: Recorder, value: Any, name: str, use_hook: bool = True) -> Any:
    """Return what ``object.__getattribute__`` gives, or ``__getattr__`` where that raises AttributeError."""
    try:
        return _attribute_of(rec, value, name)
    except AttributeError:
        hook: Any = rec.class_attribute(type(value), "__getattr__") if use_hook else MISSING
        if hook is MISSING:
            raise
        if type(hook) is FunctionType:
            return rec.passed(hook, (value, name))
        return rec.passed(hook.__get__(value, type(value)), (name,))


def _attribute_of(rec: Recorder, value: Any, name: str) -> Any:
    kind, source = type(value), rec.source_of(value)
    attribute, at = rec.class_lookup(kind, name)
    if attribute is not MISSING and _goes_first(rec, attribute, at):
        return _from_descriptor(rec, value, name, attribute, at, source)
    space = instance_dict(value)
    if space is not None:
        item = _instance_item(rec, value, space, name, source, attribute is MISSING)
        if item is not MISSING:
            if at is not None and not is_python_class(type(attribute)):
                rec.log.check(at, "is_data_descriptor({v})", f"type of {at}")
            return item
    if attribute is not MISSING:
        return _from_class(rec, value, kind, name, attribute, at)
    rec.policy.on_absent_attribute(rec, kind, name)
    return object.__getattribute__(value, name)  # raises


def _goes_first(rec: Recorder, attribute: Any, at: Source | None) -> bool:
    """Return whether a class attribute takes precedence over the instance. That it does not is a read, too."""
    if at is None or not is_python_class(type(attribute)):
        return is_data_descriptor(attribute)
    rec.reach(attribute, at)
    return any(rec.class_attribute(type(attribute), name) is not MISSING for name in ("__set__", "__delete__"))


def _instance_item(
    rec: Recorder, value: Any, space: dict[str, Any], name: str, source: Source | None, is_safe: bool
) -> Any:
    """Return what an object holds in its ``__dict__``, ``space``, or MISSING."""
    if source is None and rec.source_of(space) is not None:  # ``self.__dict__ = shared``
        return rec.hooks.get_item(space, name) if rec.hooks.contains(False, name, space) else MISSING
    item = dict.get(space, name, MISSING)
    if source is None or (id(space), name) in rec.effects.written or id(space) in rec.effects.replaced:
        return item
    advances_version = rec.policy.advances_version(type(value))
    if item is MISSING:
        looks_into = (id(space),) if advances_version else None
        rec.log.check(source, f"{name!r} in {{v}}.__dict__", f"{source}.{name}", looks_into=looks_into)
        return item
    at = _instance_source(rec, value, source, name, item, is_safe)
    if advances_version and rec.policy.changes_by_version(item):
        at.place = id(space), name
    return rec.reach_symbolic(item, at)


def dict_source(rec: Recorder, value: Any, source: Source) -> Source:
    """Return the source of an object's ``__dict__``."""
    at = rec.log.source(source, "{p}.__dict__", f"{source}.__dict__", instance_dict(value))
    if rec.policy.advances_version(type(value)):
        at.place = id(value), "__dict__"
    return at


def _instance_source(rec: Recorder, value: Any, source: Source, name: str, item: Any, is_safe: bool) -> Source:
    """Return a read of an attribute that runs no code of the class, whatever was deleted meanwhile."""
    kind, label = type(value), f"{source}.{name}"
    is_generic = lookup(kind, "__getattribute__") is object.__getattribute__ and lookup(kind, "__getattr__") is MISSING
    if is_safe and is_generic and name.isidentifier():
        return rec.log.source(source, f"{{p}}.{name}", label, item)
    return rec.log.source(dict_source(rec, value, source), f"{{p}}[{name!r}]", label, item)


def _from_descriptor(
    rec: Recorder, value: Any, name: str, descriptor: Any, at: Source | None, source: Source | None
) -> Any:
    kind = type(descriptor)
    if kind is property:
        getter = _part(rec, descriptor, "fget", at)
        return object.__getattribute__(value, name) if getter is None else rec.passed(getter, (value,))
    if at is not None:
        rec.reach(descriptor, at)
    if type(lookup(kind, "__get__")) is FunctionType:
        return rec.passed(rec.class_attribute(kind, "__get__"), (descriptor, value, type(value)))
    if name == "__class__":
        return type(value)
    try:
        result = descriptor.__get__(value, type(value))  # a slot, a field of a tuple, or a part of a C object
    except AttributeError:
        if source is not None and (id(value), name) not in rec.effects.written:
            rec.log.check(source, f"is_filled({{v}}, {name!r})", f"{source}.{name}")
        raise
    if source is None or (id(value), name) in rec.effects.written:
        return result
    if name == "__dict__" and type(descriptor) is GetSetDescriptorType:
        return rec.reach(result, dict_source(rec, value, source))
    if is_slot(descriptor) or type(descriptor) is GetSetDescriptorType or at is not None:
        return rec.reach_symbolic(result, rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", result))
    rec.refuse(f"'{source}.{name}' is computed by C code")


def _part(rec: Recorder, descriptor: Any, part: str, at: Source | None) -> Any:
    """Return a function that a descriptor is made of."""
    value = getattr(descriptor, part)
    if at is not None:
        rec.reach(descriptor, at)
    owner = rec.source_of(descriptor)
    if owner is not None:
        rec.reach(value, rec.log.source(owner, f"{{p}}.{part}", f"{owner}", value))
    return value


def _from_class(rec: Recorder, value: Any, kind: type, name: str, attribute: Any, at: Source | None) -> Any:
    """Return a class attribute read through an instance. Functions are bound to it."""
    if at is not None:
        attribute = rec.reach_symbolic(attribute, at)
    what = type(attribute)
    if what is functools.cached_property:
        result = rec.passed(_part(rec, attribute, "func", at), (value,))
        write_instance(rec, value, attribute.attrname or name, result)
        return result
    return _bound(rec, attribute, value, kind, at)


def _bound(rec: Recorder, attribute: Any, value: Any, kind: type, at: Source | None) -> Any:
    """Return a class attribute as an attribute of ``value``, or of the class where ``value`` is None."""
    what = type(attribute)
    if what is FunctionType:
        return attribute if value is None else MethodType(attribute, value)
    if what is staticmethod:
        return _part(rec, attribute, "__func__", at)
    if what is classmethod:
        function = _part(rec, attribute, "__func__", at)
        return MethodType(function, kind) if type(function) is FunctionType else function.__get__(kind)
    getter = rec.class_attribute(what, "__get__")
    if getter is MISSING:
        return attribute
    if type(getter) is FunctionType:
        return rec.passed(getter, (attribute, value, kind))
    return attribute.__get__(value, kind)


# Modules, classes, functions ------------------------------------------------------------------------------------------


def _of_module(rec: Recorder, module: Any, name: str) -> Any:
    space, source = instance_dict(module), rec.source_of(module)
    if space is None or source is None or (id(space), name) in rec.effects.written:
        return getattr(module, name)
    at = rec.log.source(source, "{p}.__dict__", f"{source}.__dict__", space)
    if name == "__dict__":
        return rec.reach(space, at)
    raw = dict.get(space, name, MISSING)
    label = f"{module.__name__}.{name}"
    if raw is not MISSING:
        is_direct = type(module) is types.ModuleType and name.isidentifier()
        found = (
            rec.log.source(source, f"{{p}}.{name}", label, raw)
            if is_direct
            else rec.log.source(at, item_of(name, raw), label, raw)
        )
        return rec.reach_symbolic(raw, found)
    rec.reach(raw, rec.log.source(at, item_of(name, raw), label, raw))
    hook = dict.get(space, "__getattr__", MISSING)
    rec.reach(hook, rec.log.source(at, "{p}.get('__getattr__', MISSING)", f"{module.__name__}.__getattr__", hook))
    if hook is MISSING:
        rec.log.check(source, "type({v}) is not {0}", f"type of {source}", (types.ModuleType,))
        return getattr(module, name)
    return rec.passed(hook, (name,))


def of_class(rec: Recorder, kind: type, name: str) -> Any:
    """Return ``kind.name`` of a class: the metaclass's data descriptors, the class and its bases, the metaclass."""
    meta = type(kind)
    if meta is not type and type(lookup(meta, "__getattribute__")) is FunctionType:
        rec.refuse(f"{described(kind)} has a metaclass with a custom __getattribute__")
    above, above_at = rec.class_lookup(meta, name)
    if above is not MISSING and _goes_first(rec, above, above_at):
        return _of_metaclass(rec, kind, name, above, above_at)
    attribute, at = rec.class_lookup(kind, name)
    if attribute is not MISSING:
        attribute = attribute if at is None else rec.reach_symbolic(attribute, at)
        return _bound(rec, attribute, None, kind, at)
    if above is not MISSING:
        if above_at is not None:
            rec.reach(above, above_at)
        return _bound(rec, above, kind, meta, above_at)
    rec.policy.on_absent_attribute(rec, kind, name)
    hook = rec.class_attribute(meta, "__getattr__")
    return getattr(kind, name) if hook is MISSING else rec.passed(hook, (kind, name))


def _of_metaclass(rec: Recorder, kind: type, name: str, attribute: Any, at: Source | None) -> Any:
    if type(attribute) is property:
        return rec.passed(_part(rec, attribute, "fget", at), (kind,))
    value, source = type.__getattribute__(kind, name), rec.source_of(kind)
    if not is_python_class(kind) or source is None:
        return value
    if name in _TYPE_PARTS or type(value) is tuple:
        return rec.reach(value, rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", value))
    if name == "__dict__" and (space := rec.class_space(kind)) is not None:
        return rec.reach(value, space)
    if type(value) is dict:
        rec.refuse(f"{name} of {described(kind)} is read", "read the attribute itself")
    return value


def _of_function(rec: Recorder, function: FunctionType, name: str) -> Any:
    source = rec.source_of(function)
    if source is None:
        return getattr(function, name)
    if name in _FUNCTION_PARTS or name in ("__globals__", "__code__"):
        value = getattr(function, name)
        return rec.reach(value, rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", value))
    space = rec.log.source(source, "{p}.__dict__", f"{source}.__dict__", function.__dict__)
    if name == "__dict__":
        return rec.reach(function.__dict__, space)
    if name.startswith("__"):
        if name in ("__closure__", "__builtins__"):
            rec.refuse(f"{name} of a function is read")
        if name not in function.__dict__ and hasattr(type(function), name):
            return getattr(function, name)
    if (id(function.__dict__), name) in rec.effects.written:
        return getattr(function, name)
    value = dict.get(function.__dict__, name, MISSING)
    item = rec.reach_symbolic(value, rec.log.source(space, item_of(name, value), f"{source}.{name}", value))
    return getattr(function, name) if item is MISSING else item


def _of_method(rec: Recorder, method: Any, name: str) -> Any:
    if name not in ("__self__", "__func__"):
        return MethodType if name == "__class__" else read(rec, _of_method(rec, method, "__func__"), name)
    source, value = rec.source_of(method), getattr(method, name)
    if source is not None:
        rec.reach(value, rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", value))
    return value


def _of_super(rec: Recorder, proxy: Any, name: str) -> Any:
    start, value, kind = proxy.__thisclass__, proxy.__self__, proxy.__self_class__
    if name == "__class__" or kind is None:
        return getattr(proxy, name)
    order = mro(kind)
    for base in order[order.index(start) + 1 :]:
        space = None if (id(base), name) in rec.effects.written else rec.class_space(base)
        attribute = namespace(base).get(name, MISSING)
        if attribute is MISSING:
            if space is not None:
                rec.log.check(space, f"{name!r} in {{v}}", f"{space}.{name}")
            continue
        at = None
        if space is not None:
            at = rec.log.source(space, item_of(name, attribute), f"{space}.{name}", attribute)
            rec.reach(attribute, at)
        else:
            rec.policy.on_fixed_attribute(rec, base, name)
        if type(attribute) is property:
            return rec.passed(_part(rec, attribute, "fget", at), (value,))
        return _bound(rec, attribute, None if value is kind else value, kind, at)
    rec.policy.on_absent_attribute(rec, kind, name)
    return getattr(proxy, name)  # raises


def _of_c_object(rec: Recorder, value: Any, name: str) -> Any:
    """Return an attribute of an object of C code: a method of its class, or an attribute."""
    source, kind = rec.source_of(value), type(value)
    space = None if is_data_descriptor(lookup(kind, name)) else instance_dict(value)
    if space is not None and name in space:
        return _instance_item(rec, value, space, name, source, is_safe=False)
    try:
        attribute = getattr(value, name)
    except AttributeError:
        if source is not None:
            rec.log.check(source, f"{{0}}({{v}}, {name!r})", f"{source}.{name}", (hasattr,))
        raise
    if source is None or (id(space), name) in rec.effects.written:
        return attribute
    is_own = getattr(attribute, "__self__", None) is value or not is_data_descriptor(lookup(kind, name))
    if type(attribute) in C_FUNCTIONS and is_own:
        return attribute
    if container_of(kind) is None and name not in _BOUND.get(kind, ()) and not rec.policy.is_readable(kind):
        rec.policy.look_into(rec, value, source)
        rec.refuse(
            f"'{source}.{name}' of {described(value)} cannot be watched: its class is written in C",
            "read it outside and pass it as an argument",
        )
    return rec.reach(attribute, rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", attribute))


def reach_parts(rec: Recorder, value: Any, names: tuple[str, ...]) -> None:
    """Read what an object of C code, such as a partial, is made of."""
    at = rec.source_of(value)
    if at is None:
        return
    for name in names:
        part = getattr(value, name)
        rec.reach(part, rec.log.source(at, f"{{p}}.{name}", f"{at}.{name}", part))
        if type(part) in CONTAINERS:
            rec.hooks.reach_items(part)


# Writing --------------------------------------------------------------------------------------------------------------


def write(rec: Recorder, value: Any, name: str, new: Any) -> None:
    """Do ``value.name = new``."""
    kind = type(value)
    if type(rec.concrete_number(name)) is not str:
        rec.refuse(f"the name of an attribute is {described(name)}", "pass a str")
    if is_python_class(kind) and not is_class(value):
        own = rec.class_attribute(kind, "__setattr__")
        if is_users_method(kind, "__setattr__", own):
            rec.passed(own, (value, name, new))
            return
    write_plain(rec, value, rec.concrete_number(name), new)


def write_plain(rec: Recorder, value: Any, name: str, new: Any) -> None:
    """Do what ``object.__setattr__`` does."""
    kind = type(value)
    attribute, at = rec.class_lookup(kind, name) if is_python_class(kind) else (lookup(kind, name), None)
    if attribute is not MISSING and not is_class(value) and _goes_first(rec, attribute, at):
        if type(attribute) is property:
            setter = _part(rec, attribute, "fset", at)
            if setter is None:
                object.__setattr__(value, name, new)  # raises
            rec.passed(setter, (value, new))
            return
        if type(lookup(type(attribute), "__set__")) is FunctionType:
            if at is not None:
                rec.reach(attribute, at)
            rec.passed(rec.class_attribute(type(attribute), "__set__"), (attribute, value, new))
            return
        if not is_slot(attribute):
            if rec.source_of(value) is not None:
                rec.refuse(
                    f"'{rec.source_of(value)}.{name}' is set by C code, which cannot be undone",
                    "set it outside the compiled function",
                )
            setattr(value, name, rec.concrete_number(new))
            return
    write_instance(rec, value, name, new)


def write_instance(rec: Recorder, value: Any, name: str, new: Any) -> None:
    """Set an attribute that the object itself holds; an effect where the object comes from outside."""
    if is_class(value):
        _write_class(rec, value, name, new)
        return
    source, space = rec.source_of(value), instance_dict(value)
    is_in_slot = is_slot(lookup(type(value), name))
    if source is None:
        if not is_in_slot and space is not None and rec.source_of(space) is not None:
            rec.hooks.set_item(new, space, name)
        else:
            SET_ATTRIBUTE(value, name, new)
        return
    if is_in_slot:
        before = MISSING
        with contextlib.suppress(AttributeError):
            before = lookup(type(value), name).__get__(value, type(value))
        back = object.__delattr__ if before is MISSING else object.__setattr__
        rec.effects.undo_by(lambda: back(value, name, *[] if before is MISSING else [before]))
        rec.effects.written.add((id(value), name))
    elif space is not None:
        rec.effects.will_change(space, dict)
        rec.effects.written.add((id(space), name))
        rec.keep(space)
    SET_ATTRIBUTE(value, name, new)  # raises where there is no place for it
    rec.effects.record(SET_ATTRIBUTE, value, name, new, f"{source}.{name} = ...")


def _write_class(rec: Recorder, kind: Any, name: str, new: Any) -> None:
    if type(lookup(type(kind), "__setattr__")) is FunctionType:
        rec.refuse(f"an attribute of {described(kind)} is set through its metaclass")
    if rec.source_of(kind) is None and rec.class_space(kind) is None:
        rec.refuse(f"{name} of {described(kind)} is set", "set it outside the compiled function")
    if name.startswith("__"):
        rec.refuse(f"{name} of {described(kind)} is set")
    before = namespace(kind).get(name, MISSING)
    rec.effects.undo_by(
        (lambda: type.__delattr__(kind, name)) if before is MISSING else (lambda: type.__setattr__(kind, name, before))
    )
    type.__setattr__(kind, name, new)
    rec.effects.written.add((id(kind), name))
    rec.effects.record(SET_ATTRIBUTE, kind, name, new, f"{kind.__name__}.{name} = ...")


def delete(rec: Recorder, value: Any, name: str) -> None:
    """Do ``del value.name`` of an object that the run made."""
    kind, space = type(value), instance_dict(value)
    attribute = rec.class_lookup(kind, name)[0] if is_python_class(kind) else MISSING
    is_outside = rec.source_of(value) is not None or (space is not None and rec.source_of(space) is not None)
    is_deleter = lookup(type(attribute), "__delete__") is not MISSING and not is_slot(attribute)
    if is_outside or is_deleter or lookup(kind, "__delattr__") is not object.__delattr__:
        rec.refuse(f"{name} of {described(value)} is deleted", "set it to None")
    delattr(value, name)
