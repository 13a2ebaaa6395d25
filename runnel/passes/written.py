"""Write new values of a graph as functions of tensors, applied to :class:`Written` values of the graph.

Functions that differentiate, loop or branch need tensors as operands. They are traced with symbolic tensors, and the
traced nodes are then written into the graph.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from runnel.compiler.passes.decompose import Decomposing
from runnel.core.arrays import short_repr
from runnel.core.avals import aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import from_numpy
from runnel.core.errors import ArgumentError, PassError, TracedValueError
from runnel.core.tables import Op
from runnel.graph.node import Constant, Node, Result, Value
from runnel.ops import stop_gradient
from runnel.tensor import tensor as tensors
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer
from runnel.tensor.tracing import activate


class Writing:
    """One traced call of a function that writes values."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._tensors: dict[Value, Tensor] = {}
        self.tracer = Tracer()

    def tensor(self, value: Value) -> Tensor:
        """Return the symbolic tensor for ``value``."""
        if value not in self._tensors:
            self._tensors[value] = tensors.symbolic(value)
        return self._tensors[value]

    def require_no_effects(self) -> None:
        """Raise PassError if the function changed something outside."""
        state = self.tracer.variables
        changed = next((v.described for v in (*state.written, *state.gradients)), "")
        if changed or self.tracer.calls_python:
            what = f"assign {changed}" if changed else "call Python"
            raise PassError(f"[passes] the function that writes a value must not {what}.")

    def written(self, tensor: Tensor) -> Value:
        """Return ``tensor`` as nodes that follow the values that it is computed from."""
        root = self.tracer.node(tensor)
        known: dict[Value, Any] = {value: Decomposing(value, self._where) for value in self._tensors}
        known.update((node, self._constant(array)) for node, array in self._from_outside())
        results: dict[Node, tuple[Any, ...]] = {}
        stack = [root]
        while stack:
            value = stack[-1]
            if value in known:
                stack.pop()
            elif not isinstance(value, Result):
                known[value] = Decomposing(value, self._where)
            elif rest := [x for x in value.inputs if x not in known]:
                stack += rest
            else:
                if value.node not in results:
                    made = known[value.inputs[0]] if value.inputs else Decomposing(value, self._where)
                    outs = made.apply_op(value.node.op, tuple([known[x] for x in value.inputs]), value.attrs)
                    results[value.node] = outs if value.node.op.multiple_results else (outs,)
                known[value] = results[value.node][value.index]
        answer: Value = known[root].value
        return answer

    def _from_outside(self) -> Iterator[tuple[Value, np.ndarray]]:
        """Yield the values that the function read from outside, as constants."""
        tracer = self.tracer
        with activate(None):
            for node, outside in tracer.captures.items():
                yield node, outside.numpy() if isinstance(outside, Tensor) else np.asarray(outside)
            yield from ((node, variable.numpy()) for node, variable in tracer.bound_variables.items())
            yield from ((node, np.array(getter(), np.float64)) for node, getter in tracer.numbers.items())

    def _constant(self, array: np.ndarray) -> Decomposing:
        return Decomposing(frozen(array, self._where), self._where)


def frozen(values: Any, where: str) -> Constant:
    """Return a constant of a graph with a copy of an array or tensor."""
    array = np.array(values)
    array.flags.writeable = False
    return Constant(aval(array.shape, from_numpy(array.dtype)), array, where)


class _Present(threading.local):
    writing: Writing | None = None


_PRESENT: Final = _Present()


def present() -> Writing | None:
    """Return the call that is writing values on this thread."""
    return _PRESENT.writing


@contextmanager
def writing(where: str) -> Iterator[Writing]:
    """Write values in the block. New nodes have the source line ``where``."""
    before, now = _PRESENT.writing, Writing(where)
    _PRESENT.writing = now
    try:
        with now.tracer:
            yield now
    finally:
        _PRESENT.writing = before


class Written(Decomposing, ArrayMethods[Any]):
    """A ``value`` of a graph that functions and operators can be applied to.

    Composite ops become simpler ones at once, so that the new values fit at any place of a pipeline.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # == compares elements

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of the value's op; empty for inputs and constants."""
        return MappingProxyType(self.value.attrs)

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if any(isinstance(x, Tensor) and x.is_traced for x in inputs):
            return apply(op, *[x.read() for x in inputs], **attrs)
        own = [x if isinstance(x, Written) else self.lift(x.numpy(), x.dtype) for x in inputs]
        return super().apply_op(op, tuple(own), attrs)

    def again(self, *operands: Written, **attrs: Any) -> Any:
        """Apply the value's op to other operands, with changed ``attrs``."""
        if self.value.op is None:
            raise PassError(f"[passes] {self.value!r} must be the result of an op to apply it again.")
        return operands[0].apply_op(self.value.op, operands, {**self.value.attrs, **attrs})

    def update(self, name: str, change: Callable[[Any], Any]) -> Any:
        raise PassError(
            f"[passes] {name} must not change {self.value!r}, since values of a graph are constant; use {name[:-1]}."
        )

    def read(self) -> Any:
        """Return the value as a tensor, for functions that need one."""
        writing = present()
        return self if writing is None else writing.tensor(self.value)

    def detach(self) -> Any:
        """Return the value without a gradient."""
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
    """Return the value that ``function`` computes from ``values``, written into their graph.

    Tensors, arrays and Variables that the function uses or returns become constants with their present values.

    Args:
        function: a function of tensors.
        values: its positional arguments, values of a graph.
        where: the source line of the new nodes; by default the line of the first value that has one.
        named: its keyword arguments, values of the graph.

    Example:
        >>> written(lambda x: 2 * rn.exp(x), value)
    """
    all_values = (*values, *named.values())
    if not callable(function) or not all(isinstance(x, Value) for x in all_values):
        raise ArgumentError(
            f"[written] must get a function and values of a graph; got "
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
    raise PassError(f"[passes] the function that writes a value must return one value; got {short_repr(result)}.")
