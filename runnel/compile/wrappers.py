"""Wrap Python functions in objects that observation looks through; ``rn.uncompiled``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from runnel.core.functions import FunctionLike


class Wrapper:
    """An object that calls one Python function, its ``function``. Observation looks through it."""

    __slots__ = ()

    function: Any


class Uncompiled(FunctionLike):
    """A function that never becomes part of a program."""

    __slots__ = ("function",)  # attributes of the function do not replace ``function``

    __qualname__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)
        self.__qualname__ = getattr(
            function, "__qualname__", type(function).__qualname__
        )  # of an object that is called

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<uncompiled {self.__qualname__}>"


def uncompiled(fn: Callable[..., Any]) -> Uncompiled:
    """Mark a function that reads a clock, a file, or anything else that a program cannot know.

    A compiled function that calls it runs eagerly, with the same results and without a warning.

    Args:
        fn: any function. You can also use this as a decorator.
    """
    if not callable(fn):
        raise TypeError(f"[uncompiled] fn must be a function; got {type(fn).__name__}.")
    return Uncompiled(fn)


class WrappedMethod(Wrapper):
    """A wrapper of a function whose first argument is ``__self__``."""

    __slots__ = ()

    @property
    def wrapper(self) -> Wrapper:
        raise NotImplementedError

    @property
    def __self__(self) -> Any:
        raise NotImplementedError
