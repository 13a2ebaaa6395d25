"""Functions for one, two or three spatial axes, made from those for any number of axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError

Function = Callable[..., Any]


def over_axes(function: Callable[..., Any], name: str) -> tuple[Function, Function, Function]:
    """Return ``function`` for one, two and three spatial axes as ``name``1d, …, which also accept one image."""
    first, second, third = (_over(spatial, function, name.format(f"{spatial}d")) for spatial in (1, 2, 3))
    return first, second, third


def _over(spatial: int, function: Callable[..., Any], name: str) -> Function:
    @functools.wraps(function)
    def checked(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.ndim == spatial + 1:
            return _alone(function(ops.expand_dims(x, 0), *args, **kwargs))
        if x.ndim != spatial + 2:
            raise ShapeError(
                f"[{name}] an input has a batch axis, a channel axis and {spatial} spatial ones; got shape {x.shape}."
            )
        return function(x, *args, **kwargs)

    checked.__name__ = checked.__qualname__ = name
    return checked


def _alone(result: Any) -> Any:
    """Remove the batch axis from the results for one image."""
    if isinstance(result, tuple):
        return tuple(map(_alone, result))
    return ops.squeeze(result, 0)
