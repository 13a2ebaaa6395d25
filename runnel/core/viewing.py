"""Declare functions that return views of an array, which tensors may make again without the function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def viewing(function: F) -> F:
    """Declare that ``function(x, *settings)`` returns views of ``x``, or ``x``, which depend on its shape and strides
    and on the settings only; use it as a decorator.

    A tensor that was viewed with equal settings before makes the views again (:mod:`runnel.tensor.known_views`).
    """

    @functools.wraps(function)
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            known = x.view_again
        except AttributeError:  # no array: the function says so
            return function(x, *args, **kwargs)
        return known(function, args, kwargs)

    return call  # type: ignore[return-value]
