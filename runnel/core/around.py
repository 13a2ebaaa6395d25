"""Decorators that run a function in a mode, and pass its arguments and result on as they are."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, Final, TypeVar

F = TypeVar("F")
_CODES: Final[set[CodeType]] = set()


def passing_on(wrapper: F) -> F:
    """Say that ``wrapper``, which such a decorator made, does nothing with what it is given: whoever observes a call
    of it goes on with the function inside."""
    function: Any = wrapper
    _CODES.add(function.__code__)
    return wrapper


def passes_on(function: Any) -> bool:
    """Whether such a decorator made ``function``."""
    return type(function) is FunctionType and function.__code__ in _CODES
