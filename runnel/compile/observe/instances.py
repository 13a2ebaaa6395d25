"""``isinstance`` and ``issubclass``: classes, unions, abstract classes with their registries, and protocols."""

from __future__ import annotations

import abc
import typing
from types import FunctionType, UnionType
from typing import Any, Final

from runnel.compile.observe import attributes, operators
from runnel.compile.observe.classes import MISSING, is_python_class, lookup, mro
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import is_class


def is_instance(rec: Recorder, value: Any, kinds: Any) -> bool:
    """``isinstance(value, kinds)``."""
    if type(kinds) is tuple:
        return any(is_instance(rec, value, kind) for kind in kinds)
    known = rec.policy.kind_of(value)
    if type(kinds) is UnionType:
        parts = _parts(rec, kinds)
        return isinstance(value, kinds) if parts is None else any(is_instance(rec, value, kind) for kind in parts)
    own = rec.class_attribute(type(kinds), "__instancecheck__")
    if not is_class(kinds):
        is_code = type(own) is FunctionType
        return operators.truth(rec, rec.invoke(own, (kinds, value))) if is_code else isinstance(value, kinds)
    if own is abc.ABCMeta.__instancecheck__:
        return by_registry(rec, known, kinds) or _claimed(rec, value, kinds)
    if own is _PROTOCOL_CHECK and vars(kinds).get("_is_protocol") and getattr(kinds, "_is_runtime_protocol", False):
        return kinds in mro(type(value)) or all(_has_member(rec, value, kinds, n) for n in _members(kinds))
    if type(own) is FunctionType:
        return operators.truth(rec, rec.invoke(own, (kinds, value)))
    return issubclass(known, kinds) or _claimed(rec, value, kinds)


def _has_member(rec: Recorder, value: Any, protocol: Any, name: str) -> bool:
    """Whether an object has a member of a protocol, as ``isinstance`` asks for it."""
    member = attributes.read_or(rec, value, name, MISSING)
    return member is not MISSING and (member is not None or not callable(getattr(protocol, name, None)))


_PROTOCOL_CHECK: Final = type(typing.Protocol).__instancecheck__
_members: Final[Any] = vars(typing)["_get_protocol_attrs"]


def _parts(rec: Recorder, union: UnionType) -> tuple[type, ...] | None:
    """The classes of a union, each of which is asked in turn; None where some are no classes, which is an error."""
    parts = tuple(rec.hooks.spread(attributes.read(rec, union, "__args__")))
    return parts if all(map(is_class, parts)) else None


def _claimed(rec: Recorder, value: Any, kind: type) -> bool:
    """Whether an object that is no instance says by its ``__class__`` that it is one."""
    if not is_python_class(type(value)) or type(lookup(type(value), "__class__")) is type(object.__dict__["__class__"]):
        return False
    claimed_kind = attributes.read(rec, value, "__class__")
    return is_class(claimed_kind) and claimed_kind is not type(value) and issubclass(claimed_kind, kind)


def by_registry(rec: Recorder, kind: type, base: Any) -> bool:
    is_subclass = issubclass(kind, base)
    if is_python_class(base):
        at, other = rec.source_of(base), rec.source_of(kind)
        if at is not None:
            if other is not None:
                rec.log.check(
                    None, f"issubclass({{s1}}, {{s0}}) is not {is_subclass}", f"what {at} is", (), (at, other)
                )
            elif not is_python_class(kind) or rec.class_space(kind) is not None:
                rec.log.check(at, f"issubclass({{0}}, {{v}}) is not {is_subclass}", f"what {at} is", (kind,))
    return is_subclass


def is_subclass(rec: Recorder, kind: Any, kinds: Any) -> bool:
    if type(kinds) is tuple:
        return any(is_subclass(rec, kind, one) for one in kinds)
    if type(kinds) is UnionType and is_class(kind):
        parts = _parts(rec, kinds)
        return issubclass(kind, kinds) if parts is None else any(is_subclass(rec, kind, one) for one in parts)
    own = rec.class_attribute(type(kinds), "__subclasscheck__")
    if not is_class(kind) or (not is_class(kinds) and type(own) is not FunctionType):
        return issubclass(kind, kinds)
    if own is abc.ABCMeta.__subclasscheck__:
        return by_registry(rec, kind, kinds)
    if type(own) is FunctionType:
        return operators.truth(rec, rec.invoke(own, (kinds, kind)))
    return issubclass(kind, kinds)
