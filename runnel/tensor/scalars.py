"""Python numbers that a compiled program reads anew at each run: learning rates are data, not structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.core.avals import aval
from runnel.core.dtypes import float64
from runnel.graph.node import InputKind
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.tensor import Tensor


class RunTimeNumbers:
    """A mapping whose numbers are data of programs: ``plain`` is the dict that holds them."""

    __slots__ = ()

    plain: dict[str, Any]


def run_time_scalar(getter: Callable[[], float], name: str = "scalar") -> float | Tensor:
    """The number ``getter`` gives: eagerly the number itself; in a trace a weak float64 input of the program, for which
    ``getter`` is called at each run. Either way it takes the dtype of the tensor it meets, so the bits agree."""
    trace = tracing.ACTIVE.trace
    if trace is None:
        return float(getter())
    node = trace.input(aval((), float64), InputKind.SCALAR, name)
    trace.scalars.append((getter, node))
    value = tensors.symbolic(node)
    value._weak = True
    return value
