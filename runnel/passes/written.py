"""New values of a graph, written as array code: functions of Runnel on stand-ins for values that are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from runnel.compiler.passes.decompose import Decomposing
from runnel.core.dispatch import apply
from runnel.core.errors import ArgumentError, PassError, TracedValueError
from runnel.core.showing import short_repr
from runnel.core.tables import Op
from runnel.graph.node import Value
from runnel.ops import stop_gradient
from runnel.passes.tensors import frozen, present, writing
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor


class Written(Decomposing, ArrayMethods[Any]):
    """A ``value`` of a graph that functions and operators can be applied to. Composite ops become simpler ones at once,
    so that what is written fits at any place of a pipeline."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # == compares elements

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of the op that makes the value; empty for inputs and constants."""
        return MappingProxyType(self.value.attrs)

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if any(isinstance(x, Tensor) and x.is_traced for x in inputs):
            return apply(op, *[x.read() for x in inputs], **attrs)
        own = [x if isinstance(x, Written) else self.lift(x.numpy(), x.dtype) for x in inputs]
        return super().apply_op(op, tuple(own), attrs)

    def again(self, *operands: Written, **attrs: Any) -> Any:
        """The op that makes the value, applied to other operands; ``attrs`` are those that differ."""
        if self.value.op is None:
            raise PassError(f"[passes] {self.value!r} is made by no op, which could be applied again.")
        return operands[0].apply_op(self.value.op, operands, {**self.value.attrs, **attrs})

    def update(self, name: str, change: Callable[[Any], Any]) -> Any:
        raise PassError(
            f"[passes] {name} would change {self.value!r}, and values of a graph never change; write {name[:-1]}."
        )

    def read(self) -> Any:
        """The value as a tensor, for functions that need one; nodes are written behind it all the same."""
        writing = present()
        return self if writing is None else writing.tensor(self.value)

    def detach(self) -> Any:
        """The same value, through which no gradient flows."""
        return stop_gradient(self)

    def __bool__(self, *_: Any, **__: Any) -> bool:
        raise TracedValueError(f"[passes] {self.value!r} has no value before a run; use rn.where or rn.cond.")

    __float__ = __int__ = __index__ = __array__ = __bool__

    @property
    def is_traced(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Written({self.value!r})"


def written(function: Callable[..., Any], *values: Value, where: str | None = None, **named: Value) -> Value:
    """The value that ``function`` computes from ``values``, as array code: ``written(lambda x: 2 * rn.exp(x), value)``.
    Tensors, arrays and Variables that it uses, or returns, become constants with the value of the moment.

    ``where`` is the line of the user's program that the new nodes stand for: by default that of the first value.
    """
    all_values = (*values, *named.values())
    if not callable(function) or not all(isinstance(x, Value) for x in all_values):
        raise ArgumentError(
            f"[written] takes a function and values of a graph; received "
            f"{', '.join(short_repr(x) for x in (function, *all_values))}."
        )
    if where is None:
        where = next((x.where for x in all_values if x.where), "")
    with writing(where) as now:
        stand_ins = [Written(x, where) for x in values]
        result = function(*stand_ins, **{name: Written(x, where) for name, x in named.items()})
        now.require_no_effects()
        if isinstance(result, Written):
            return result.value
        if isinstance(result, Tensor) and result.is_traced:
            return now.written(result)
        if isinstance(result, (Tensor, np.ndarray)):
            return frozen(result, where)
    raise PassError(f"[passes] what is written for a graph is one value or array; received {short_repr(result)}.")
