"""Which globals a function has, told without keeping them alive: a dict cannot be referred to weakly."""

from __future__ import annotations

import sys
import weakref
from types import CodeType, FunctionType
from typing import Any


class Namespace:
    """The globals of ``function``, as long as that or the module they are of lives; afterwards they match no others."""

    __slots__ = ("_function", "_module")

    def __init__(self, function: FunctionType) -> None:
        names = function.__globals__
        module = sys.modules.get(str(names.get("__name__")))
        is_of_module = module is not None and getattr(module, "__dict__", None) is names
        self._module = weakref.ref(module) if is_of_module and module is not None else None
        self._function = weakref.ref(function)

    def differs(self, value: Any, code: CodeType | None) -> bool:
        """Whether ``value`` is no function of this code with these globals."""
        if type(value) is not FunctionType or value.__code__ is not code:
            return True
        first: Any = self._function()
        if first is not None:
            return value.__globals__ is not first.__globals__
        module: Any = None if self._module is None else self._module()
        return module is None or value.__globals__ is not module.__dict__
