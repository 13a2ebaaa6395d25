"""Python numbers that a compiled program reads anew at each run, such as learning rates."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from runnel.core.avals import aval
from runnel.core.dtypes import float64
from runnel.graph.node import InputKind
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.tensor import Tensor


class RunTimeNumbers:
    """A mapping whose numbers are data of programs: ``plain`` is the dict that holds them."""

    __slots__ = ()

    plain: dict[str, Any]


class Schedule:
    """What changes run-time numbers when its ``step()`` is called, by functions that may be the user's."""

    changed_by_step: ClassVar[tuple[str, ...]] = ()  # methods with which step() changes something

    def numbers(self) -> Sequence[RunTimeNumbers]:
        """Where the numbers are that it changes."""
        raise NotImplementedError

    def functions(self) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
        """What its next step computes with: functions, and arguments that they may be called with."""
        raise NotImplementedError


def run_time_scalar(getter: functools.partial[float], name: str = "scalar") -> float | Tensor:
    """The number that ``getter`` gives, whose first argument is the dict that holds it. Eagerly the number itself; in a
    trace a weak float64 input of the program, for which ``getter`` is called at each run. Either way it takes the dtype
    of the tensor it meets, so the bits agree."""
    trace = tracing.ACTIVE.trace
    if trace is None:
        return float(getter())
    node = trace.input(aval((), float64), InputKind.SCALAR, name)
    trace.scalars.append((getter, node))
    value = tensors.symbolic(node)
    value._weak = True
    return value
