"""Functions composed of ops, which tensors may carry out as a whole.

A composition has no kernel and no rules of its own: it means what its function does op by op. Whoever executes ops may
run one that is called again and again as a single program with the same bits (:mod:`runnel.tensor.composing`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Composition(Generic[P, R]):
    """A function of tensors and settings that is composed of ops, and depends on its arguments alone."""

    __slots__ = ("function", "name")

    every: ClassVar[list[Composition[Any, Any]]] = []  # filled by construction

    def __init__(self, function: Callable[P, R]) -> None:
        self.function: Final = function
        self.name: Final = function.__name__
        Composition.every.append(self)


def op_by_op(composition: Composition[P, R], args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
    """Carry out a composition as its function says."""
    return composition.function(*args, **kwargs)


class Runner:
    """``run(composition, args, kwargs)`` carries out a composition; the package of tensors sets it."""

    __slots__ = ("run",)

    def __init__(self) -> None:
        self.run: Callable[[Composition[Any, Any], tuple[Any, ...], dict[str, Any]], Any] = op_by_op


RUNNER: Final = Runner()


def composed(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: ``function`` is a composition. It takes tensors, numbers, strings, dtypes, None and sequences of
    ints, and gives new tensors that depend on nothing else: no state, no values of tensors that it looks at, no random
    numbers. With other arguments it runs op by op.
    """
    composition = Composition(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        result: R = RUNNER.run(composition, args, kwargs)
        return result

    return call
