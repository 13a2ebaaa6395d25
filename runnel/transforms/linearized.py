"""A body and its derivative in one graph: its nodes, and those from cotangents of outputs to cotangents of inputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from runnel.graph.graph import Graph, topological
from runnel.graph.node import InputKind, Value
from runnel.ops.conversion import stop_gradient_p
from runnel.tensor import tape, tensor as tensors, tracing
from runnel.tensor.bodies import evaluate
from runnel.tensor.grad_mode import recording
from runnel.tensor.tracing import Trace


class Linearized(NamedTuple):
    """``seeds`` are inputs, by number of the body's output whose cotangent they are; ``cotangents`` by number of the
    body's input."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    seeds: dict[int, Value]
    cotangents: dict[int, Value]

    def linear(self) -> set[Value]:
        """The nodes that depend on cotangents."""
        dependent = set(self.seeds.values())
        for node in topological(self.cotangents.values()):
            if any(x in dependent for x in node.inputs):
                dependent.add(node)
        return dependent


def linearize(graph: Graph, numbers: Collection[int], seeded: Collection[int]) -> Linearized:
    """Differentiate by the inputs numbered ``numbers``, given cotangents of the outputs numbered ``seeded``."""
    trace = Trace(tensors.serial_now())
    with tracing.activate(trace), recording(True):
        inputs = [tensors.symbolic(trace.input(x.aval, InputKind.ARGUMENT, x.name)) for x in graph.inputs]
        for number in numbers:
            inputs[number].requires_grad = True
        outputs = evaluate(graph, inputs)
        roots = [number for number in seeded if outputs[number].requires_grad]
        seeds = [tensors.symbolic(trace.input(outputs[i].aval, InputKind.ARGUMENT, f"g{i}")) for i in roots]
        leaves = [inputs[number] for number in numbers]
        cotangents = tape.cotangents([outputs[i] for i in roots], seeds, leaves)
        return Linearized(
            tuple(tensors.node_of(x, trace) for x in inputs),
            tuple(tensors.node_of(x, trace) for x in outputs),
            {i: tensors.node_of(seed, trace) for i, seed in zip(roots, seeds, strict=True)},
            {i: tensors.node_of(cotangents[id(inputs[i])][1], trace) for i in numbers if id(inputs[i]) in cotangents},
        )


def depending(graph: Graph, inputs: Sequence[Value]) -> set[Value]:
    """The nodes that may have a derivative by ``inputs``."""
    dependent = set(inputs)
    for node in graph.values:
        if node.aval.dtype.is_inexact and node.op is not stop_gradient_p and any(x in dependent for x in node.inputs):
            dependent.add(node)
    return dependent
