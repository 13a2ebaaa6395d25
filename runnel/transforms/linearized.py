"""A body and its derivative in one graph: the body's nodes, and those that take cotangents of its outputs to cotangents
of its inputs.
"""

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
        found = set(self.seeds.values())
        for node in topological(self.cotangents.values()):
            if any(x in found for x in node.inputs):
                found.add(node)
        return found


def linearize(graph: Graph, wanted: Collection[int], seeded: Collection[int]) -> Linearized:
    """Differentiate by the inputs numbered ``wanted``, given cotangents of the outputs numbered ``seeded``."""
    trace = Trace(tensors.serial_now())
    with tracing.activate(trace), recording(True):
        given = [tensors.symbolic(trace.input(x.aval, InputKind.ARGUMENT, x.name)) for x in graph.inputs]
        for number in wanted:
            given[number].requires_grad = True
        outputs = evaluate(graph, given)
        roots = [number for number in seeded if outputs[number].requires_grad]
        seeds = [tensors.symbolic(trace.input(outputs[i].aval, InputKind.ARGUMENT, f"g{i}")) for i in roots]
        leaves = [given[number] for number in wanted]
        found = tape.cotangents([outputs[i] for i in roots], seeds, leaves)
        return Linearized(
            tuple(tensors.node_of(x, trace) for x in given),
            tuple(tensors.node_of(x, trace) for x in outputs),
            {i: tensors.node_of(seed, trace) for i, seed in zip(roots, seeds, strict=True)},
            {i: tensors.node_of(found[id(given[i])][1], trace) for i in wanted if id(given[i]) in found},
        )


def depending(graph: Graph, inputs: Sequence[Value]) -> set[Value]:
    """The nodes that may have a derivative by ``inputs``."""
    found = set(inputs)
    for node in graph.values:
        if node.aval.dtype.is_float and node.op is not stop_gradient_p and any(x in found for x in node.inputs):
            found.add(node)
    return found
