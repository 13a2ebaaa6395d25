"""Values of a graph as tensors, for functions that differentiate, loop or branch: these need more of an operand than
that ops can be applied to it. What they record is written into the graph behind them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from runnel.compiler.passes.decompose import Decomposing
from runnel.core.avals import aval
from runnel.core.dtypes import from_numpy
from runnel.core.errors import PassError
from runnel.graph.node import Constant, Node, Result, Value
from runnel.tensor import tensor as tensors
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer
from runnel.tensor.tracing import activate


class Writing:
    """One call of a function that writes values, which is traced."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._tensors: dict[Value, Tensor] = {}
        self.tracer = Tracer()

    def tensor(self, value: Value) -> Tensor:
        """The tensor that stands for ``value``."""
        if value not in self._tensors:
            self._tensors[value] = tensors.symbolic(value)
        return self._tensors[value]

    def require_no_effects(self) -> None:
        """PassError if the function changed something outside."""
        state = self.tracer.variables
        changed = next((v.described for v in (*state.written, *state.gradients)), "")
        if changed or self.tracer.calls_python:
            what = f"assigns {changed}" if changed else "calls Python"
            raise PassError(f"[passes] what is written for a graph {what}, and is no value of it then.")

    def written(self, tensor: Tensor) -> Value:
        """What was recorded for ``tensor``, as nodes behind the values that it is computed from."""
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
        """Yield what the function read besides the graph's values, as constants."""
        tracer = self.tracer
        with activate(None):
            for node, outside in tracer.captures.items():
                yield node, outside.numpy() if isinstance(outside, Tensor) else np.asarray(outside)
            yield from ((node, variable.numpy()) for node, variable in tracer.bound_variables.items())
            yield from ((node, np.array(getter(), np.float64)) for node, getter in tracer.numbers.items())

    def _constant(self, array: np.ndarray) -> Decomposing:
        return Decomposing(frozen(array, self._where), self._where)


def frozen(values: Any, where: str) -> Constant:
    """A constant of a graph with the present values of an array or tensor."""
    array = np.array(values)
    array.flags.writeable = False
    return Constant(aval(array.shape, from_numpy(array.dtype)), array, where)


class _Present(threading.local):
    writing: Writing | None = None


_PRESENT: Final = _Present()


def present() -> Writing | None:
    """The call that is writing values on this thread."""
    return _PRESENT.writing


@contextmanager
def writing(where: str) -> Iterator[Writing]:
    """Write values in the block; new nodes stand for the user's line ``where``."""
    before, now = _PRESENT.writing, Writing(where)
    _PRESENT.writing = now
    try:
        with now.tracer:
            yield now
    finally:
        _PRESENT.writing = before
