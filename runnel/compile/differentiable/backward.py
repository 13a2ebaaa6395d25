"""The backward programs of one part of a derivative, compiled when first needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from runnel.backends import context
from runnel.compile.differentiable.derivative import Pullback
from runnel.compiler.entry import compile_graph
from runnel.compiler.executable.program import Program
from runnel.compiler.options import Bindings, Options
from runnel.core.avals import ShapedArray
from runnel.graph.graph import Graph
from runnel.tensor.handle import plain
from runnel.tensor.tensor import Tensor, from_storage


class CompiledBackward(NamedTuple):
    """A program for some of the results: their numbers in the graph, in order, and their avals."""

    program: Program
    numbers: list[int]
    avals: list[ShapedArray]


class Backward:
    """From addresses of kept values and cotangents to cotangents: those that are wanted, by a program for these."""

    def __init__(self, pullback: Pullback, options: Options) -> None:
        self._graph = pullback.gradients
        self.reads = pullback.reads  # numbers of what is kept
        self._options = options
        self._context = context.current()
        self._compiled: dict[frozenset[int], CompiledBackward] = {}

    def run(self, addresses: Sequence[int], seeds: Sequence[Tensor], numbers: frozenset[int]) -> dict[int, Tensor]:
        """The wanted results by their numbers."""
        if not numbers:
            return {}
        compiled = self.program_for(numbers)
        program = compiled.program
        dense = [g if g.is_dense else plain(g).contiguous() for g in seeds]
        storages = [program.backend.allocate(nbytes) for nbytes in program.outputs]
        inputs = [addresses[i] for i in self.reads]
        inputs += [g.address for g in dense]
        program.run(inputs, [storage.address for storage in storages])
        results = zip(compiled.numbers, program.output_of, compiled.avals, strict=True)
        return {number: from_storage(aval, storages[place]) for number, place, aval in results}

    def program_for(self, numbers: frozenset[int]) -> CompiledBackward:
        """The program that gives the wanted results."""
        compiled = self._compiled.get(numbers)
        if compiled is None:
            compiled = self._compiled[numbers] = self._make(numbers)
        return compiled

    def _make(self, selected: frozenset[int]) -> CompiledBackward:
        graph, numbers = self._graph, sorted(selected)
        outputs = [graph.outputs[i] for i in numbers]
        part = Graph(graph.inputs, outputs, {}, graph.name)
        program = compile_graph(part, Bindings(), self._context, self._options).program
        return CompiledBackward(program, numbers, [node.aval.on(self._context.device) for node in outputs])
