"""Build graphs by hand: functions of ``runnel.ops`` take values of a graph and return new ones.

graph = Builder("step")
x, w = graph.argument((8, 4)), graph.variable((4, 1))
graph.update(w, ops.subtract(w, ops.multiply(gradient, 0.1)))
step = graph.build(loss)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.conversion import rounded
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType, as_dtype, from_numpy
from runnel.core.errors import VerifierError
from runnel.core.tables import Op
from runnel.graph.graph import Graph
from runnel.graph.node import Constant, Input, InputKind, Node, Value, abstract_results, results_of


class Built(TensorLike):
    """A value of a graph that ops can be applied to. ``line`` is the user's source line."""

    __slots__ = ("line", "value")

    def __init__(self, value: Value, line: str = "") -> None:
        self.value = value
        self.line = line

    @property
    def aval(self) -> ShapedArray:
        return self.value.aval

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        values = tuple([x.value for x in inputs])
        node_results = results_of(Node(op, values, attrs, abstract_results(op, values, attrs), self.line))
        results = tuple([type(self)(x, self.line) for x in node_results])
        return results if op.multiple_results else results[0]

    def lift(self, array: Any, dtype: DType) -> Built:
        own = np.array(rounded(array, dtype))
        own.flags.writeable = False
        return type(self)(Constant(aval(own.shape, dtype), own, self.line), self.line)


class Builder:
    """A graph under construction."""

    def __init__(self, name: str = "program") -> None:
        self.name = name
        self._inputs: list[Value] = []
        self._updates: dict[Value, Value] = {}

    def argument(self, shape: Iterable[int], dtype: Any = "float32", name: str = "") -> Built:
        """Return an input that is passed at each call."""
        return self._input(shape, dtype, InputKind.ARGUMENT, name)

    def variable(self, shape: Iterable[int], dtype: Any = "float32", name: str = "") -> Built:
        """Return the value of a Variable before the call."""
        return self._input(shape, dtype, InputKind.VARIABLE, name)

    def _input(self, shape: Iterable[int], dtype: Any, kind: InputKind, name: str) -> Built:
        placeholder = Input(aval(tuple(shape), as_dtype(dtype)), kind, name or f"x{len(self._inputs)}")
        self._inputs.append(placeholder)
        return Built(placeholder)

    def constant(self, value: Any, dtype: Any = None) -> Built:
        """Return a constant."""
        array = np.array(value) if dtype is None else np.array(value, as_dtype(dtype).numpy)
        array.flags.writeable = False
        return Built(Constant(aval(array.shape, from_numpy(array.dtype)), array))

    def update(self, variable: Built, new: Built) -> None:
        """Assign ``new`` to the Variable at the end of the call."""
        if variable.value.kind is not InputKind.VARIABLE or new.aval is not variable.aval:
            raise VerifierError(
                f"an update must have a Variable and a value of its aval; got {variable.value!r} and {new.value!r}."
            )
        self._updates[variable.value] = new.value

    def build(self, *outputs: Built) -> Graph:
        """Return the graph that computes ``outputs`` and the updates; its inputs in the order of their creation."""
        return Graph(self._inputs, [x.value for x in outputs], self._updates, self.name)
