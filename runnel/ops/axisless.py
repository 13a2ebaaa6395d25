"""Functions along an axis, of arrays that have none: a 0-d array counts as a vector of one element, as in PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from runnel.core.dispatch import TensorLike
from runnel.core.errors import ShapeError
from runnel.ops.views import reshape, with_axis

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def of_axisless(function: FunctionT) -> FunctionT:
    """A decorator: of a 0-d first argument, ``function`` is that of vectors of one element, for 0-d arrays among the
    other arguments too, and its results are 0-d, or have no elements."""

    @functools.wraps(function)
    def called(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.ndim:
            return function(x, *args, **kwargs)
        named = {name: _vector(value) for name, value in kwargs.items()}
        result = function(_vector(x), *map(_vector, args), **named)
        if isinstance(result, TensorLike):
            return _number(function.__name__, result)
        return type(result)(*(_number(function.__name__, part) for part in result))

    return called  # type: ignore[return-value]


def _vector(value: Any) -> Any:
    return with_axis(value) if isinstance(value, TensorLike) else value


def _number(name: str, value: Any) -> Any:
    if not value.size:
        return value
    if value.size != 1:
        raise ShapeError(f"[{name}] takes one element of a 0-d array; {value.size} are asked for.")
    return reshape(value, ())
