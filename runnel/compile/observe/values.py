"""The kinds of values that an observer distinguishes."""

from __future__ import annotations

import collections
import re
import types
from typing import Any, Final

from runnel.compile.observe.classes import MISSING, is_python_class, mro, namespace

# Compared by value, immutable, and nothing hangs on which object it is.
PLAIN: Final = frozenset(
    {type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range, types.CodeType}
)


class Whole(int):
    """A whole number that may be another at later calls. See ``varying.py``."""

    __slots__ = ()


class Text(str):
    """A text that may be another at later calls. See ``varying.py``."""

    __slots__ = ()


SYMBOLIC: Final[dict[type, type]] = {
    Whole: int,
    Text: str,
}  # what hooks alone see, and what all others see in its place
SINGLETONS: Final = frozenset({type(None), bool, type(...), type(NotImplemented)})
# Parts of programs that live as long as their module: known by which object they are.
FIXED: Final = frozenset(
    {
        types.ModuleType, types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType,
        types.MemberDescriptorType, types.ClassMethodDescriptorType,
    }
)  # fmt: skip
SEQUENCES: Final = (list, tuple, collections.deque)
MAPPINGS: Final = (dict,)
SETS: Final = (set, frozenset)
CONTAINERS: Final = (*SEQUENCES, *MAPPINGS, *SETS, bytearray)
_EMPTY: Final[dict[None, None]] = {}
DICT_VIEWS: Final = frozenset({type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items())})
VIEWS: Final = DICT_VIEWS | {types.MappingProxyType}
ITERATORS: Final = frozenset(
    {
        type(iter([])), type(iter(())), type(iter(set())), type(iter("")), type(iter(b"")), type(iter(range(0))),
        type(iter(range(1 << 70))), type(iter({})), type(iter({}.values())), type(iter({}.items())), type(reversed([])),
        type(reversed({})), zip, map, filter, enumerate, reversed, types.GeneratorType, type(iter(bytearray())),
        type(iter(collections.deque())), type(iter(int, 1)),
    }
)  # fmt: skip
_METHOD_OF_MODULE_TYPE: Final = type(re.compile("").search)  # a C method that knows the class that defines it
C_FUNCTIONS: Final = frozenset(
    {
        types.BuiltinFunctionType, _METHOD_OF_MODULE_TYPE, types.MethodWrapperType,
        types.WrapperDescriptorType, types.MethodDescriptorType,
        types.ClassMethodDescriptorType,
    }
)  # fmt: skip
# A function and the object it is called with: equal if both are, the object by which one it is.
BOUND: Final[dict[type, tuple[str, ...]]] = {
    types.MethodType: ("__self__", "__func__"),
    types.BuiltinFunctionType: ("__self__", "__name__"),
    types.MethodWrapperType: ("__self__", "__name__"),
}


def container_of(kind: type) -> Any:
    """The built-in container that a class is or inherits from; None for others."""
    for known in CONTAINERS:
        if issubclass(kind, known):
            return known
    return None


def is_class(value: Any) -> bool:
    """Whether a value is a class; ``isinstance`` would ask the value."""
    return issubclass(type(value), type)


def is_plain(value: Any) -> bool:
    """Whether a value is compared by value, tuples and slices of such values included."""
    kind = type(value)
    if kind is slice:
        return is_plain(value.start) and is_plain(value.stop) and is_plain(value.step)
    return kind in PLAIN


def described(value: Any) -> str:
    """A value for a sentence, without running its ``__repr__``."""
    if type(value) in PLAIN:
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    if is_class(value):
        return f"the class {type.__dict__['__name__'].__get__(value)}"
    return f"a {type(value).__name__}"


def is_nan(value: Any) -> bool:
    """Whether a container finds a value by which object it is alone: a NaN, or a tuple or frozenset with one in it."""
    if type(value) in (tuple, frozenset):
        return any(map(is_nan, value))
    return type(value) in (float, complex) and value != value


def is_users_method(kind: type, name: str, method: Any) -> bool:
    """Whether what a class holds under ``name`` is the user's: Python code, or a C function that its bases written in C
    do not have there, such as ``__lshift__ = list.append`` or ``__contains__ = table.__contains__``."""
    if method is MISSING or method is None:
        return False
    return type(method) not in C_FUNCTIONS or method is not of_c(kind, name)


def of_c(kind: type, name: str) -> Any:
    """What the bases of a class that are written in C have under ``name``; MISSING where they have nothing."""
    for base in mro(kind):
        if not is_python_class(base):
            method = namespace(base).get(name, MISSING)
            if method is not MISSING:
                return method
    return MISSING
