"""Record a body and its derivative in one graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from runnel.graph.graph import Graph, topological
from runnel.graph.node import Value
from runnel.ops.conversion import stop_gradient_p
from runnel.tensor import tape
from runnel.tensor.bodies import evaluate
from runnel.tensor.grad_mode import recording
from runnel.tensor.tracer import Tracer


class Linearized(NamedTuple):
    """The nodes of a body and of its derivative. ``seeds`` are the cotangents of outputs, by the number of the output;
    ``cotangents`` are those of inputs, by the number of the input."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    seeds: dict[int, Value]
    cotangents: dict[int, Value]

    def linear(self) -> set[Value]:
        """Return the nodes that depend on cotangents."""
        dependent = set(self.seeds.values())
        for node in topological(self.cotangents.values()):
            if any(x in dependent for x in node.inputs):
                dependent.add(node)
        return dependent


def linearize(graph: Graph, numbers: Collection[int], seeded: Collection[int]) -> Linearized:
    """Differentiate by the inputs numbered ``numbers``, given cotangents of the outputs numbered ``seeded``."""
    tracer = Tracer()
    with tracer, recording(True):
        inputs = [tracer.argument(x.aval, x.name) for x in graph.inputs]
        for number in numbers:
            inputs[number].requires_grad = True
        outputs = evaluate(graph, inputs)
        roots = [number for number in seeded if outputs[number].requires_grad]
        seeds = [tracer.argument(outputs[i].aval, f"g{i}") for i in roots]
        leaves = [inputs[number] for number in numbers]
        cotangents = tape.cotangents([outputs[i] for i in roots], seeds, leaves)
        return Linearized(
            tuple(tracer.nodes(inputs)),
            tuple(tracer.nodes(outputs)),
            dict(zip(roots, tracer.nodes(seeds), strict=True)),
            {i: tracer.node(cotangents[id(inputs[i])][1]) for i in numbers if id(inputs[i]) in cotangents},
        )


def depending(graph: Graph, inputs: Sequence[Value]) -> set[Value]:
    """Return the nodes that may have a derivative by ``inputs``."""
    dependent = set(inputs)
    for node in graph.values:
        if node.aval.dtype.is_inexact and node.op is not stop_gradient_p and any(x in dependent for x in node.inputs):
            dependent.add(node)
    return dependent
