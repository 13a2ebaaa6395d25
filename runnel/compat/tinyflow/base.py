"""TinyFlow's placeholders, variables, gradients, shape inference and session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from runnel.compat.tinyflow.functions import Symbol, symbol
from runnel.core.errors import GradientError
from runnel.declarative import session, state
from runnel.declarative.gradients import gradients as declared_gradients
from runnel.declarative.graph import set_entry, whole
from runnel.declarative.knowledge import infer
from runnel.declarative.operation import Operation, closure, ordered

float32: Final = 0  # the only dtype, as a number

_INITIAL: Final[dict[Operation, bool]] = {}  # assignments of initial values that nobody has asked for yet


def placeholder(dtype: Any = float32, shape: Any = None, name: str | None = None) -> Symbol:
    """Return a value to be fed; dtype and shape are ignored, as in TinyFlow."""
    return state.placeholder("float32", None, name or "placeholder")


@whole
def Variable(init: Symbol | None = None, name: str | None = None) -> state.Variable:
    """Return a variable. Its initial value ``init``, a symbol, is assigned by :func:`initialize_all_variables`."""
    if init is not None:
        symbol(init, "Variable")
    result = state.variable(name=name or "variable")
    if init is not None:
        set_entry(_INITIAL, assign(result, init).operation, True)
    return result


def assign(ref: Symbol, value: Symbol, name: str | None = None) -> Symbol:
    """Return an operation that assigns a value to a variable and returns it."""
    return state.assign(ref, symbol(value, "assign"), name or "assign")  # type: ignore[arg-type]


def group(*inputs: Any) -> Operation:
    """Return an operation that runs other operations."""
    return state.group(*inputs)


def initialize_all_variables() -> Operation:
    """Return an operation that initializes the variables made since the last call."""
    init = state.group(*_INITIAL, name="init")
    _INITIAL.clear()
    return init


def gradients(ys: Any, xs: Any, grad_ys: Any = None) -> list[Symbol]:
    """Return the gradients of the sum of ``ys`` by ``xs``; GradientError if ``ys`` do not depend on one."""
    results = declared_gradients(ys, xs, grad_ys)
    sources = xs if isinstance(xs, (list, tuple)) else [xs]
    for x, g in zip(sources, results, strict=True):
        if g is None:
            raise GradientError(f"[gradients] ys do not depend on '{x.name}'.")
    return [g for g in results if g is not None]


def variables_of(net: Symbol) -> list[state.Variable]:
    """Return the variables that ``net`` depends on."""
    return [x.variable for x in ordered(closure([net.operation])) if isinstance(x, state.VariableOperation)]


def infer_variable_shapes(
    net: Symbol, feed_dict: Mapping[Symbol, Iterable[int]]
) -> Iterator[tuple[state.Variable, str, list[int]]]:
    """Yield each variable of ``net`` with its name and its shape, inferred from shapes of placeholders.

    ValueError if a shape cannot be inferred.
    """
    known = infer([net], feed_dict)
    for v in variables_of(net):
        shape = known[v].shape
        if shape is None or None in shape:
            raise ValueError(f"not sufficient information in feed_dict: the shape of '{v.name}' does not follow")
        yield v, v.name, [n for n in shape if n is not None]


class Cell(np.ndarray[Any, np.dtype[np.float32]]):
    """An array of one element that converts to a number; NumPy converts only arrays without axes."""

    def __float__(self) -> float:
        return float(self.item())


class Session:
    """Keeps the values of variables and runs operations.

    With "fusion" in ``config`` a run is one program, else its operations run one by one; "gpu" has no effect.
    """

    def __init__(self, config: str = "cpu") -> None:
        self.config = config
        self._session = session.Session(fused="fusion" in config)

    def run(self, fetch: Any, feed_dict: Mapping[Symbol, np.ndarray] | None = None) -> Any:
        """Return the value of ``fetch``, a symbol or an operation, or a list of values for a list.

        The value is None for operations and for tensors without axes or elements.
        """
        feeds = {x: np.ascontiguousarray(value, np.float32) for x, value in (feed_dict or {}).items()}
        result = self._session.run(fetch, feeds)
        return [_array(x) for x in result] if isinstance(fetch, list) else _array(result)


def _array(value: Any) -> np.ndarray | None:
    if value is None or value.ndim == 0 or 0 in value.shape:
        return None
    result = np.array(value.numpy(), np.float32)
    return result.view(Cell) if result.size == 1 else result
