"""Slots that have a value before anybody sets one: None, or False.

A slot that was never set raises AttributeError, and a default in the class excludes the slot. So every tensor would
have to set all of its slots, or keep some in a dict. The member of a slot says how it is read (``PyMemberDef`` of
Python's C API): these read a null pointer as None, or a byte as a bool, so a new object needs no stores.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Final

_OBJECT: Final = 6  # Py_T_OBJECT: None where the pointer is null
_BOOL: Final = 14  # Py_T_BOOL
_MEMBER: Final = 40  # bytes from the beginning of a member descriptor to the address of its definition


class _Definition(ctypes.Structure):
    """``PyMemberDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_NEVER_FREED: Final[list[_Definition]] = []  # descriptors refer to them
_NEW: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
    ("PyDescr_NewMember", ctypes.pythonapi)
)


def _definition(kind: type, name: str) -> _Definition:
    address = ctypes.c_void_p.from_address(id(kind.__dict__[name]) + _MEMBER).value
    return _Definition.from_address(address or 0)


def add_reference(x: object) -> None:
    """Count a reference to ``x`` that only machine code has."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))


def offset(kind: type, name: str) -> int:
    """Return the bytes from the beginning of an object of class ``kind`` to its slot ``name``."""
    owner = next(base for base in kind.__mro__ if name in base.__dict__)
    return int(_definition(owner, name).offset)


def none_by_default(kind: type, names: Iterable[str]) -> None:
    """Let the slots ``names`` of the class be None until they are set. Garbage collection still finds their content
    by the definitions of the class."""
    for name in names:
        own = _definition(kind, name)
        reading = _Definition(own.name, _OBJECT, own.offset, 0, None)
        _NEVER_FREED.append(reading)
        setattr(kind, name, _NEW(kind, ctypes.addressof(reading)))


def flags(kind: type, names: Iterable[str]) -> None:
    """Let the slots ``names`` of the class be bools, False until they are set: a byte, and no reference."""
    for name in names:
        _definition(kind, name).kind = _BOOL
