"""Kinds of values, and inspection of classes and objects that runs no user code.

Nothing here calls ``isinstance``, ``==`` or ``in`` on a user's value, because those run the methods of its class.
"""

from __future__ import annotations

import builtins
import collections
import enum
import itertools
import re
import types
from types import CellType, FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "<nothing>"


MISSING: Final = _Missing()  # the result of a lookup that found nothing


class Whole(int):
    """An int that may differ at later calls. Only hooks see this class (see ``numbers.py``)."""

    __slots__ = ()


class Text(str):
    """A text made of numbers that may differ at later calls. Only hooks see this class."""

    __slots__ = ()


SYMBOLIC: Final[dict[type, type]] = {Whole: int, Text: str}  # the class that code outside the hooks sees
# Immutable values that guards compare by value; their identity does not matter.
PLAIN: Final = frozenset(
    {type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range, types.CodeType}
)
SINGLETONS: Final = frozenset({type(None), bool, type(...), type(NotImplemented)})
# Parts of programs that live as long as their module; guards compare them by identity.
FIXED: Final = frozenset(
    {
        types.ModuleType, types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType,
        types.MemberDescriptorType, types.ClassMethodDescriptorType,
    }
)  # fmt: skip
SEQUENCES: Final = (list, tuple, collections.deque)
SETS: Final = (set, frozenset)
CONTAINERS: Final = (*SEQUENCES, dict, *SETS)
_EMPTY: Final[dict[None, None]] = {}
DICT_VIEWS: Final = frozenset({type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items())})
ITERATORS: Final = frozenset(
    {
        type(iter([])), type(iter(())), type(iter(set())), type(iter("")), type(iter(b"")), type(iter(range(0))),
        type(iter(range(1 << 70))), type(iter({})), type(iter({}.values())), type(iter({}.items())), type(reversed([])),
        type(reversed({})), zip, map, filter, enumerate, reversed, types.GeneratorType,
        type(iter(collections.deque())), type(iter(int, 1)),
        *[kind for kind in vars(itertools).values() if isinstance(kind, type)],
    }
)  # fmt: skip
C_FUNCTIONS: Final = frozenset(
    {
        types.BuiltinFunctionType, type(re.compile("").search), types.MethodWrapperType,
        types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
    }
)  # fmt: skip
_HASHES: Final = (object.__hash__, enum.Enum.__hash__)  # of objects that equal only themselves
_ON_HEAP, _IMMUTABLE = 1 << 9, 1 << 8

mro: Final = type.__dict__["__mro__"].__get__
namespace: Final = type.__dict__["__dict__"].__get__  # the __dict__ of a class, whatever its metaclass says
_flags: Final = type.__dict__["__flags__"].__get__


def lookup(kind: type, name: str) -> Any:
    """Return what a class or the first base that has it holds under ``name``, or MISSING."""
    for base in mro(kind):
        attribute = namespace(base).get(name, MISSING)
        if attribute is not MISSING:
            return attribute
    return MISSING


def is_python_class(kind: type) -> bool:
    """Return whether a class statement made ``kind``, so that it can change.

    Classes of extension modules that are not marked immutable count as Python classes, which only watches more.
    """
    return _flags(kind) & (_ON_HEAP | _IMMUTABLE) == _ON_HEAP


def has_usual_builtins(function: Any) -> bool:
    """Return whether a Python function finds the usual built-in names."""
    return function.__builtins__ is vars(builtins)


def is_class(value: Any) -> bool:
    """Return whether ``value`` is a class. ``isinstance`` would ask the value."""
    return issubclass(type(value), type)


def container_of(kind: type) -> Any:
    """Return the built-in container that ``kind`` is or inherits from, or None."""
    for known in CONTAINERS:
        if issubclass(kind, known):
            return known
    return None


def is_users_method(kind: type, name: str, method: Any) -> bool:
    """Return whether ``method``, found on ``kind`` under ``name``, is not the one of its bases written in C."""
    if method is MISSING or method is None:
        return False
    if type(method) not in C_FUNCTIONS:
        return True
    for base in mro(kind):
        if not is_python_class(base) and name in namespace(base):
            return method is not namespace(base)[name]
    return True


def own_method(kind: type, name: str) -> Any:
    """Return a method that a Python class gives its objects, or None where the method of a C base is used."""
    method = lookup(kind, name)
    return method if is_users_method(kind, name, method) else None


def instance_dict(value: Any) -> dict[str, Any] | None:
    """Return the attributes that an object holds itself, or None where it has no place for them."""
    descriptor = lookup(type(value), "__dict__")
    if type(descriptor) not in (GetSetDescriptorType, MemberDescriptorType):
        return None
    space = descriptor.__get__(value, type(value))
    return space if issubclass(type(space), dict) else None


def is_data_descriptor(attribute: Any) -> bool:
    """Return whether a class attribute takes precedence over attributes of the instance."""
    kind = type(attribute)
    if kind in (FunctionType, _Missing):
        return False
    return lookup(kind, "__set__") is not MISSING or lookup(kind, "__delete__") is not MISSING


def is_slot(attribute: Any) -> bool:
    """Return whether a class attribute is a slot of its instances."""
    return type(attribute) is MemberDescriptorType


def is_empty(cell: CellType) -> bool:
    """Return whether a closure variable has no value."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return True
    return False


def is_plain(value: Any) -> bool:
    """Return whether guards compare ``value`` by value. Slices of plain values count as plain."""
    kind = type(value)
    if kind is slice:
        return is_plain(value.start) and is_plain(value.stop) and is_plain(value.step)
    return kind in PLAIN


def is_simple(key: Any) -> bool:
    """Return whether C code can hash and compare ``key`` without running Python code, and finds it by value."""
    kind = type(key)
    if kind in (tuple, frozenset):
        return all(map(is_simple, key))
    if issubclass(kind, enum.Enum):  # whose members may be texts or ints as well
        return any(lookup(kind, "__hash__") is c.__hash__ and lookup(kind, "__eq__") is c.__eq__ for c in (int, str))
    return is_plain(key) or kind in FIXED or (is_class(key) and lookup(kind, "__hash__") is type.__hash__)


def is_found_by_identity(key: Any) -> bool:
    """Return whether a dict finds ``key`` by its identity: functions, and objects without a custom ``__eq__``."""
    kind = type(key)
    return lookup(kind, "__eq__") is object.__eq__ and lookup(kind, "__hash__") in _HASHES


def is_nan(value: Any) -> bool:
    """Return whether a container finds ``value`` by identity because it is NaN or holds one."""
    if type(value) in (tuple, frozenset):
        return any(map(is_nan, value))
    return type(value) in (float, complex) and value != value


def described(value: Any) -> str:
    """Return a description for messages without running the value's ``__repr__``."""
    if type(value) in PLAIN or type(value) in SYMBOLIC:
        text = repr(SYMBOLIC.get(type(value), type(value))(value) if type(value) in SYMBOLIC else value)
        return text if len(text) <= 60 else text[:57] + "..."
    if is_class(value):
        return f"the class {type.__dict__['__name__'].__get__(value)}"
    if type(value) is FunctionType:
        return f"the function {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


def keys_of(value: Any) -> tuple[Any, ...]:
    """Return the keys of a dict in order, whatever its class makes of them."""
    is_ordered = issubclass(type(value), collections.OrderedDict)
    return tuple(collections.OrderedDict.keys(value) if is_ordered else dict.keys(value))


def items_of(value: Any) -> list[tuple[Any, Any]]:
    """Return the items of a dict in order, whatever its class makes of them."""
    is_ordered = issubclass(type(value), collections.OrderedDict)
    return list(collections.OrderedDict.items(value) if is_ordered else dict.items(value))
