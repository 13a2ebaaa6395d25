"""Record a function as a graph, with everything that it reads and writes outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from runnel.core.avals import ShapedArray
from runnel.core.devices import Device
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Value
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.effects import Effects
from runnel.tensor.tensor import Tensor
from runnel.tensor.trace import Trace
from runnel.tensor.variable import TracedVariables, Variable


class Tracer:
    """Construct a graph, and record which values outside its inputs come from.

    Ops on tensors are recorded inside ``with tracer:``, which may be entered again::

        tracer = Tracer()
        with tracer:
            y = function(tracer.argument(aval, "x"))
            graph = tracer.graph([y], "name")

    Args:
        device: the device of the graph; by default the device of the first tensor that is read.
        trace: the graph under construction; a new one by default.
    """

    def __init__(self, device: Device | None = None, trace: Trace | None = None) -> None:
        self.trace = Trace(tensors.serial_now(), device) if trace is None else trace
        self.variables = self.trace.facet(TracedVariables)
        self._blocks: list[tracing.activate] = []

    def __enter__(self) -> Tracer:
        block = tracing.activate(self.trace)
        self._blocks.append(block)
        block.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._blocks.pop().__exit__(*error)

    def argument(self, aval: ShapedArray, name: str) -> Tensor:
        """Add an input to the graph and return the tensor for it. The block must be entered."""
        return tensors.symbolic(self.trace.input(aval, InputKind.ARGUMENT, name))

    def node(self, x: Tensor) -> Value:
        """Return the node of a tensor; a tensor from outside becomes an input."""
        return tensors.node_of(x, self.trace)

    def nodes(self, values: Iterable[Tensor]) -> list[Value]:
        """Return the nodes of tensors."""
        return [self.node(x) for x in values]

    def updates(self) -> dict[Value, Value]:
        """Return the last value of each Variable that was assigned, by its input node."""
        state = self.variables
        return {node: self.node(state.values[v]) for v, node in state.nodes.items() if v in state.written}

    def graph(self, outputs: Iterable[Tensor], name: str) -> Graph:
        """Return the graph of ``outputs`` and of the Variables that were assigned.

        Raises:
            TracedValueError, ...: the first error about a traced value, even if the function caught it.
        """
        nodes, updates = self.nodes(outputs), self.updates()
        if self.trace.deferred_error is not None:
            raise self.trace.deferred_error
        return self.trace.graph(nodes, updates, name)

    @property
    def bound_variables(self) -> dict[Value, Variable]:
        """The Variables that were read or assigned, by their input nodes in the order of first use."""
        return {node: v for v, node in self.variables.nodes.items()}

    @property
    def captures(self) -> dict[Value, Tensor | np.ndarray]:
        """The tensors and NumPy arrays that were read from outside, by their input nodes."""
        return {node: value for value, node in self.trace.captures.values()}

    @property
    def numbers(self) -> dict[Value, Callable[[], float]]:
        """Functions that return the numbers that a run reads, by their input nodes."""
        return {node: getter for getter, node in self.trace.scalars}

    @property
    def calls_python(self) -> bool:
        """True if the graph calls Python or prints."""
        return self.trace.facet(Effects).order is not None

    @property
    def gradients_used(self) -> list[Variable]:
        """The Variables whose ``.grad`` was read or set."""
        state = self.variables
        return [*state.gradients, *state.gradient_inputs, *state.lost_gradients]
