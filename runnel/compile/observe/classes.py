"""Inspection of classes and objects without running user code."""

from __future__ import annotations

import weakref
from types import CellType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final


class _Missing:
    """What stands for something that is not there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<nothing>"


MISSING: Final = _Missing()

mro: Final = type.__dict__["__mro__"].__get__
namespace: Final = type.__dict__["__dict__"].__get__  # of a class: its own __dict__, whatever its metaclass says
flags: Final = type.__dict__["__flags__"].__get__
LENT: Final[dict[int, CodeType]] = {}  # functions run other code for a while: by its id, the code they come back to
_ON_HEAP, _IMMUTABLE, _ABSTRACT = 1 << 9, 1 << 8, 1 << 20


def lookup(kind: type, name: str) -> Any:
    """What a class or the first base that has it holds under ``name``; MISSING where none does."""
    for base in mro(kind):
        attribute = namespace(base).get(name, MISSING)
        if attribute is not MISSING:
            return attribute
    return MISSING


def code_of(function: FunctionType) -> CodeType:
    """The function's own code, whatever it runs just now."""
    code = function.__code__
    return LENT.get(id(code), code) if LENT else code


def is_empty(cell: CellType) -> bool:
    """Whether a variable has no value."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return True
    return False


def owner(kind: type, name: str) -> type | None:
    """The class along the method resolution order that holds ``name``."""
    for base in mro(kind):
        if name in namespace(base):
            return base
    return None


def is_python_class(kind: type) -> bool:
    """Whether a class was made by a class statement, so that it can change: on the heap, and not marked immutable.

    Classes of extension modules that leave the mark off count as Python classes, which only watches more.
    """
    return flags(kind) & (_ON_HEAP | _IMMUTABLE) == _ON_HEAP


def instance_dict(value: Any) -> dict[str, Any] | None:
    """The attributes that an object holds itself; None where it has no place for them."""
    descriptor = lookup(type(value), "__dict__")
    if type(descriptor) not in (GetSetDescriptorType, MemberDescriptorType):
        return None
    space = descriptor.__get__(value, type(value))
    return space if issubclass(type(space), dict) else None


def is_data_descriptor(attribute: Any) -> bool:
    """Whether what a class holds goes before what its objects hold."""
    kind = type(attribute)
    if kind in (FunctionType, _Missing):
        return False
    return lookup(kind, "__set__") is not MISSING or lookup(kind, "__delete__") is not MISSING


def lasts_visibly(value: Any) -> bool:
    """Whether Python tells when an object is gone."""
    try:
        weakref.ref(value)
    except TypeError:
        return False
    return True


def is_slot(attribute: Any) -> bool:
    """Whether what a class holds is a place in its objects, read and written by C code alone."""
    return type(attribute) is MemberDescriptorType


def is_special(name: str) -> bool:
    """Whether this is the name of a special method."""
    return name.startswith("__") and name.endswith("__")


def special(value: Any, name: str) -> Any:
    """A special method, as the interpreter looks it up: on the class alone. MISSING, or bound to the value."""
    method = lookup(type(value), name)
    getter = lookup(type(method), "__get__")
    return method if method is MISSING or getter is MISSING else getter(method, value, type(value))
