"""Values that handle whole calls of the library's functions themselves.

A value that no function here can compute with raises an ``Override`` when library code reads it: its ``shape``, its
``aval``, or ``apply_op``. The public function, operator or module that the user called catches it and returns what
``handle`` returns for that call. Calls without such values pay nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from runnel.core import tracebacks
from runnel.core.errors import RunnelError


class Override(RunnelError):
    """Raised by a value that handles calls itself. Derive a class; its message is what users read where the value was
    used outside any function of the library, for example ``float(value)``."""

    def handle(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of ``function(*args, **kwargs)``, the call that touched the value."""
        raise NotImplementedError

    def handles(self, function: Callable[..., Any]) -> bool:
        """Return whether a call of ``function`` inside the library is handled, too. Then functions that are composed
        of it take such values. By default only calls of users are handled."""
        return False


def has_protocol(values: Iterable[Any]) -> bool:
    """Return whether any of ``values`` has PyTorch's ``__torch_function__``."""
    return any(hasattr(type(x), "__torch_function__") for x in values)


def by_protocol(function: Callable[..., Any], args: Iterable[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return (result,) of a call that an argument handles by ``__torch_function__``, or () if no argument does."""
    foreign: dict[type, Any] = {}
    for x in (*args, *kwargs.values()):
        for each in x if isinstance(x, (list, tuple)) else (x,):
            if hasattr(type(each), "__torch_function__"):
                foreign.setdefault(type(each), each)
    for value in foreign.values():
        result = value.__torch_function__(function, tuple(foreign), tuple(args), kwargs)
        if result is not NotImplemented:
            return (result,)
    return ()


def overridden(error: Override, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the value that raised ``error`` makes of a call; for the function around that call, in its ``except``
    block. Inside the library, raise the error again unless it handles this function: the call of the user, further out,
    is the one to handle."""
    if not error.handles(function) and tracebacks.is_own_frame(sys._getframe(2)):
        raise error
    try:
        return error.handle(function, args, kwargs)
    except Exception as failure:
        failure.__context__ = None if failure.__context__ is error else failure.__context__
        tracebacks.end_at_user(failure)
        raise
