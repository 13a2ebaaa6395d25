"""Attribute lookup as in ``object.__getattribute__``: data descriptor, instance, class, then ``__getattr__``. Each
place that was looked at is a read; Python code on the way runs observed."""

from __future__ import annotations

import contextlib
import functools
import types
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MethodType
from typing import Any, Final

from runnel.compile.observe import changes
from runnel.compile.observe.classes import (
    MISSING,
    code_of,
    instance_dict,
    is_data_descriptor,
    is_python_class,
    is_slot,
    lookup,
    mro,
    namespace,
)  # fmt: skip
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import (
    C_FUNCTIONS,
    CONTAINERS,
    PLAIN,
    container_of,
    described,
    is_class,
    is_users_method,
)

_GENERIC: Final = frozenset(
    kind.__getattribute__ for kind in (object, int, str, float, bytes, complex, BaseException, property, *CONTAINERS)
)
_FUNCTION_PARTS: Final = frozenset(
    {"__defaults__", "__kwdefaults__", "__name__", "__qualname__", "__doc__", "__module__", "__annotations__"}
)
_METHOD_PARTS: Final = ("__self__", "__func__")
TYPE_PARTS: Final = frozenset({"__name__", "__qualname__", "__module__", "__doc__"})


def read(rec: Recorder, value: Any, name: str) -> Any:
    """``value.name``."""
    kind = type(value)
    if kind in PLAIN or kind is slice:
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
    if answer is not None:
        return answer(rec, value, name)
    return of_object(rec, value, name)


def read_or(rec: Recorder, value: Any, name: str, *default: Any) -> Any:
    """``getattr(value, name, default)``."""
    try:
        return read(rec, value, name)
    except AttributeError:
        if default:
            return default[0]
        raise


def of_object(rec: Recorder, value: Any, name: str) -> Any:
    """The same of an object that is no class, module, function or ``super()``, by the rules for Python's objects."""
    kind = type(value)
    if not is_python_class(kind):
        return _of_c_object(rec, value, name)
    getter, at = rec.class_lookup(kind, "__getattribute__")
    if at is not None:
        rec.reach(getter, at)
    if type(getter) is FunctionType:
        try:
            return rec.passed(getter, (value, name))
        except AttributeError:
            hook = rec.class_attribute(kind, "__getattr__")
            if hook is MISSING:
                raise
            return _from_hook(rec, hook, value, name)
    if getter not in _GENERIC:
        if rec.source_of(value) is None:
            return getattr(value, name)
        if not issubclass(kind, types.ModuleType):
            rec.refuse(f"{described(value)} looks up its attributes in a way of its own")
        return _of_module(rec, value, name)
    return generic(rec, value, name)


def generic(rec: Recorder, value: Any, name: str, use_hook: bool = True) -> Any:
    """What ``object.__getattribute__`` gives, and ``__getattr__`` where that raises AttributeError."""
    try:
        return _attribute_of(rec, value, name)
    except AttributeError:
        hook = rec.class_attribute(type(value), "__getattr__") if use_hook else MISSING
        if hook is MISSING:
            raise
        return _from_hook(rec, hook, value, name)


def _from_hook(rec: Recorder, hook: Any, value: Any, name: str) -> Any:
    """What ``__getattr__`` gives."""
    if type(hook) is FunctionType:
        return rec.passed(hook, (value, name))
    return rec.passed(rec.bind(hook, value, type(value)), (name,))


def _attribute_of(rec: Recorder, value: Any, name: str) -> Any:
    kind = type(value)
    source = rec.source_of(value)
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
    """Whether what a class holds goes before what its objects hold. That it does not is read, too."""
    if at is None or not is_python_class(type(attribute)):
        return is_data_descriptor(attribute)
    rec.reach(attribute, at)
    return any(rec.class_attribute(type(attribute), name) is not MISSING for name in ("__set__", "__delete__"))


def _instance_item(
    rec: Recorder, value: Any, space: dict[str, Any], name: str, source: Source | None, is_safe: bool
) -> Any:
    """What an object holds under a name in its ``__dict__``, ``space``; MISSING where it holds nothing."""
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
    """A read of an object's ``__dict__``: of one that advances the state version it is another once that has
    changed."""
    space = instance_dict(value)
    at = rec.log.source(source, "{p}.__dict__", f"{source}.__dict__", space)
    if rec.policy.advances_version(type(value)):
        at.place = id(value), "__dict__"
    return at


def _instance_source(rec: Recorder, value: Any, source: Source, name: str, item: Any, is_safe: bool) -> Source:
    """A read of an attribute that cannot run code of the class, whatever has been deleted meanwhile."""
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
        if getter is None:
            return object.__getattribute__(value, name)  # raises
        return rec.passed(getter, (value,))
    if at is not None:
        rec.reach(descriptor, at)
    getter = lookup(kind, "__get__")
    if type(getter) is FunctionType:
        return rec.passed(rec.class_attribute(kind, "__get__"), (descriptor, value, type(value)))
    if name == "__class__":
        return type(value)
    try:
        result = descriptor.__get__(
            value, type(value)
        )  # a slot, a field of a tuple, or a part of an object made by C code
    except AttributeError:
        if source is not None and (id(value), name) not in rec.effects.written:
            rec.log.check(source, f"is_filled({{v}}, {name!r})", f"{source}.{name}")
        raise
    if source is None or (id(value), name) in rec.effects.written:
        return result
    if name == "__dict__" and type(descriptor) is GetSetDescriptorType:
        return rec.reach(result, dict_source(rec, value, source))
    if is_slot(descriptor) or type(descriptor) in (GetSetDescriptorType, types.MemberDescriptorType) or at is not None:
        return rec.reach_symbolic(result, rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", result))
    rec.refuse(f"'{source}.{name}' is computed by C code")


def _part(rec: Recorder, descriptor: Any, part: str, at: Source | None) -> Any:
    """Something that a descriptor from outside is made of."""
    value = getattr(descriptor, part)
    if at is not None:
        rec.reach(descriptor, at)
    owner = rec.source_of(descriptor)
    if owner is not None:
        rec.reach(value, rec.log.source(owner, f"{{p}}.{part}", f"{owner}", value))
    return value


def _from_class(rec: Recorder, value: Any, kind: type, name: str, attribute: Any, at: Source | None) -> Any:
    """A class attribute read through an object: functions are bound to it."""
    if at is not None:
        attribute = rec.reach_symbolic(attribute, at)
    what = type(attribute)
    if what is FunctionType:
        return MethodType(attribute, value)
    if what is staticmethod:
        return _part(rec, attribute, "__func__", at)
    if what is classmethod:
        return rec.bound(_part(rec, attribute, "__func__", at), kind)
    if what is functools.cached_property:
        return _cached_property(rec, value, name, attribute, at)
    getter = rec.class_lookup(what, "__get__")[0] if at is not None else lookup(what, "__get__")
    if getter is MISSING:
        return attribute
    if type(getter) is FunctionType:
        return rec.passed(rec.class_attribute(what, "__get__"), (attribute, value, kind))
    return attribute.__get__(value, kind)


def _cached_property(rec: Recorder, value: Any, name: str, descriptor: Any, at: Source | None) -> Any:
    """Computed observed, and kept on the object: the first call of a function that initialises."""
    result = rec.invoke(_part(rec, descriptor, "func", at), (value,))
    write_instance(rec, value, descriptor.attrname or name, result)
    return result


# Modules, classes, functions ------------------------------------------------------------------------------------------


def _of_module(rec: Recorder, module: Any, name: str) -> Any:
    space = instance_dict(module)
    if space is None or name == "__dict__":
        if space is not None and rec.source_of(module) is not None:
            source = rec.source_of(module)
            rec.reach(space, rec.log.source(source, "{p}.__dict__", f"{source}.__dict__", space))
        return getattr(module, name)
    source = rec.source_of(module)
    if source is None or (id(space), name) in rec.effects.written:
        return getattr(module, name)
    at = rec.log.source(source, "{p}.__dict__", f"{source}.__dict__", space)
    raw = dict.get(space, name, MISSING)
    item = rec.reach_symbolic(
        raw, rec.log.source(at, f"{{p}}.get({name!r}, MISSING)", f"{module.__name__}.{name}", raw)
    )
    if raw is not MISSING:
        return item
    hook = dict.get(space, "__getattr__", MISSING)
    rec.reach(hook, rec.log.source(at, "{p}.get('__getattr__', MISSING)", f"{module.__name__}.__getattr__", hook))
    if hook is MISSING:
        rec.log.check(source, "type({v}) is not {0}", f"type of {source}", (types.ModuleType,))
        return getattr(module, name)
    return rec.passed(hook, (name,))


def of_class(rec: Recorder, kind: type, name: str) -> Any:
    """``kind.name`` of a class: the metaclass's data descriptors, the class and its bases, the metaclass."""
    meta = type(kind)
    if meta is not type:
        own = lookup(meta, "__getattribute__")
        if type(own) is FunctionType:
            return rec.invoke(rec.class_attribute(meta, "__getattribute__"), (kind, name))
    above, above_at = rec.class_lookup(meta, name)
    if above is not MISSING and _goes_first(rec, above, above_at):
        return _of_metaclass(rec, kind, name, above, above_at)
    attribute, at = rec.class_lookup(kind, name)
    if attribute is not MISSING:
        if at is not None:
            attribute = rec.reach_symbolic(attribute, at)
        what = type(attribute)
        if what is staticmethod:
            return _part(rec, attribute, "__func__", at)
        if what is classmethod:
            return rec.bound(_part(rec, attribute, "__func__", at), kind)
        getter = lookup(what, "__get__")
        if getter is MISSING or what is FunctionType:
            return attribute
        if type(getter) is FunctionType:
            return rec.passed(rec.class_attribute(what, "__get__"), (attribute, None, kind))
        return attribute.__get__(None, kind)
    if above is not MISSING:
        if above_at is not None:
            rec.reach(above, above_at)
        if type(above) is FunctionType:
            return MethodType(above, kind)
        getter = lookup(type(above), "__get__")
        return above if getter is MISSING else above.__get__(kind, meta)
    rec.policy.on_absent_attribute(rec, kind, name)
    hook = rec.class_attribute(meta, "__getattr__")
    if hook is not MISSING:
        return rec.invoke(hook, (kind, name))
    return getattr(kind, name)  # raises


def _of_metaclass(rec: Recorder, kind: type, name: str, attribute: Any, at: Source | None) -> Any:
    if type(attribute) is property:
        return rec.passed(_part(rec, attribute, "fget", at), (kind,))
    value = type.__getattribute__(kind, name)
    source = rec.source_of(kind)
    if name in TYPE_PARTS and is_python_class(kind) and source is not None:
        rec.reach(value, rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", value))
    elif name == "__dict__" and (space := rec.class_space(kind)) is not None:
        if any(key == id(kind) for key, _ in rec.effects.written):
            rec.refuse(f"the __dict__ of {described(kind)} is read after an attribute was set", "read it before")
        rec.reach(value, space)
    elif is_python_class(kind) and source is not None and type(value) in (tuple, dict):
        content_of = rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", value)
        rec.reach(value, content_of)
    return value


def _of_function(rec: Recorder, function: FunctionType, name: str) -> Any:
    source = rec.source_of(function)
    if source is None:
        return getattr(function, name)
    if name in _FUNCTION_PARTS:
        value = getattr(function, name)
        return rec.reach(value, rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", value))
    if name == "__code__":
        rec.log.check(source, "code_of({v}) is not {0}", f"code of {source}", (code_of(function),))
        return code_of(function)
    if name == "__globals__":
        value = function.__globals__
        return rec.reach(value, rec.log.source(source, "{p}.__globals__", f"{source}.__globals__", value))
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
    item = rec.reach_symbolic(value, rec.log.source(space, f"{{p}}.get({name!r}, MISSING)", f"{source}.{name}", value))
    return getattr(function, name) if item is MISSING else item


def _of_method(rec: Recorder, method: Any, name: str) -> Any:
    source = rec.source_of(method)
    if name not in _METHOD_PARTS:
        return read(rec, _of_method(rec, method, "__func__"), name) if name != "__class__" else MethodType
    value = getattr(method, name)
    if source is not None:
        rec.reach(value, rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", value))
    return value


def _of_super(rec: Recorder, proxy: Any, name: str) -> Any:
    start, value, kind = proxy.__thisclass__, proxy.__self__, proxy.__self_class__
    if name == "__class__" or kind is None:
        return getattr(proxy, name)
    order = mro(kind)
    written = rec.effects.written
    for base in order[order.index(start) + 1 :]:
        space = rec.class_space(base)
        attribute = namespace(base).get(name, MISSING)
        if (id(base), name) in written:
            space = None
        if attribute is MISSING:
            if space is not None:
                rec.log.check(space, f"{name!r} in {{v}}", f"{space}.{name}")
            continue
        at = None
        if space is not None:
            at = rec.log.source(space, f"{{p}}.get({name!r}, MISSING)", f"{space}.{name}", attribute)
            rec.reach(attribute, at)
        else:
            at = rec.policy.on_fixed_attribute(rec, base, name)
            if at is not None:
                rec.reach(attribute, at)
        if type(attribute) is FunctionType:
            return attribute if is_class(value) and value is kind else MethodType(attribute, value)
        if type(attribute) is staticmethod:
            return _part(rec, attribute, "__func__", at)
        if type(attribute) is classmethod:
            return rec.bound(_part(rec, attribute, "__func__", at), kind)
        if type(attribute) is property:
            return rec.invoke(_part(rec, attribute, "fget", at), (value,))
        getter = lookup(type(attribute), "__get__")
        if type(getter) is FunctionType:
            return rec.invoke(rec.class_attribute(type(attribute), "__get__"), (attribute, value, kind))
        return attribute if getter is MISSING else attribute.__get__(None if value is kind else value, kind)
    rec.policy.on_absent_attribute(rec, kind, name)
    return getattr(proxy, name)  # raises


def _of_c_object(rec: Recorder, value: Any, name: str) -> Any:
    """An attribute of an object of C code: its methods are part of its class, what else it has is read again."""
    source = rec.source_of(value)
    goes_first = is_data_descriptor(lookup(type(value), name))
    space = None if goes_first else instance_dict(value)  # a partial whose dict was asked for is not merged with others
    if space is not None and name in space:
        return _instance_item(rec, value, space, name, source, is_safe=False)
    if (id(space), name) in rec.effects.written:
        return getattr(value, name)
    try:
        attribute = getattr(value, name)
    except AttributeError:
        if source is not None:
            rec.log.check(source, f"{{0}}({{v}}, {name!r})", f"{source}.{name}", (hasattr,))
        raise
    if source is None:
        return attribute
    is_method = type(attribute) in C_FUNCTIONS or type(attribute) is BuiltinFunctionType
    if is_method and (
        getattr(attribute, "__self__", None) is value or not is_data_descriptor(lookup(type(value), name))
    ):
        return attribute
    if container_of(type(value)) is None and not rec.policy.is_readable(type(value), name):
        rec.policy.look_into(rec, value, source)
        rec.refuse(
            f"'{source}.{name}' of {described(value)} cannot be watched: its class is written in C",
            "read it outside and pass it as an argument",
        )
    return rec.reach(attribute, rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", attribute))


# Writing --------------------------------------------------------------------------------------------------------------


def write(rec: Recorder, value: Any, name: str, new: Any) -> None:
    """``value.name = new``."""
    kind = type(value)
    if is_python_class(kind) and not is_class(value):
        own = rec.class_attribute(kind, "__setattr__")
        if is_users_method(kind, "__setattr__", own):
            rec.passed(own, (value, name, new))
            return
    write_plain(rec, value, name, new)


def write_plain(rec: Recorder, value: Any, name: str, new: Any) -> None:
    """What ``object.__setattr__`` does."""
    kind = type(value)
    attribute, at = rec.class_lookup(kind, name) if is_python_class(kind) else (lookup(kind, name), None)
    if attribute is not MISSING and not is_class(value) and _goes_first(rec, attribute, at):
        if type(attribute) is property:
            setter = _part(rec, attribute, "fset", at)
            if setter is None:
                object.__setattr__(value, name, new)  # raises
            rec.passed(setter, (value, new))
            return
        setter = lookup(type(attribute), "__set__")
        if type(setter) is FunctionType:
            if at is not None:
                rec.reach(attribute, at)
            rec.passed(rec.class_attribute(type(attribute), "__set__"), (attribute, value, new))
            return
        if not is_slot(attribute):
            if rec.source_of(value) is not None:
                rec.refuse(
                    f"'{rec.source_of(value)}.{name}' is set, which is done by code in C and cannot be taken back",
                    "set it outside of the compiled function",
                )
            setattr(value, name, new)
            return
    write_instance(rec, value, name, new)


def write_instance(rec: Recorder, value: Any, name: str, new: Any) -> None:
    """Set an attribute that the object itself holds, with an effect where the object comes from outside."""
    if is_class(value):
        _write_class(rec, value, name, new)
        return
    source, space = rec.source_of(value), instance_dict(value)
    is_in_slot = is_slot(lookup(type(value), name))
    if source is None:
        if not is_in_slot and space is not None and rec.source_of(space) is not None:
            rec.hooks.set_item(new, space, name)
        else:
            changes.SET_ATTRIBUTE(value, name, new)
        return
    if is_in_slot:
        before = MISSING
        with contextlib.suppress(AttributeError):
            before = lookup(type(value), name).__get__(value, type(value))
        back = changes.DELETE_ATTRIBUTE if before is MISSING else changes.SET_ATTRIBUTE
        rec.effects.undo_by(lambda: back(value, name, before))
        rec.effects.overwrites(before)
        rec.effects.written.add((id(value), name))
    elif space is not None:
        rec.effects.will_change(space, dict)
        rec.effects.written.add((id(space), name))
        rec.keep(space)
    else:
        changes.SET_ATTRIBUTE(value, name, new)  # raises
    changes.SET_ATTRIBUTE(value, name, new)
    rec.effects.record(changes.SET_ATTRIBUTE, value, name, new, f"{source}.{name} = ...")


def _write_class(rec: Recorder, kind: Any, name: str, new: Any) -> None:
    own = lookup(type(kind), "__setattr__")
    if type(own) is FunctionType:
        rec.refuse(f"an attribute of {described(kind)} is set through its metaclass")
    if rec.source_of(kind) is None and rec.class_space(kind) is None:
        setattr(kind, name, new)
        return
    if name.startswith("__"):
        rec.refuse(f"{name} of {described(kind)} is set")
    before = namespace(kind).get(name, MISSING)
    rec.effects.overwrites(before)
    rec.effects.undo_by(
        (lambda: type.__delattr__(kind, name)) if before is MISSING else (lambda: type.__setattr__(kind, name, before))
    )
    type.__setattr__(kind, name, new)
    rec.effects.written.add((id(kind), name))
    rec.effects.record(changes.SET_ATTRIBUTE, kind, name, new, f"{kind.__name__}.{name} = ...")


def delete(rec: Recorder, value: Any, name: str) -> None:
    """``del value.name``."""
    kind = type(value)
    if is_python_class(kind) and not is_class(value):
        own = rec.class_attribute(kind, "__delattr__")
        if is_users_method(kind, "__delattr__", own):
            rec.passed(own, (value, name))
            return
    delete_plain(rec, value, name)


def delete_plain(rec: Recorder, value: Any, name: str) -> None:
    """What ``object.__delattr__`` does."""
    kind, source = type(value), rec.source_of(value)
    if is_python_class(kind) and not is_class(value):
        attribute, at = rec.class_lookup(kind, name)
        if type(attribute) is property:
            deleter = _part(rec, attribute, "fdel", at)
            if deleter is None:
                object.__delattr__(value, name)  # raises
            rec.invoke(deleter, (value,))
            return
        if attribute is not MISSING and type(lookup(type(attribute), "__delete__")) is FunctionType:
            rec.invoke(rec.class_attribute(type(attribute), "__delete__"), (attribute, value))
            return
    space = instance_dict(value)
    if source is None:
        is_shared = space is not None and rec.source_of(space) is not None
        if is_shared and rec.hooks.contains(False, name, space):
            rec.hooks.delete_item(space, name)
        else:
            delattr(value, name)
        return
    if is_class(value) or space is None or is_slot(lookup(kind, name)):
        rec.refuse(f"'{source}.{name}' is deleted")
    if dict.__contains__(space, name):
        generic(rec, value, name, use_hook=False)  # that it is there was read
    else:
        looks_into = (id(space),) if rec.policy.advances_version(kind) else None
        rec.log.check(source, f"{name!r} in {{v}}.__dict__", f"{source}.{name}", looks_into=looks_into)
    rec.effects.will_change(space, dict)
    changes.DELETE_ATTRIBUTE(value, name, None)
    rec.effects.written.add((id(space), name))
    rec.keep(space)
    rec.effects.record(changes.DELETE_ATTRIBUTE, value, name, None, f"del {source}.{name}")
