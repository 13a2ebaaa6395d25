"""Declare functions composed of ops, which tensors may run as a whole.

A composition has no kernel and no rules: it means the ops that its function applies. Its first tensor decides how it
runs (:meth:`runnel.core.dispatch.TensorLike.apply_composed`). Eager tensors run a composition that is called
repeatedly as a single program with the same bits (:mod:`runnel.tensor.composing`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, Generic, ParamSpec, TypeVar

from runnel.core.dispatch import TensorLike

P = ParamSpec("P")
R = TypeVar("R")

_SEQUENCES: Final = frozenset({tuple, list})


class Composition(Generic[P, R]):
    """A function of tensors and settings that is composed of ops and depends only on its arguments."""

    __slots__ = ("call", "function", "name")

    def __init__(self, function: Callable[P, R]) -> None:
        self.function: Final = function
        self.name: Final = function.__name__
        self.call: Callable[P, R] = function  # which lets the first tensor decide


def composed(function: Callable[P, R]) -> Callable[P, R]:
    """Declare ``function`` a composition; use it as a decorator.

    The function takes tensors, numbers, strings, dtypes, slices, None and sequences of these; with other arguments it
    runs op by op. It returns new tensors that depend on nothing else: no state, no random numbers, and no values of
    tensors that it looks at, except to refuse them.
    """
    composition = Composition(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for x in args or kwargs.values():
            if x.__class__ in _SEQUENCES and x:
                x = x[0]
            if isinstance(x, TensorLike):
                result: R = x.apply_composed(composition, args, kwargs)
                return result
        return function(*args, **kwargs)

    composition.call = call
    call.composition = composition  # type: ignore[attr-defined]
    return call


def composition_of(function: Callable[..., Any]) -> Composition[Any, Any] | None:
    """Return the composition that a decorated function declares; None for other functions."""
    return getattr(function, "composition", None)
