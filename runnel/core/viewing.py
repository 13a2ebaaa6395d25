"""Declare functions that return views of an array."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def viewing(function: F) -> F:
    """Declare that ``function(x, *settings)`` returns views of ``x``, or ``x``; use it as a decorator."""

    @functools.wraps(function)
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            known = x.views_by
        except AttributeError:  # no array: the function says so
            return function(x, *args, **kwargs)
        return known(function, args, kwargs)

    return call  # type: ignore[return-value]
