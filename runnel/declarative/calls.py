"""Calls of functions as operations: functions of ``rn`` on declared tensors, and the user's functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.core import pytree
from runnel.core.dtypes import Dtype, from_numpy
from runnel.core.errors import ArgumentError, GraphError
from runnel.declarative import inference
from runnel.declarative.graph import Graph, default_graph, whole
from runnel.declarative.operation import Declared, Operation, Run, Static, recorder
from runnel.tensor import tensor as tensors
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable as LiveVariable


class Constant(Operation):
    """An array in the graph."""

    __slots__ = ("value",)
    kind = "constant"

    def __init__(self, graph: Graph, name: str, value: np.ndarray) -> None:
        self.value: Final = np.array(value)
        self.value.flags.writeable = False
        super().__init__(graph, name, (), [Static(value.shape, from_numpy(value.dtype))])

    def compute(self, values: Sequence[Any], run: Run) -> Sequence[Any]:
        return [tensors.constant(self.value, from_numpy(self.value.dtype))]

    def attributes(self) -> dict[str, Any]:
        return {"value": self.value}


class Slot(NamedTuple):
    """A placeholder among the arguments of a call for input ``number`` of the operation."""

    number: int


class Arguments(NamedTuple):
    """The arguments of a call: leaves, with a :class:`Slot` for each declared tensor, and their structure."""

    leaves: tuple[Any, ...]
    structure: Any

    def filled(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        leaves = [values[x.number] if type(x) is Slot else x for x in self.leaves]
        args, kwargs = pytree.unflatten(self.structure, leaves)
        return args, kwargs

    def sizes(self) -> tuple[int, ...]:
        """Return the ints among the arguments that may be sizes, and their product."""
        numbers = [x for x in self.leaves if type(x) is int and x > 1]
        return (*numbers, math.prod(numbers)) if numbers else ()


class Call(Operation):
    """A call ``function(*args, **kwargs)`` with values in place of the declared tensors."""

    __slots__ = ("arguments", "function", "structure")
    kind = "call"

    def __init__(
        self, graph: Graph, name: str, function: Callable[..., Any], arguments: Arguments, inputs: Sequence[Declared]
    ) -> None:
        self.function: Final = function
        self.arguments: Final = arguments
        statics = tuple([x.static for x in inputs])
        outputs, self.structure = inference.outputs(name, self.evaluate, self.identity, statics, self.hints)
        super().__init__(graph, name, inputs, outputs)

    def evaluate(self, *values: Any) -> Any:
        """Return the function's result on values."""
        args, kwargs = self.arguments.filled(values)
        return self.function(*args, **kwargs)

    def compute(self, values: Sequence[Any], run: Run) -> Sequence[Any]:
        leaves, structure = pytree.flatten(self.evaluate(*values))
        if structure != self.structure:
            raise GraphError(
                f"[{self.name}] the function returned {structure}, and {self.structure} when it was declared, at "
                f"{self.where}."
            )
        return leaves

    @property
    def identity(self) -> Hashable:
        """Key that distinguishes :meth:`evaluate` from the functions of other operations."""
        return self.function, self.arguments

    @property
    def hints(self) -> tuple[int, ...]:
        """Sizes that unknown axes of the inputs may have."""
        return self.arguments.sizes()

    @property
    def label(self) -> str:
        return base_name(self.function)

    def attributes(self) -> dict[str, Any]:
        return {"function": self.function, "arguments": self.arguments}


def base_name(function: Any) -> str:
    """Return the base of the names of operations that call ``function``."""
    name = getattr(function, "__name__", type(function).__name__)
    return re.sub(r"[^A-Za-z0-9_.]", "", name).strip("_") or "call"


def constant(value: Any, dtype: Dtype = None, name: str = "constant") -> Declared:
    """Declare an array of ``value``, a number, nested sequence, array or tensor.

    Python numbers become float32, int64 or bool, as in :func:`runnel.asarray`.
    """
    return Constant(default_graph(), name, live(value, dtype).numpy()).outputs[0]


def live(value: Any, dtype: Any = None) -> Tensor:
    """Return ``value`` as a tensor with a value."""
    if isinstance(value, Declared):
        raise ArgumentError(f"[constant] '{value.name}' is declared, so its value is not known.")
    return asarray(value, dtype)


def call(function: Callable[..., Any], *args: Any, name: str = "", **kwargs: Any) -> Any:
    """Declare ``function(*args, **kwargs)`` and return its result with declared tensors in it.

    Args:
        function: a function of ``rn``, or one that computes with such functions. It is called whenever a program is
            made from the operation, and must not read or assign live Variables.
        args: anything. Declared tensors are replaced by values; live tensors and arrays are constants.
        name: name of the operation; the function's name by default.
    """
    return declared_call(function, args, kwargs, name)


@recorder
@whole
def declared_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str = "") -> Any:
    """Declare a call like :func:`call`, with the arguments as a tuple and a dict."""
    leaves, structure = pytree.flatten((args, kwargs))
    own = name or base_name(function)
    graph = next((default_graph().graph_of(x) for x in leaves if isinstance(x, Declared)), default_graph())
    inputs: list[Declared] = []
    template: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, LiveVariable):
            raise ArgumentError(
                f"[{own}] {leaf.described} is live; use the graph's own variables: declarative.Variable(...)."
            )
        if isinstance(leaf, (Tensor, np.ndarray)):
            leaf = Constant(graph, f"{own}/constant", leaf.numpy() if isinstance(leaf, Tensor) else leaf).outputs[0]
        if isinstance(leaf, Declared):
            leaf = graph.capture(leaf)
            inputs.append(leaf)
            leaf = Slot(len(inputs) - 1)
        template.append(leaf)
    operation = Call(graph, own, function, Arguments(tuple(template), structure), inputs)
    return pytree.unflatten(operation.structure, operation.outputs)
