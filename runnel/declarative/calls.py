"""Calls of functions as operations: any function of ``rn`` on declared tensors, and functions of the user's."""

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
    """An array that is a part of the graph."""

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
    """Among the arguments of a call: input ``number`` of the operation."""

    number: int


class Arguments(NamedTuple):
    """The arguments of a call: leaves, with a :class:`Slot` for each declared tensor, and how they are nested."""

    leaves: tuple[Any, ...]
    structure: Any

    def filled(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        leaves = [values[x.number] if type(x) is Slot else x for x in self.leaves]
        args, kwargs = pytree.unflatten(self.structure, leaves)
        return args, kwargs

    def sizes(self) -> tuple[int, ...]:
        """The numbers among the arguments that may be sizes, and the product of all."""
        numbers = [x for x in self.leaves if type(x) is int and x > 1]
        return (*numbers, math.prod(numbers)) if numbers else ()


class Call(Operation):
    """``function(*args, **kwargs)`` with values in place of the declared tensors among the arguments."""

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
        """What the function returns on values."""
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
        """What tells :meth:`evaluate` from the functions of other operations."""
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
    """How operations that call ``function`` are named."""
    name = getattr(function, "__name__", type(function).__name__)
    return re.sub(r"[^A-Za-z0-9_.]", "", name).strip("_") or "call"


def constant(value: Any, dtype: Dtype = None, name: str = "constant") -> Declared:
    """An array that is a part of the graph: of ``value``, a number, nested sequence, array or tensor.

    Python numbers become float32, int64 or bool, as :func:`runnel.asarray` makes them.
    """
    return Constant(default_graph(), name, live(value, dtype).numpy()).outputs[0]


def live(value: Any, dtype: Any = None) -> Tensor:
    """``value`` as a tensor that is there now."""
    if isinstance(value, Declared):
        raise ArgumentError(f"[constant] '{value.name}' is declared; its value is not known.")
    return asarray(value, dtype)


def call(function: Callable[..., Any], *args: Any, name: str = "", **kwargs: Any) -> Any:
    """Declare ``function(*args, **kwargs)``; gives what the function would, with declared tensors in it.

    Args:
        function: a function of ``rn``, or one that computes with tensors by such. It is called whenever a program is
            made of the operation; it may read and assign no live Variables.
        args: anything. Declared tensors are replaced by values, live tensors and arrays are constants.
        name: of the operation; that of the function by default.
    """
    return declared_call(function, args, kwargs, name)


@recorder
@whole
def declared_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str = "") -> Any:
    """The same with the arguments as they are."""
    leaves, structure = pytree.flatten((args, kwargs))
    own = name or base_name(function)
    graph = next((default_graph().graph_of(x) for x in leaves if isinstance(x, Declared)), default_graph())
    inputs: list[Declared] = []
    template: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, LiveVariable):
            raise ArgumentError(
                f"[{own}] {leaf.described} is live; a graph has variables of its own: declarative.Variable(...)."
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
